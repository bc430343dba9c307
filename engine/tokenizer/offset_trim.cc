// SPDX-License-Identifier: Apache-2.0
//
// Spaces are counted in the token and taken off the origin, a character each.

#include "engine/tokenizer/offset_trim.h"

#include <algorithm>

#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr char32_t kSpaceOfBytes = 0x120;  // a space in GPT-2's alphabet

bool IsSpace(char32_t c) {
  return c == kSpaceOfBytes || (Unicode::Get().Properties(c) & kWhite) != 0;
}

size_t LeadingSpaces(std::string_view token) {
  const char* const end = token.data() + token.size();
  size_t count = 0;
  for (const char* at = token.data(); at < end && IsSpace(NextCodePoint(at));) ++count;
  return count;
}

size_t TrailingSpaces(std::string_view token) {
  size_t count = 0;
  while (!token.empty()) {
    const char32_t c = LastCodePoint(token.data(), token.data() + token.size());
    if (!IsSpace(c)) break;
    char bytes[4];
    token.remove_suffix(static_cast<size_t>(PutCodePoint(c, bytes) - bytes));
    ++count;
  }
  return count;
}

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

void TrimOrigin(OffsetTrim trim, std::string_view original, std::string_view token, bool first,
                ByteRange* origin) {
  if (trim == OffsetTrim::kNone) return;
  size_t leading = LeadingSpaces(token);
  if (leading == 1 && trim == OffsetTrim::kKeepFirstSpace && (first || origin->begin == 0)) {
    leading = 0;
  }
  for (; leading > 0 && origin->begin < origin->end; --leading) {
    do {
      ++origin->begin;
    } while (origin->begin < origin->end && Continues(original[origin->begin]));
  }
  size_t end = origin->end;
  for (size_t trailing = TrailingSpaces(token); trailing > 0; --trailing) {
    if (end == 0) return;  // the text has fewer characters: nothing is taken off
    do {
      --end;
    } while (end > 0 && Continues(original[end]));
  }
  origin->end = std::max(end, origin->begin);
}

}  // namespace encore::internal
