// SPDX-License-Identifier: Apache-2.0
//
// Base64 (RFC 4648, section 4), in which tokenizer.json holds bytes.

#ifndef ENCORE_ENGINE_TOKENIZER_BASE64_H_
#define ENCORE_ENGINE_TOKENIZER_BASE64_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {

// Nothing for text that is not base64 with its padding. Throws std::bad_alloc.
inline std::optional<std::string> FromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return {};
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool padded = i >= text.size() - padding;
    const size_t digit = padded ? 0 : kDigits.find(text[i]);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16u, 8u, 0u}) bytes += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_BASE64_H_
