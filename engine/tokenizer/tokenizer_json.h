// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json as a whole, as `tokenizers` writes it. Not here: its components
// (component_json.h), the other way to write a tokenizer down (vocab_txt.h).

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_

#include <string>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// Sentences start with `file`. Errors as component_json.h has them. Throws std::bad_alloc.
Result<TokenizerParts> ReadTokenizerJson(const JsonValue& json, const std::string& file,
                                         const TokenizerOptions& options);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_
