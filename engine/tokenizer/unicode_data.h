// SPDX-License-Identifier: Apache-2.0
//
// The generated tables of Unicode (tests/make/unicode_tables.py). Those by code point have two
// stages: the number of the row of its block of 256 code points, and rows, of which none is there
// twice. Row 0 is that of the first block.

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_

#include <cstdint>

namespace encore::inline v0_1::internal {

struct CharRecord {
  uint32_t properties;  // CharProperty
  int32_t to_lower;     // what its lower case is more; of U+0130 that of the first of two
};
// A primary composite of The Unicode Standard, section 3.11, other than Hangul; or all 0.
struct Composition {
  char32_t first, second, composed;
};

extern const CharRecord kCharRecords[];
extern const uint8_t kCharBlocks[];     // of kCharRows
extern const uint8_t kCharRows[][256];  // of kCharRecords
extern const uint8_t kPartBlocks[];     // of kPartRows
extern const uint16_t kPartRows[][256];
// At each place of kPartRows the number of canonical parts + 256 * that of compatible ones, then
// these. Hangul syllables have none. Four parts can be read at each place.
extern const char32_t kParts[];
// A hash table with linear probing.
extern const Composition kCompositions[2048];

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
