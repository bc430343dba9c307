// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong with files and their paths, as a Status.

#ifndef ENCORE_ENGINE_PLATFORM_FILE_ERROR_H_
#define ENCORE_ENGINE_PLATFORM_FILE_ERROR_H_

#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "encore/status.h"
#include "engine/base/guarded.h"
#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {

// kInvalidArgument for a path with a zero byte: the system's calls would end it there, and so open
// another file.
inline Status CheckPath(const std::string& path) {
  const size_t zero = path.find('\0');
  if (zero == std::string::npos) return Status();
  return InvalidArgument("the path " + QuotedPath(path) + " has a zero byte at " +
                         std::to_string(zero));
}

// "<path>: <what>: <the system's words for error_number>"; kNotFound, kOutOfMemory or kIo by the
// number.
inline Status SystemError(const std::string& path, std::string_view what, int error_number) {
  ErrorCode code = ErrorCode::kIo;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::kNotFound;
  if (error_number == ENOMEM) code = ErrorCode::kOutOfMemory;
  return Status(
      code, path + ": " + std::string(what) + ": " + std::generic_category().message(error_number));
}

// Of an error of the C++ library: what the C library calls it. On Windows those are the system's
// own.
inline int ErrorNumber(const std::error_code& error) {
  const std::error_condition condition = error.default_error_condition();
  return condition.category() == std::generic_category() ? condition.value() : EIO;
}

inline Status SystemError(const std::string& path, std::string_view what,
                          const std::error_code& error) {
  return SystemError(path, what, ErrorNumber(error));
}

// As Guarded, for work on files: what the system throws becomes kIo, for instance of a path that
// has no form in its own encoding.
template <class F>
auto GuardedFile(const std::string& path, const F& f) -> decltype(f()) {
  return Guarded(path, [&]() -> decltype(f()) {
    try {
      return f();
    } catch (const std::runtime_error& error) {  // filesystem_error and system_error among them
      return Status(ErrorCode::kIo, path + ": " + error.what());
    }
  });
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FILE_ERROR_H_
