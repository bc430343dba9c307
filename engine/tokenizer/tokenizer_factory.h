// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers from files that are in memory, as static embeddings and tests have them; and what
// models of late interaction want of theirs.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/packed_tokenizer.h"
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
  // SigLIP's, from the bytes of spiece.model and, unless it is empty, of tokenizer_config.json.
  static Result<Tokenizer> FromSentencePiece(std::string_view spiece_model,
                                             const TokenizerOptions& options = {},
                                             std::string_view config_json = {});
  // As Tokenizer::Open, with these tokens, where the tokenizer has them, as special ones: texts
  // hold them whole ("[unused0]" of ColBERT's models).
  static Result<Tokenizer> OpenWith(const std::vector<std::string>& whole_tokens,
                                    const std::string& folder, const TokenizerOptions& options,
                                    const TokenizerCache& cache = {});
  // Of the token that the files, or else the tokenizer's class, name by this key of
  // tokenizer_config.json: "mask_token", "eos_token"; nothing if there is none.
  static std::optional<int32_t> SpecialTokenId(const Tokenizer& tokenizer, std::string_view key);
  // Whether it is one of these, or of extra_special_tokens.
  static bool IsSpecial(const Tokenizer& tokenizer, int32_t id);
  // By a token's text in the vocabulary or among added tokens.
  static std::optional<int32_t> TokenId(const Tokenizer& tokenizer, std::string_view token);
  static Tokenizer Make(TokenizerParts parts);
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_FACTORY_H_
