// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "added_tokens".

#include <set>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

Result<AddedToken> ReadOne(const JsonValue& json, const std::string& where) {
  JsonMembers members(json, where);
  AddedToken token;
  token.content = members.RequiredString("content");
  const size_t id = members.RequiredSize("id");
  token.special = RequiredBool(&members, "special");
  token.normalized = RequiredBool(&members, "normalized");
  token.single_word = RequiredBool(&members, "single_word");
  token.lstrip = RequiredBool(&members, "lstrip");
  token.rstrip = RequiredBool(&members, "rstrip");
  if (token.content.empty()) members.Refuse("content", "at least one character");
  if (id > ByteTrie::kMaxValue)
    members.Refuse("id", "at most " + std::to_string(ByteTrie::kMaxValue));
  if (!members.ok()) return members.status();
  ENCORE_RETURN_IF_ERROR(RefuseUnread(members));
  token.id = static_cast<int32_t>(id);
  return token;
}

}  // namespace

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

}  // namespace encore::internal
