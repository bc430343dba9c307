// SPDX-License-Identifier: Apache-2.0
//
// The properties, decompositions and lower case of a code point, as `tokenizers` has them.

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/tokenizer/unicode_data.h"

namespace encore::inline v0_1::internal {

// Properties are bits; those from kOrderShift on are the rank of the canonical combining class
// among the classes in use, 0 for starters.
enum CharProperty : uint32_t {
  kCleaned = 1 << 0,      // removed by BertNormalizer's clean_text
  kWhite = 1 << 1,        // White_Space
  kChinese = 1 << 2,      // gets spaces by BertNormalizer's handle_chinese_chars
  kNonspacing = 1 << 3,   // Mn as of Unicode 8: removed by BertNormalizer's strip_accents
  kMark = 1 << 4,         // M as of Unicode 9: removed by StripAccents
  kPunctuation = 1 << 5,  // stands alone after BertPreTokenizer
  kWordChar = 1 << 6,     // \w of regular expressions
  kDecomposes = 1 << 7,   // has a canonical decomposition
  kHasLower = 1 << 8,     // its lower case is another
  kLetter = 1 << 9,       // \p{L}
  kNumber = 1 << 10,      // \p{N}
  kSpace = 1 << 11,       // \s
  kNumeric = 1 << 12,     // Digits splits there
  // Grapheme clusters:
  kExtends = 1 << 13,     // stays with the character before it (Extend, ZWJ, SpacingMark)
  kPrepends = 1 << 14,    // stays with the character behind it
  kControls = 1 << 15,    // nothing stays with it
  kPictograph = 1 << 16,  // Extended_Pictographic
  kConsonant = 1 << 17,   // of a script whose consonants are joined
  kLinker = 1 << 18,      // joins the consonants at its sides
  kConjoins = 1 << 19,    // may stand beside a linker
  kOrderShift = 24,
};
constexpr unsigned OrderRank(uint32_t properties) { return properties >> kOrderShift; }

// U+0130 alone has a lower case of two characters, i and this one.
inline constexpr char32_t kCapitalIWithDot = 0x130;
inline constexpr char32_t kDotAbove = 0x307;

// Code points must be below 0x110000.
inline const CharRecord& RecordOf(char32_t c) {
  return kCharRecords[kCharRows[kCharBlocks[c / 256]][c % 256]];
}
inline uint32_t PropertiesOf(char32_t c) { return RecordOf(c).properties; }
inline uint32_t AsciiProperties(char c) {
  return kCharRecords[kCharRows[0][static_cast<unsigned char>(c)]].properties;
}
inline bool Is(char32_t c, CharProperty property) { return (PropertiesOf(c) & property) != 0; }
// Of U+0130 the first of its two.
inline char32_t LowerOf(char32_t c) {
  return static_cast<char32_t>(static_cast<int32_t>(c) + RecordOf(c).to_lower);
}

// A full canonical decomposition.
struct Decomposition {
  std::array<char32_t, 4> parts;
  size_t size;
};
// Of a code point that has kDecomposes.
Decomposition Decompose(char32_t c);
// The parts of its compatibility decomposition; none where that is the canonical one.
std::span<const char32_t> CompatibleParts(char32_t c);
// The character that NFC makes of two, or 0.
char32_t Compose(char32_t first, char32_t second);

// Valid text without the white space at its start or its end.
std::string_view WithoutWhiteStart(std::string_view text);
std::string_view WithoutWhiteEnd(std::string_view text);

// grapheme.cc: the end of the extended grapheme cluster (Unicode Standard Annex 29) that starts at
// `at`, in valid text that goes on to `end`. Clusters of up to 5 bytes are exact; longer ones may
// be cut where both parts have 6 bytes or one character.
const char* ClusterEnd(const char* at, const char* end);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_H_
