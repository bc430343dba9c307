// SPDX-License-Identifier: Apache-2.0
//
// ParseDouble: a decimal number as the C locale writes it.

#ifndef ENCORE_ENGINE_PLATFORM_PARSE_DOUBLE_H_
#define ENCORE_ENGINE_PLATFORM_PARSE_DOUBLE_H_

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#if !defined(__cpp_lib_to_chars)
#include <cerrno>
#include <cstdlib>

#include "engine/platform/c_locale.h"
#endif

namespace encore::inline v0_1::internal {

// Of the whole text; nothing where it is no number of std::from_chars or none that a double holds.
inline std::optional<double> ParseDouble(std::string_view text) {
#if defined(__cpp_lib_to_chars)
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
#else
  // libc++ has from_chars for double from version 20 on. strtod also takes blanks and a plus
  // before the number, and base 16.
  if (text.empty() || text[0] == '+' ||
      std::string_view(" \t\n\v\f\r").find(text[0]) != text.npos ||
      text.find_first_of("xX") != text.npos) {
    return std::nullopt;
  }
  const std::string ended(text);
  const CLocaleScope c;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(ended.c_str(), &end);
  if (end != ended.c_str() + ended.size() || errno == ERANGE) return std::nullopt;
  return value;
#endif
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_PARSE_DOUBLE_H_
