// SPDX-License-Identifier: Apache-2.0
//
// The generated tables as they are stored (tools/unicode_tables.py). Not here: looking things up
// (unicode.h).

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_

#include <cstddef>
#include <cstdint>

namespace encore::internal {

extern const uint16_t kUnicodeClasses[];
extern const size_t kUnicodeClassesSize;
// Pairs: how many code points, index of their class.
extern const uint32_t kUnicodeRuns[];
extern const size_t kUnicodeRunsSize;
// Records: difference to the code point before, number of parts, the parts.
extern const uint32_t kUnicodeDecompositions[];
extern const size_t kUnicodeDecompositionsSize;
// Records of four: first, last, step, difference of the lower case.
extern const int32_t kUnicodeLowercase[];
extern const size_t kUnicodeLowercaseSize;

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
