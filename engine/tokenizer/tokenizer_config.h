// SPDX-License-Identifier: Apache-2.0
//
// tokenizer_config.json, which transformers writes beside tokenizer.json or vocab.txt. Not here:
// those.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// What the file says of the tokenizer; nothing where it says nothing.
struct TokenizerConfig {
  std::string file = "tokenizer_config.json";
  std::string tokenizer_class;
  std::optional<bool> do_lower_case;
  std::optional<bool> strip_accents;
  std::optional<bool> tokenize_chinese_chars;
  std::optional<size_t> model_max_length;  // "no limit" is nothing too
  // "unk_token" and its like with the token's text, in the order of kSpecialTokenKeys.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder, by id

  // The text of a special token, or null.
  const std::string* SpecialToken(std::string_view key) const;
};

inline constexpr const char* kSpecialTokenKeys[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// kInvalidArgument or kCorruptData names file and key. Throws std::bad_alloc.
Result<TokenizerConfig> ReadTokenizerConfig(const JsonValue& json);

// Tells in the decisions where the file contradicts a tokenizer that was read from `file`, which
// counts; takes over model_max_length.
void CompareWithConfig(const TokenizerConfig& config, const std::string& file,
                       TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_
