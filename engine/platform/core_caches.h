// SPDX-License-Identifier: Apache-2.0
//
// What sysfs says of a core's caches. Nothing on systems without it.

#ifndef ENCORE_ENGINE_PLATFORM_CORE_CACHES_H_
#define ENCORE_ENGINE_PLATFORM_CORE_CACHES_H_

#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>

#include "engine/platform/file_handle.h"
#endif

namespace encore::inline v0_1::internal {

#if defined(__linux__)

// Allocates nothing.
class CoreCaches {
 public:
  // Of a core's folder, such as /sys/devices/system/cpu/cpu0.
  explicit CoreCaches(const char* folder) noexcept
      : folder_(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  // As much of a cache's file as `memory` holds; empty if it cannot be read.
  std::string_view Read(int index, const char* name, std::span<char> memory) const noexcept {
    char path[64];
    std::snprintf(path, sizeof(path), "cache/index%d/%s", index, name);
    const FileHandle file(::openat(static_cast<int>(folder_.get()), path, O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return {};
    const ssize_t got = ::read(static_cast<int>(file.get()), memory.data(), memory.size());
    return {memory.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }

  // Calls use(int index, char level), '1' for the first, of each cache that has data.
  template <typename F>
  void ForEachOfData(const F& use) const {
    for (int index = 0; index < 16; ++index) {
      char memory[64];
      const std::string_view text = Read(index, "level", memory);
      if (text.empty()) return;
      const char level = text.front();
      if (!Read(index, "type", memory).starts_with("Instruction")) use(index, level);
    }
  }

 private:
  FileHandle folder_;
};

#else

class CoreCaches {
 public:
  explicit CoreCaches(const char* /*folder*/) noexcept {}
  std::string_view Read(int /*index*/, const char* /*name*/,
                        std::span<char> /*memory*/) const noexcept {
    return {};
  }
  template <typename F>
  void ForEachOfData(const F& /*use*/) const {}
};

#endif

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CORE_CACHES_H_
