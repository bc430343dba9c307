// SPDX-License-Identifier: Apache-2.0
//
// The generated tables as they are stored (tools/unicode_tables.py).

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_

#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1::internal {

extern const uint16_t kUnicodeClasses[];
extern const size_t kUnicodeClassesSize;
// Pairs: how many code points, index of their class.
extern const uint32_t kUnicodeRuns[];
extern const size_t kUnicodeRunsSize;
// Records: difference to the code point before, number of parts, the parts.
extern const uint32_t kUnicodeDecompositions[];
extern const size_t kUnicodeDecompositionsSize;
// Like kUnicodeRuns, of PatternProperty.
extern const uint16_t kUnicodePatternClasses[];
extern const size_t kUnicodePatternClassesSize;
extern const uint32_t kUnicodePatternRuns[];
extern const size_t kUnicodePatternRunsSize;
// Where the compatibility decomposition is another: like kUnicodeDecompositions, and for those of
// one part like kUnicodeLowercase.
extern const uint32_t kUnicodeCompatibility[];
extern const size_t kUnicodeCompatibilitySize;
extern const int32_t kUnicodeCompatibilityRuns[];
extern const size_t kUnicodeCompatibilityRunsSize;
// Records of four: first, last, step, difference of the lower case.
extern const int32_t kUnicodeLowercase[];
extern const size_t kUnicodeLowercaseSize;

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
