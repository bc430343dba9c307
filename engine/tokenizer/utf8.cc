// SPDX-License-Identifier: Apache-2.0
//
// Validation of UTF-8 by the table of well-formed sequences (The Unicode Standard, table 3-7).

#include "engine/tokenizer/utf8.h"

#include <cstring>

namespace encore::inline v0_1::internal {
namespace {

// The bytes of text's first sequence that are as they should be, and how many there should be; 0
// of 0 if no sequence starts with the first byte.
struct Sequence {
  size_t found = 0;
  size_t wanted = 0;
};

Sequence FirstSequence(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, 1};
  if (first < 0xC2 || first > 0xF4) return {};
  const size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and code points above U+10FFFF.
  unsigned low = 0x80, high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  size_t found = 1;
  while (found < wanted && found < text.size() && byte(found) >= low && byte(found) <= high) {
    ++found;
    low = 0x80, high = 0xBF;
  }
  return {found, wanted};
}

// Whether none of these bytes is above 0x7F.
bool AllAscii(const char* bytes, size_t count) {
  uint64_t all = 0;
  for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof(word));
    all |= word;
  }
  return (all & 0x8080808080808080u) == 0;
}

}  // namespace

size_t ValidUtf8Length(std::string_view text) {
  constexpr size_t kBlock = 32;
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= kBlock && AllAscii(text.data() + at, kBlock)) {
      at += kBlock;
      continue;
    }
    const Sequence sequence = FirstSequence(text.substr(at));
    if (sequence.found < sequence.wanted || sequence.wanted == 0) return at;
    at += sequence.wanted;
  }
  return at;
}

size_t InvalidUtf8Length(std::string_view text) {
  const size_t found = FirstSequence(text).found;
  return found == 0 ? 1 : found;
}

}  // namespace encore::internal
