// SPDX-License-Identifier: Apache-2.0
//
// Reading files of /proc and /sys, whose sizes are unknown.

#ifndef ENCORE_ENGINE_PLATFORM_SYSTEM_FILE_H_
#define ENCORE_ENGINE_PLATFORM_SYSTEM_FILE_H_

#include <cstdio>
#include <memory>
#include <string>

namespace encore::inline v0_1::internal {

// Empty if it cannot be read.
inline std::string ReadSystemFile(const std::string& path) {
  std::string text;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (!file) return text;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), file.get()))
    text.append(buffer, got);
  return text;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_SYSTEM_FILE_H_
