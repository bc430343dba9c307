// SPDX-License-Identifier: Apache-2.0
//
// Names of error codes, printing of a Status, and the end of a program that uses a failed Result.

#include "encore/status.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <ostream>

namespace encore::inline v0_1 {

#if defined(_GLIBCXX_DEBUG)
namespace internal {
const char kCompiledWithGlibcxxDebug = 1;
}
#endif

std::string_view ErrorCodeName(ErrorCode code) {
  // In the order of ErrorCode.
  constexpr std::string_view kNames[] = {"Ok",          "InvalidArgument", "NotFound",
                                         "Unsupported", "CorruptData",     "Io",
                                         "OutOfMemory", "Cancelled",       "DeadlineExceeded"};
  const auto place = static_cast<size_t>(code);
  return place < std::size(kNames) ? kNames[place] : "Unknown";
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  out << ErrorCodeName(status.code());
  return status.ok() ? out : out << ": " << status.message();
}

void FailedResultUsed(const Status& status) {
  const std::string_view code = ErrorCodeName(status.code());
  std::fprintf(stderr, "encore: a failed Result was used: %.*s: %s\n",
               static_cast<int>(code.size()), code.data(), status.message().c_str());
  std::abort();
}

}  // namespace encore
