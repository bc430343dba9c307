// SPDX-License-Identifier: Apache-2.0
//
// The list of added tokens while a tokenizer is made: tokens come from several files, some more
// than once.

#ifndef ENCORE_ENGINE_TOKENIZER_ADDED_TOKEN_LIST_H_
#define ENCORE_ENGINE_TOKENIZER_ADDED_TOKEN_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/model.h"

namespace encore::inline v0_1::internal {

// Adds as `tokenizers` does: a token's id is the model's, else the next one after all others,
// whatever id it comes with. Of a token that is added again the last flags count, but what was
// special once stays so.
class AddedTokenList {
 public:
  explicit AddedTokenList(const Model& model) : model_(model) {}

  // Throws std::bad_alloc.
  void Add(AddedToken token);
  void Add(const std::vector<AddedToken>& tokens);
  // The token of this content, or null.
  const AddedToken* Find(const std::string& content) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  const Model& model_;
  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, size_t> places_;
  int64_t max_id_ = -1;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_ADDED_TOKEN_LIST_H_
