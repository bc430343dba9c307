// SPDX-License-Identifier: Apache-2.0
//
// UTF-8: what is valid, and code points in and out of valid bytes.

#ifndef ENCORE_ENGINE_TOKENIZER_UTF8_H_
#define ENCORE_ENGINE_TOKENIZER_UTF8_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace encore::inline v0_1::internal {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// The length of the valid bytes at the start of text: text.size() if all are. Overlong forms,
// surrogates and code points above U+10FFFF are invalid.
size_t ValidUtf8Length(std::string_view text);

// How many bytes at the start of text, which are invalid, the replacement character replaces: the
// maximal subpart of The Unicode Standard, section 3.9.
size_t InvalidUtf8Length(std::string_view text);

inline bool IsAscii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }
// Whether a byte is one of a code point, but not its first.
inline bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }
// The bytes of a code point, by its first one, in valid text.
inline size_t Utf8Length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// How many code points valid text has.
inline size_t CountCodePoints(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), Continues));
}

// The code point at `at`, which valid text goes on from; moves `at` behind it.
inline char32_t NextCodePoint(const char*& at) {
  const auto byte = [at](size_t i) { return static_cast<unsigned char>(at[i]); };
  const char32_t first = byte(0);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  const char32_t second = byte(1) & 0x3Fu;
  if (first < 0xE0) {
    at += 2;
    return (first & 0x1F) << 6 | second;
  }
  const char32_t third = byte(2) & 0x3Fu;
  if (first < 0xF0) {
    at += 3;
    return (first & 0xF) << 12 | second << 6 | third;
  }
  const char32_t fourth = byte(3) & 0x3Fu;
  at += 4;
  return (first & 7) << 18 | second << 12 | third << 6 | fourth;
}

// The code point that ends before `end`, in valid text that starts before that; moves `end` to it.
inline char32_t PreviousCodePoint(const char*& end) {
  do {
    --end;
  } while (Continues(*end));
  const char* at = end;
  return NextCodePoint(at);
}

// Writes the bytes of a code point, 4 at most, and returns the place behind them.
inline char* PutCodePoint(char32_t c, char* at) {
  if (c < 0x80) {
    *at = static_cast<char>(c);
    return at + 1;
  }
  const auto tail = [c](unsigned shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x800) {
    at[0] = static_cast<char>(0xC0 | c >> 6);
    at[1] = tail(0);
    return at + 2;
  }
  if (c < 0x10000) {
    at[0] = static_cast<char>(0xE0 | c >> 12);
    at[1] = tail(6);
    at[2] = tail(0);
    return at + 3;
  }
  at[0] = static_cast<char>(0xF0 | c >> 18);
  at[1] = tail(12);
  at[2] = tail(6);
  at[3] = tail(0);
  return at + 4;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UTF8_H_
