// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "added_tokens"; and those of the other files and of the tokenizer's class with
// them.

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/class_recipe.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

Result<AddedToken> ReadOne(const JsonValue& json, const std::string& where) {
  JsonMembers members(json, where);
  AddedToken token;
  token.content = members.RequiredString("content");
  const size_t id = members.RequiredSize("id");
  token.special = members.RequiredBool("special");
  token.normalized = members.RequiredBool("normalized");
  token.single_word = members.RequiredBool("single_word");
  token.lstrip = members.RequiredBool("lstrip");
  token.rstrip = members.RequiredBool("rstrip");
  if (token.content.empty()) members.Refuse("content", "at least one character");
  if (id > ByteTrie::kMaxValue)
    members.Refuse("id", "at most " + std::to_string(ByteTrie::kMaxValue));
  if (!members.ok()) return members.status();
  ENCORE_RETURN_IF_ERROR(RefuseUnread(members));
  token.id = static_cast<int32_t>(id);
  return token;
}

// With `check_ids`, a token must have the id that `tokenizers` gives it.
Status ReadAddedTokens(const JsonValue& json, const std::string& file, bool check_ids,
                       const Model& model, std::vector<AddedToken>* tokens) {
  const std::string where = file + ": added_tokens";
  if (json.is_null()) return {};
  if (!json.is_array()) {
    return InvalidArgument(where + " is " + json.Described() + "; wanted an array");
  }
  std::set<std::string, std::less<>> contents;
  std::set<int32_t> ids;
  // What `tokenizers` gives the next token that the model does not have.
  size_t next_id = model.token_count();
  for (size_t i = 0; i < json.items().size(); ++i) {
    const std::string here = where + "[" + std::to_string(i) + "]";
    ENCORE_ASSIGN_OR_RETURN(AddedToken token, ReadOne(json.items()[i], here));
    if (!contents.insert(token.content).second) {
      return InvalidArgument(here + ": " + Quoted(token.content) + " is there twice");
    }
    // The id is not ours to choose: `tokenizers` takes the model's, or counts on from its size.
    const std::optional<int32_t> known = model.TokenToId(token.content);
    const int64_t wanted = known ? *known : static_cast<int64_t>(next_id++);
    if (check_ids && token.id != wanted) {
      return InvalidArgument(here + ": " + Quoted(token.content) + " has id " +
                             std::to_string(token.id) + "; wanted " + std::to_string(wanted) +
                             (known ? ", the model's" : ", the next one"));
    }
    const bool is_taken = !known && !model.IdToToken(token.id).empty();
    if (check_ids && (!ids.insert(token.id).second || is_taken)) {
      return InvalidArgument(here + ": id " + std::to_string(token.id) +
                             " belongs to another token");
    }
    tokens->push_back(std::move(token));
  }
  return {};
}

// Adds as `tokenizers` does: a token's id is the model's, else the next one after all others,
// whatever id it comes with. Of a token that is added again the last flags count, but what was
// special once stays so.
class AddedTokenList {
 public:
  explicit AddedTokenList(const Model& model) : model_(model) {}

  // Throws std::bad_alloc.
  void Add(AddedToken token) {
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
  void Add(const std::vector<AddedToken>& tokens) {
    for (const AddedToken& token : tokens) Add(token);
  }
  // The token of this content, or null.
  const AddedToken* Find(const std::string& content) const {
    const auto found = places_.find(content);
    return found == places_.end() ? nullptr : &tokens_[found->second];
  }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  const Model& model_;
  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, size_t> places_;
  int64_t max_id_ = -1;
};

}  // namespace

Status AddTokens(const JsonValue& json, const std::string& file, const TokenizerClass& which,
                 const TokenizerConfig& config, bool by_class, std::vector<SpecialToken>* named,
                 TokenizerParts* parts) {
  std::vector<AddedToken> written;
  ENCORE_RETURN_IF_ERROR(ReadAddedTokens(json, file, !by_class, *parts->model, &written));
  AddedTokenList list(*parts->model);
  if (!by_class) list.Add(written);

  std::vector<AddedToken> more;
  if (config.added_tokens) {
    more = *config.added_tokens;
  } else {
    more = written;
    std::set<int32_t> ids;
    for (const AddedToken& token : written) ids.insert(token.id);
    for (const AddedToken& token : config.old_added_tokens) {
      if (!ids.contains(token.id)) more.push_back(token);
    }
    std::stable_sort(more.begin(), more.end(),
                     [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  }
  const size_t given = more.size();
  // One that a file lists as an added token, or null; those that are appended below are none.
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < given; ++i) places.emplace(more[i].content, i);
  const auto find_given = [&](const std::string& content) -> AddedToken* {
    const auto found = places.find(content);
    return found == places.end() ? nullptr : &more[found->second];
  };
  std::vector<AddedToken> extra = config.extra_tokens.value_or(std::vector<AddedToken>());
  if (!config.extra_tokens) extra = ExtraTokens(which.kind, config);
  for (SpecialToken& token : *named) {
    const std::string& content = token.token.content;
    if (content.empty()) continue;
    if (AddedToken* const known = find_given(content)) {
      known->special = true;
      token.from_class = false;
    } else if (list.Find(content) == nullptr) {
      more.push_back(token.token);
    }
  }
  for (const AddedToken& token : extra) {
    const bool known = list.Find(token.content) != nullptr || find_given(token.content) != nullptr;
    if (!known) more.push_back(token);
  }
  if (which.kind == TokenizerKind::kSiglip) {  // which finds all of them in the raw text
    for (AddedToken& token : more) token.normalized = false;
  }
  list.Add(more);
  if (which.kind == TokenizerKind::kQwen2) {
    // Once more, with no flags but that they are special.
    const auto again = [&](const std::string& content) {
      if (!content.empty()) list.Add(AddedToken::Special(content));
    };
    for (const SpecialToken& token : *named) again(token.token.content);
    for (const AddedToken& token : extra) again(token.content);
  }
  for (const AddedToken& token : extra) {
    const AddedToken* const known = list.Find(token.content);
    if (known != nullptr) parts->special_ids.emplace_back("extra_special_tokens", known->id);
  }
  if (which.kind == TokenizerKind::kEsm) {
    for (size_t id = 0; id < parts->model->id_limit(); ++id) {
      AddedToken token;
      token.content = parts->model->IdToToken(static_cast<int32_t>(id));
      token.normalized = false;
      if (!token.content.empty() && list.Find(token.content) == nullptr) list.Add(token);
    }
  }
  for (const std::string& content : config.whole_tokens) {
    if (list.Find(content) == nullptr && !parts->model->TokenToId(content)) continue;
    list.Add(AddedToken::Special(content));
    parts->Note("special token", Quoted(content), "prefix of queries or documents");
  }
  for (size_t i = 0; i < given; ++i) {
    const int32_t id = list.Find(more[i].content)->id;
    if (id == more[i].id) continue;
    parts->Note("added tokens", Quoted(more[i].content) + " is " + std::to_string(id),
                "the next free id; a file says " + std::to_string(more[i].id));
  }
  const std::string where = file + ": added_tokens";
  ENCORE_ASSIGN_OR_RETURN(AddedTokens added,
                          AddedTokens::Create(list.tokens(), parts->normalizer, where));
  parts->added_tokens = std::move(added);
  parts->Note("added tokens", std::to_string(list.tokens().size()),
              where + (config.added_tokens ? " and " + config.file : ""));
  return {};
}

}  // namespace encore::internal
