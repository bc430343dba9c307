// SPDX-License-Identifier: Apache-2.0
//
// Foreign text for error texts.

#include "engine/base/quoted.h"

#include <cstddef>

namespace encore::inline v0_1::internal {
namespace {

std::string Escaped(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7F) {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return quoted + '\'';
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxLength = 80;  // of the text; enough for any tensor name of a real model
  std::string quoted = Escaped(text.substr(0, kMaxLength));
  if (text.size() > kMaxLength) quoted += "... (" + std::to_string(text.size()) + " bytes)";
  return quoted;
}

std::string QuotedPath(std::string_view path) {
  constexpr size_t kMaxLength = 320;  // of the path; enough for a snapshot in a hub's cache
  if (path.size() <= kMaxLength) return Escaped(path);
  return "..." + Escaped(path.substr(path.size() - kMaxLength));
}

}  // namespace encore::internal
