// SPDX-License-Identifier: Apache-2.0
//
// Foreign text made fit for error sentences.

#include "engine/base/quoted.h"

#include <cstddef>

namespace encore::inline v0_1::internal {

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxLength = 80;  // of the text; enough for any tensor name of a real model
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxLength)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte >= 0x20 && byte < 0x7F) {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  quoted += '\'';
  if (text.size() > kMaxLength) quoted += "... (" + std::to_string(text.size()) + " bytes)";
  return quoted;
}

}  // namespace encore::internal
