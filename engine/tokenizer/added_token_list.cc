// SPDX-License-Identifier: Apache-2.0
//
// Adds tokens in the order in which the files have them.

#include "engine/tokenizer/added_token_list.h"

#include <algorithm>
#include <utility>

namespace encore::inline v0_1::internal {

const AddedToken* AddedTokenList::Find(const std::string& content) const {
  const auto found = places_.find(content);
  return found == places_.end() ? nullptr : &tokens_[found->second];
}

void AddedTokenList::Add(AddedToken token) {
  const auto [place, is_new] = places_.emplace(token.content, tokens_.size());
  if (!is_new) {
    AddedToken& known = tokens_[place->second];
    token.id = known.id;
    token.special |= known.special;
    known = std::move(token);
    return;
  }
  const int64_t next = std::max(max_id_ + 1, static_cast<int64_t>(model_.token_count()));
  token.id = model_.TokenToId(token.content).value_or(static_cast<int32_t>(next));
  max_id_ = std::max<int64_t>(max_id_, token.id);
  tokens_.push_back(std::move(token));
}

void AddedTokenList::Add(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) Add(token);
}

}  // namespace encore::internal
