// SPDX-License-Identifier: Apache-2.0
//
// Extended grapheme clusters: the rules GB3 to GB11 of Unicode Standard Annex 29. Regional
// indicators (GB12, GB13) are left out: two of them have 8 bytes.

#include <cstdint>

#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr char32_t kJoiner = 0x200D;  // zero width joiner

enum class Jamo : uint8_t { kNone, kLeading, kVowel, kTrailing, kOpenSyllable, kClosedSyllable };

Jamo JamoOf(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (in(0x1100, 0x115F) || in(0xA960, 0xA97C)) return Jamo::kLeading;
  if (in(0x1160, 0x11A7) || in(0xD7B0, 0xD7C6)) return Jamo::kVowel;
  if (in(0x11A8, 0x11FF) || in(0xD7CB, 0xD7FB)) return Jamo::kTrailing;
  if (!in(0xAC00, 0xD7A3)) return Jamo::kNone;
  return (c - 0xAC00) % 28 == 0 ? Jamo::kOpenSyllable : Jamo::kClosedSyllable;
}

bool SyllableGoesOn(char32_t before, char32_t c) {
  const Jamo first = JamoOf(before), second = JamoOf(c);
  switch (first) {
    case Jamo::kLeading:
      return second != Jamo::kNone && second != Jamo::kTrailing;
    case Jamo::kVowel:
    case Jamo::kOpenSyllable:
      return second == Jamo::kVowel || second == Jamo::kTrailing;
    case Jamo::kTrailing:
    case Jamo::kClosedSyllable:
      return second == Jamo::kTrailing;
    case Jamo::kNone:
      break;
  }
  return false;
}

}  // namespace

const char* ClusterEnd(const char* at, const char* end) {
  char32_t before = NextCodePoint(at);
  uint32_t properties = PropertiesOf(before);
  bool after_pictograph = (properties & kPictograph) != 0;  // and what extends it
  bool after_consonant = (properties & kConsonant) != 0;    // and what may stand beside a linker
  bool linked = false;                                      // a linker came behind the consonant
  while (at < end) {
    const char* next = at;
    const char32_t c = NextCodePoint(next);
    const uint32_t of_next = PropertiesOf(c);
    if (before == '\r' && c == '\n') return next;
    if (((properties | of_next) & kControls) != 0) break;
    const bool joins = (of_next & kExtends) != 0 || (properties & kPrepends) != 0 ||
                       SyllableGoesOn(before, c) || (linked && (of_next & kConsonant) != 0) ||
                       (after_pictograph && before == kJoiner && (of_next & kPictograph) != 0);
    if (!joins) break;
    at = next;
    before = c;
    properties = of_next;
    if ((of_next & kConsonant) != 0) {
      after_consonant = true;
      linked = false;
    } else if ((of_next & kLinker) != 0) {
      linked = after_consonant;
    } else if ((of_next & kConjoins) == 0) {
      after_consonant = linked = false;
    }
    after_pictograph =
        (of_next & kPictograph) != 0 || (after_pictograph && (of_next & kExtends) != 0);
  }
  return at;
}

}  // namespace encore::internal
