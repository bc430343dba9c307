// SPDX-License-Identifier: Apache-2.0
//
// Takes spaces at the ends of a token away from where it came from, as the post-processors
// ByteLevel and RobertaProcessing do.

#ifndef ENCORE_ENGINE_TOKENIZER_OFFSET_TRIM_H_
#define ENCORE_ENGINE_TOKENIZER_OFFSET_TRIM_H_

#include <string_view>

#include "encore/tokenizer.h"
#include "engine/tokenizer/post_template.h"

namespace encore::inline v0_1::internal {

// `original`: the text that the origin is a part of. `token`: as the vocabulary spells it, or the
// text of an added token. `first`: it is the text's first token.
void TrimOrigin(OffsetTrim trim, std::string_view original, std::string_view token, bool first,
                ByteRange* origin);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_OFFSET_TRIM_H_
