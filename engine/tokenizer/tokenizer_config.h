// SPDX-License-Identifier: Apache-2.0
//
// tokenizer_config.json, which transformers writes beside tokenizer.json or a vocabulary, and the
// two files that older versions wrote beside it: special_tokens_map.json and added_tokens.json.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// A special token with its key. One that is null in the file has no content: the class's default
// does not hold.
struct SpecialToken {
  std::string key;
  AddedToken token;         // the id is not known
  bool is_object = false;   // in tokenizer_config.json; a token of added_tokens.json is not special
                            // by its name then
  bool from_class = false;  // the class alone names it
};
inline constexpr const char* kSpecialTokenKeys[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
bool IsSpecialTokenKey(std::string_view key);
// The token of a key, or null.
const SpecialToken* FindToken(const std::vector<SpecialToken>& tokens, std::string_view key);

// What the files say of the tokenizer; nothing where they say nothing.
struct TokenizerConfig {
  std::string file = "tokenizer_config.json";
  std::optional<bool> do_lower_case;
  std::optional<bool> strip_accents;
  std::optional<bool> tokenize_chinese_chars;
  std::optional<bool> clean_text;
  std::optional<bool> keep_accents;
  std::optional<bool> split_by_punct;
  std::optional<bool> add_prefix_space;
  std::optional<bool> trim_offsets;
  std::optional<bool> legacy;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> cut_start;  // truncation_side is left
  bool split_special_tokens = false;
  size_t extra_ids = 100;                  // T5's
  std::optional<size_t> unk_id;            // DeBERTa's, where the vocabulary does not say it
  std::optional<size_t> model_max_length;  // "no limit" is nothing too
  // "unk_token" and its like, in the order of kSpecialTokenKeys; then other keys that end in
  // _token, and the members of extra_special_tokens where that is an object, in the order of the
  // file.
  std::vector<SpecialToken> special_tokens;
  // extra_special_tokens, else additional_special_tokens; nothing where neither is there.
  std::optional<std::vector<AddedToken>> extra_tokens;
  // added_tokens_decoder, by id. Nothing without the key: tokenizer.json's and added_tokens.json's
  // count then.
  std::optional<std::vector<AddedToken>> added_tokens;
  std::vector<AddedToken> old_added_tokens;  // of added_tokens.json
  // Of no file: those that are tokens already become special ones, so that texts hold them whole.
  std::vector<std::string> whole_tokens;
};

// kInvalidArgument or kCorruptData names file and key. Throws std::bad_alloc.
Result<TokenizerConfig> ReadTokenizerConfig(const JsonValue& json);
// The older files, which count only without added_tokens_decoder: the special tokens of one take
// the place of the config's. Errors as above.
Status ReadSpecialTokensMap(const JsonValue& json, TokenizerConfig* config);
Status ReadOldAddedTokens(const JsonValue& json, TokenizerConfig* config);

// For tokenizers that are taken from `file` as it is: notes in the decisions where the config
// contradicts it.
void CompareWithConfig(const TokenizerConfig& config, const std::string& file,
                       TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_CONFIG_H_
