// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers from files that are in memory, for tests and fuzzing.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_

#include <string_view>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

class TokenizerFactory {
 public:
  // From the text of tokenizer.json and, unless it is empty, of tokenizer_config.json. Errors as
  // Tokenizer::Open has them.
  static Result<Tokenizer> FromJson(std::string_view tokenizer_json,
                                    const TokenizerOptions& options = {},
                                    std::string_view config_json = {});
  // From the text of vocab.txt and, unless it is empty, of tokenizer_config.json.
  static Result<Tokenizer> FromVocab(std::string_view vocab_txt,
                                     const TokenizerOptions& options = {},
                                     std::string_view config_json = {});
  static Tokenizer Make(TokenizerParts parts);
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_
