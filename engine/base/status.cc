// SPDX-License-Identifier: Apache-2.0
//
// The names of the error codes, how a Status is printed, and how a program ends that uses a failed
// Result.

#include "encore/status.h"

#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace encore::inline v0_1 {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "Ok";
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kCorruptData:
      return "CorruptData";
    case ErrorCode::kIo:
      return "Io";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
  }
  return "Unknown";
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
