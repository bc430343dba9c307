// SPDX-License-Identifier: Apache-2.0
//
// Paths that the system would read otherwise than the caller wrote them.

#ifndef ENCORE_ENGINE_PLATFORM_PATH_CHECK_H_
#define ENCORE_ENGINE_PLATFORM_PATH_CHECK_H_

#include <cstddef>
#include <string>

#include "encore/status.h"
#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {

// kInvalidArgument for a path with a zero byte: the system's calls would end it there, and so open
// another file.
inline Status CheckPath(const std::string& path) {
  const size_t zero = path.find('\0');
  if (zero == std::string::npos) return Status();
  return InvalidArgument("the path " + Quoted(path) + " has a zero byte at " +
                         std::to_string(zero));
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_PATH_CHECK_H_
