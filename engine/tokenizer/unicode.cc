// SPDX-License-Identifier: Apache-2.0
//
// Decomposition and composition by the generated tables, and of Hangul by arithmetic.

#include "engine/tokenizer/unicode.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

// Hangul syllables are decomposed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 11172;

constexpr int kSlotShift = 64 - std::countr_zero(std::size(kCompositions));

// Of kParts.
const char32_t* PartsOf(char32_t c) { return kParts + kPartRows[kPartBlocks[c / 256]][c % 256]; }

}  // namespace

char32_t Compose(char32_t first, char32_t second) {
  const char32_t leading = first - kLeading, vowel = second - kVowels;
  if (leading < kSyllableCount / (kVowelCount * kTrailingCount) && vowel < kVowelCount) {
    return kSyllables + (leading * kVowelCount + vowel) * kTrailingCount;
  }
  const char32_t syllable = first - kSyllables, trailing = second - kTrailing;
  if (syllable < kSyllableCount && syllable % kTrailingCount == 0 &&
      trailing - 1 < kTrailingCount - 1) {
    return first + trailing;
  }
  size_t slot = (uint64_t{first} << 32 | second) * 0x9E3779B97F4A7C15 >> kSlotShift;
  for (;; slot = (slot + 1) % std::size(kCompositions)) {
    const Composition& found = kCompositions[slot];
    if (found.composed == 0 || (found.first == first && found.second == second)) {
      return found.composed;
    }
  }
}

Decomposition Decompose(char32_t c) {
  const char32_t syllable = c - kSyllables;
  if (syllable < kSyllableCount) {
    const char32_t trailing = syllable % kTrailingCount;
    return {{kLeading + syllable / (kVowelCount * kTrailingCount),
             kVowels + syllable / kTrailingCount % kVowelCount, kTrailing + trailing},
            trailing == 0 ? size_t{2} : size_t{3}};
  }
  const char32_t* const parts = PartsOf(c);
  Decomposition result = {{}, *parts % 256};
  std::copy_n(parts + 1, 4, result.parts.begin());  // of one size, which is fast
  return result;
}

std::span<const char32_t> CompatibleParts(char32_t c) {
  const char32_t* const parts = PartsOf(c);
  return {parts + 1 + *parts % 256, *parts / 256};
}

std::string_view WithoutWhiteStart(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  for (const char* next = at; next < end && Is(NextCodePoint(next), kWhite);) at = next;
  return {at, static_cast<size_t>(end - at)};
}

std::string_view WithoutWhiteEnd(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* at = end; at > text.data() && Is(PreviousCodePoint(at), kWhite);) end = at;
  return {text.data(), static_cast<size_t>(end - text.data())};
}

}  // namespace encore::internal
