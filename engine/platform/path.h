// SPDX-License-Identifier: Apache-2.0
//
// Paths are UTF-8 in every std::string of encore, whatever the system's own names are: Windows'
// are UTF-16, and what its C++ library makes of a narrow string depends on the machine's language.
// On other systems a path is bytes, which stay as they are.

#ifndef ENCORE_ENGINE_PLATFORM_PATH_H_
#define ENCORE_ENGINE_PLATFORM_PATH_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>

namespace encore::inline v0_1::internal {

inline constexpr bool kPathsAreBytes = std::is_same_v<std::filesystem::path::value_type, char>;

// Throws std::runtime_error where the text is no UTF-8 and the system wants that.
inline std::filesystem::path ToPath(std::string_view text) {
  if constexpr (kPathsAreBytes) {
    return std::filesystem::path(text);
  } else {
    return std::filesystem::path(std::u8string(text.begin(), text.end()));
  }
}

inline std::string PathText(const std::filesystem::path& path) {
  if constexpr (kPathsAreBytes) {
    return path.string();
  } else {
    const std::u8string text = path.u8string();
    return std::string(text.begin(), text.end());
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_PATH_H_
