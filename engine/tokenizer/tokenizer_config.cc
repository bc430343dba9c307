// SPDX-License-Identifier: Apache-2.0
//
// Reads tokenizer_config.json, special_tokens_map.json and added_tokens.json, and compares them
// with a tokenizer.

#include "engine/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"
#include "engine/tokenizer/byte_trie.h"

namespace encore::inline v0_1::internal {
namespace {

// Lengths from here on mean that there is no limit: transformers writes int(1e30).
constexpr double kNoLimit = 1e15;
// T5 has 100 extra ids, and no class more than some dozens of special tokens with names.
constexpr size_t kMaxExtraIds = 10000;
constexpr size_t kMaxNamed = 1000;

void ReadFlags(JsonMembers* members, AddedToken* token) {
  token->content = members->RequiredString("content");
  token->normalized = members->Bool("normalized", !token->special);
  token->single_word = members->Bool("single_word", false);
  token->lstrip = members->Bool("lstrip", false);
  token->rstrip = members->Bool("rstrip", false);
}

// A special token is a string, or an object with its flags.
std::optional<AddedToken> ReadToken(const JsonValue& json, const std::string& where) {
  if (json.is_string()) return AddedToken::Special(json.text());
  if (!json.is_object()) return {};
  JsonMembers members(json, where);
  AddedToken token;
  token.special = true;
  ReadFlags(&members, &token);
  if (!members.ok()) return {};
  return token;
}

void SetSpecial(SpecialToken token, TokenizerConfig* config) {
  for (SpecialToken& known : config->special_tokens) {
    if (known.key != token.key) continue;
    known = std::move(token);
    return;
  }
  config->special_tokens.push_back(std::move(token));
}

// `key`: of the token, or in an object of tokens.
void ReadSpecial(const std::string& key, const JsonValue& json, JsonMembers* members,
                 TokenizerConfig* config) {
  if (json.is_null()) return SetSpecial({key, {}}, config);
  std::optional<AddedToken> token = ReadToken(json, members->where() + ": " + key);
  if (!token) return members->Refuse(key, "a string, or an object with a content");
  if (config->special_tokens.size() == kMaxNamed) {
    return members->Refuse(key, "at most " + std::to_string(kMaxNamed) + " keys of tokens");
  }
  const bool is_object = json.is_object() && members->where() == config->file;
  SetSpecial({key, *std::move(token), is_object}, config);
}

void ReadExtraTokens(const char* key, JsonMembers* members, TokenizerConfig* config) {
  const JsonValue* const json = members->Find(key);
  if (json == nullptr) return;
  if (json->is_object()) {
    for (const auto& [name, token] : json->members()) ReadSpecial(name, token, members, config);
    return;
  }
  std::vector<AddedToken> tokens = config->extra_tokens.value_or(std::vector<AddedToken>());
  if (json->is_array()) {
    for (const JsonValue& item : json->items()) {
      std::optional<AddedToken> token = ReadToken(item, members->where() + ": " + key);
      if (!token) return members->Refuse(key, "strings, or objects with a content");
      if (!token->content.empty()) tokens.push_back(*std::move(token));
    }
  } else if (!json->is_null()) {
    return members->Refuse(key, "an array or an object of tokens");
  }
  config->extra_tokens = std::move(tokens);
}

// What tokenizer_config.json and special_tokens_map.json both may have.
void ReadSpecialTokens(const JsonValue& json, JsonMembers* members, TokenizerConfig* config) {
  for (const char* const key : kSpecialTokenKeys) {
    const JsonValue* const token = members->Find(key);
    if (token != nullptr) ReadSpecial(key, *token, members, config);
  }
  for (const auto& [key, value] : json.members()) {
    const bool other = key.ends_with("_token") && value.is_string() && !IsSpecialTokenKey(key);
    if (other) ReadSpecial(key, value, members, config);
  }
  ReadExtraTokens("extra_special_tokens", members, config);
  if (config->extra_tokens.value_or(std::vector<AddedToken>()).empty()) {
    ReadExtraTokens("additional_special_tokens", members, config);
  }
}

Result<int32_t> IdOf(uint64_t number, const std::string& where, const std::string& found) {
  if (number <= ByteTrie::kMaxValue) return static_cast<int32_t>(number);
  return InvalidArgument(where + ": found the id " + found + "; wanted at most " +
                         std::to_string(ByteTrie::kMaxValue));
}

Result<AddedToken> ReadAddedToken(const std::string& id, const JsonValue& json,
                                  const std::string& where) {
  uint64_t number = 0;
  const auto read = std::from_chars(id.data(), id.data() + id.size(), number);
  if (read.ec != std::errc() || read.ptr != id.data() + id.size()) {
    return InvalidArgument(where + ": found the key " + Quoted(id) + "; wanted an id");
  }
  ENCORE_ASSIGN_OR_RETURN(const int32_t checked, IdOf(number, where, id));
  JsonMembers members(json, where + ": " + id);
  AddedToken token;
  token.id = checked;
  token.special = members.Bool("special", false);
  ReadFlags(&members, &token);
  if (token.content.empty()) members.Refuse("content", "at least one character");
  if (!members.ok()) return members.status();
  return token;
}

void ReadTruncationSide(JsonMembers* members, TokenizerConfig* config) {
  const std::optional<std::string> side = members->OptionalString("truncation_side");
  if (!side) return;
  if (*side != "left" && *side != "right") members->Refuse("truncation_side", "left or right");
  config->cut_start = *side == "left";
}

const char* TrueFalse(bool value) { return value ? "true" : "false"; }

}  // namespace

bool IsSpecialTokenKey(std::string_view key) {
  return std::any_of(std::begin(kSpecialTokenKeys), std::end(kSpecialTokenKeys),
                     [key](const char* known) { return key == known; });
}

const SpecialToken* FindToken(const std::vector<SpecialToken>& tokens, std::string_view key) {
  const auto found = std::find_if(tokens.begin(), tokens.end(),
                                  [key](const SpecialToken& token) { return token.key == key; });
  return found == tokens.end() ? nullptr : &*found;
}

Result<TokenizerConfig> ReadTokenizerConfig(const JsonValue& json) {
  TokenizerConfig config;
  JsonMembers members(json, config.file);
  if (!members.ok()) return members.status();
  config.do_lower_case = members.OptionalBool("do_lower_case");
  config.strip_accents = members.OptionalBool("strip_accents");
  config.tokenize_chinese_chars = members.OptionalBool("tokenize_chinese_chars");
  config.clean_text = members.OptionalBool("clean_text");
  config.keep_accents = members.OptionalBool("keep_accents");
  config.split_by_punct = members.OptionalBool("split_by_punct");
  config.add_prefix_space = members.OptionalBool("add_prefix_space");
  config.trim_offsets = members.OptionalBool("trim_offsets");
  config.legacy = members.OptionalBool("legacy");
  config.add_bos_token = members.OptionalBool("add_bos_token");
  config.add_eos_token = members.OptionalBool("add_eos_token");
  config.split_special_tokens = members.Bool("split_special_tokens", false);
  config.extra_ids = members.Size("extra_ids", config.extra_ids);
  if (config.extra_ids > kMaxExtraIds) {
    members.Refuse("extra_ids", "at most " + std::to_string(kMaxExtraIds));
  }
  config.unk_id = members.OptionalSize("unk_id");
  ReadTruncationSide(&members, &config);
  const double length = members.OptionalNumber("model_max_length").value_or(kNoLimit);
  if (!(length >= 1) || (length < kNoLimit && length != std::floor(length))) {
    members.Refuse("model_max_length", "a whole number of at least 1");
  } else if (length < kNoLimit) {
    config.model_max_length = static_cast<size_t>(length);
  }
  ReadSpecialTokens(json, &members, &config);
  if (!members.ok()) return members.status();
  if (!members.Has("added_tokens_decoder")) return config;
  const JsonValue& added = members.RequiredObject("added_tokens_decoder");
  if (!members.ok()) return members.status();
  std::vector<AddedToken> tokens;
  for (const auto& [id, token] : added.members()) {
    ENCORE_ASSIGN_OR_RETURN(AddedToken read,
                            ReadAddedToken(id, token, config.file + ": added_tokens_decoder"));
    tokens.push_back(std::move(read));
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  config.added_tokens = std::move(tokens);
  return config;
}

Status ReadSpecialTokensMap(const JsonValue& json, TokenizerConfig* config) {
  if (config->added_tokens) return {};
  JsonMembers members(json, "special_tokens_map.json");
  if (!members.ok()) return members.status();
  ReadSpecialTokens(json, &members, config);
  return members.status();
}

Status ReadOldAddedTokens(const JsonValue& json, TokenizerConfig* config) {
  if (config->added_tokens) return {};
  const std::string file = "added_tokens.json";
  JsonMembers members(json, file);
  if (!members.ok()) return members.status();
  std::set<std::string_view> names;  // of special tokens
  for (const SpecialToken& token : config->special_tokens) {
    if (IsSpecialTokenKey(token.key) && !token.is_object) names.insert(token.token.content);
  }
  if (config->extra_tokens) {
    for (const AddedToken& token : *config->extra_tokens) names.insert(token.content);
  }
  for (const auto& [content, id] : json.members()) {
    uint64_t number = 0;
    if (content.empty() || !id.AsUnsigned(&number)) {
      return InvalidArgument(file + ": " + Quoted(content) + " is " + id.Described() +
                             "; wanted a token and its id");
    }
    ENCORE_ASSIGN_OR_RETURN(const int32_t checked, IdOf(number, file, id.Described()));
    AddedToken token;
    if (names.contains(content)) token = AddedToken::Special(content);
    token.content = content;
    token.id = checked;
    config->old_added_tokens.push_back(std::move(token));
  }
  return {};
}

void CompareWithConfig(const TokenizerConfig& config, const std::string& file,
                       TokenizerParts* parts) {
  const auto note = [&](const char* what, const std::string& counts, const std::string& key,
                        const std::string& says) {
    parts->Note(what, counts, file + " counts; " + config.file + " says " + key + " " + says);
  };
  const auto compare = [&](const char* what, bool counts, const char* key,
                           const std::optional<bool>& says) {
    if (says && *says != counts) note(what, counts ? "yes" : "no", key, TrueFalse(*says));
  };
  const NormalizerFacts& facts = parts->facts;
  compare("lower case", facts.bert_lowercase || facts.has_lowercase_step, "do_lower_case",
          config.do_lower_case);
  if (facts.is_bert) {
    compare("Chinese characters apart", facts.handle_chinese_chars, "tokenize_chinese_chars",
            config.tokenize_chinese_chars);
    compare("accents removed", facts.strip_accents.value_or(facts.bert_lowercase), "strip_accents",
            config.strip_accents);
  }
  const auto in_template = [&](const std::string& token) {
    const std::vector<TemplatePiece>& pieces = parts->post_template.single;
    const std::optional<int32_t> id = parts->IdOf(token);
    return id && std::any_of(pieces.begin(), pieces.end(), [&](const TemplatePiece& piece) {
             return piece.kind == TemplatePiece::Kind::kToken && piece.id == *id;
           });
  };
  for (const SpecialToken& given : config.special_tokens) {
    const std::string& key = given.key;
    const AddedToken& token = given.token;
    if (token.content.empty()) continue;
    if (key == "unk_token" && token.content != parts->unk_token) {
      note("unknown token", parts->unk_token, key, Quoted(token.content));
    }
    if ((key == "cls_token" || key == "sep_token") && !in_template(token.content)) {
      note("template", "without " + Quoted(token.content), key, Quoted(token.content));
    }
  }
}

}  // namespace encore::internal
