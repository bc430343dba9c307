// SPDX-License-Identifier: Apache-2.0
//
// GPT-2's alphabet, in which vocabularies of bytes are spelled: every byte is a printable
// character.

#ifndef ENCORE_ENGINE_TOKENIZER_BYTE_ALPHABET_H_
#define ENCORE_ENGINE_TOKENIZER_BYTE_ALPHABET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {

// The byte of each character below U+0144; -1: none. Printable bytes of Latin-1 stand for
// themselves, the others in their order for U+0100 and on.
inline constexpr std::array<int16_t, 0x144> kBytesOfAlphabet = [] {
  std::array<int16_t, 0x144> made{};
  made.fill(-1);
  size_t next = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    made[printable ? static_cast<size_t>(byte) : next++] = byte;
  }
  return made;
}();

// How many bytes of UTF-8 a byte's character has.
inline size_t SpelledSize(char byte) { return byte >= 0x21 && byte <= 0x7E ? 1 : 2; }

// The bytes that valid text in the alphabet stands for; nothing for other text.
inline std::optional<std::string> BytesSpelledBy(std::string_view text) {
  std::string bytes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char32_t c = NextCodePoint(at);
    if (c >= kBytesOfAlphabet.size() || kBytesOfAlphabet[c] < 0) return {};
    bytes += static_cast<char>(kBytesOfAlphabet[c]);
  }
  return bytes;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_BYTE_ALPHABET_H_
