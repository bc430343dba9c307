// SPDX-License-Identifier: Apache-2.0
//
// Writes a character's lower case, which two normalizers do.

#ifndef ENCORE_ENGINE_TOKENIZER_PUT_LOWER_H_
#define ENCORE_ENGINE_TOKENIZER_PUT_LOWER_H_

#include "engine/tokenizer/text_buffer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {

// Of a character with these properties.
inline void PutLower(const Unicode& unicode, char32_t c, uint16_t properties, ByteRange origin,
                     TextBuffer* out) {
  out->Put((properties & kHasLower) != 0 ? unicode.Lower(c) : c, origin);
  if (c == kCapitalIWithDot) out->Put(kDotAbove, origin);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PUT_LOWER_H_
