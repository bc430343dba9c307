// SPDX-License-Identifier: Apache-2.0
//
// A failed system call on a file as a Status.

#ifndef ENCORE_ENGINE_PLATFORM_SYSTEM_ERROR_H_
#define ENCORE_ENGINE_PLATFORM_SYSTEM_ERROR_H_

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// "<path>: <what>: <the system's words for error_number>"; kNotFound, kOutOfMemory or kIo by the
// number.
inline Status SystemError(const std::string& path, std::string_view what, int error_number) {
  ErrorCode code = ErrorCode::kIo;
  if (error_number == ENOENT || error_number == ENOTDIR) code = ErrorCode::kNotFound;
  if (error_number == ENOMEM) code = ErrorCode::kOutOfMemory;
  return Status(
      code, path + ": " + std::string(what) + ": " + std::generic_category().message(error_number));
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_SYSTEM_ERROR_H_
