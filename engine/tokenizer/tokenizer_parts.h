// SPDX-License-Identifier: Apache-2.0
//
// All that a tokenizer is made of, however its folder spells it.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_PARTS_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_PARTS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/model.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/post_template.h"
#include "engine/tokenizer/pre_tokenizer.h"

namespace encore::inline v0_1::internal {

// The normalizer's settings that tokenizer_config.json has names for.
struct NormalizerFacts {
  bool bert_lowercase = false;      // BertNormalizer's own
  bool has_lowercase_step = false;  // a Lowercase apart from it
  bool handle_chinese_chars = false;
  std::optional<bool> strip_accents;  // as written; nothing: like lowercase
  bool is_bert = false;               // there is a BertNormalizer, whose settings these are
};

struct TokenizerParts {
  Normalizer normalizer;
  NormalizerFacts facts;
  PreTokenizer pre_tokenizer;
  bool byte_level = false;     // the pre-tokenizer ends with ByteLevel: words are spelled in bytes
  bool needs_origins = false;  // the pre-tokenizer goes by places of the original text
  bool marks_start = false;    // the text begins with U+2581, and has spaces for others of it
  std::unique_ptr<const Model> model;
  std::string unk_token;
  AddedTokens added_tokens;
  std::vector<std::pair<std::string, int32_t>> special_ids;  // by keys, "mask_token"
  PostTemplate post_template;
  std::optional<size_t> model_max_length;
  bool cut_start = false;   // a text that is too long loses its first tokens
  bool plain_text = false;  // special tokens in texts are ordinary text
  std::vector<Decision> decisions;

  // Of the added tokens, else of the model; nothing, or empty, if there is none.
  std::optional<int32_t> IdOf(std::string_view token) const;
  std::string_view TokenOf(int32_t id) const;

  void Note(std::string what, std::string value, std::string source) {
    decisions.push_back({std::move(what), std::move(value), std::move(source)});
  }
};

// All memory that it holds, its scratch included.
size_t MemoryOf(const Tokens& tokens);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_PARTS_H_
