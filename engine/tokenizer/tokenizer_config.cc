// SPDX-License-Identifier: Apache-2.0
//
// Reads tokenizer_config.json and compares it with a tokenizer.

#include "engine/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/quoted.h"
#include "engine/io/json_members.h"
#include "engine/tokenizer/byte_trie.h"

namespace encore::inline v0_1::internal {
namespace {

// Lengths from here on mean that there is no limit: transformers writes int(1e30).
constexpr double kNoLimit = 1e15;

// A special token is a string, or an object with its flags.
void ReadSpecialToken(JsonMembers* members, const char* key, TokenizerConfig* config) {
  if (!members->Has(key)) return;
  const JsonValue* token = members->Find(key);
  if (token->is_object()) token = token->Find("content");
  if (token == nullptr || !token->is_string()) {
    return members->Refuse(key, "a string, or an object with a content");
  }
  config->special_tokens.emplace_back(key, token->text());
}

Status ReadAddedToken(const std::string& id, const JsonValue& json, const std::string& where,
                      TokenizerConfig* config) {
  uint32_t number = 0;
  const auto read = std::from_chars(id.data(), id.data() + id.size(), number);
  if (read.ec != std::errc() || read.ptr != id.data() + id.size() || number > ByteTrie::kMaxValue) {
    return InvalidArgument(where + ": found the key " + Quoted(id) + "; wanted an id of at most " +
                           std::to_string(ByteTrie::kMaxValue));
  }
  JsonMembers members(json, where + ": " + id);
  AddedToken token;
  token.id = static_cast<int32_t>(number);
  token.content = members.RequiredString("content");
  token.special = members.Bool("special", false);
  token.normalized = members.Bool("normalized", !token.special);
  token.single_word = members.Bool("single_word", false);
  token.lstrip = members.Bool("lstrip", false);
  token.rstrip = members.Bool("rstrip", false);
  if (token.content.empty()) members.Refuse("content", "at least one character");
  config->added_tokens.push_back(std::move(token));
  return members.status();
}

const char* TrueFalse(bool value) { return value ? "true" : "false"; }

}  // namespace

const std::string* TokenizerConfig::SpecialToken(std::string_view key) const {
  for (const auto& [name, token] : special_tokens) {
    if (name == key) return &token;
  }
  return nullptr;
}

Result<TokenizerConfig> ReadTokenizerConfig(const JsonValue& json) {
  TokenizerConfig config;
  JsonMembers members(json, config.file);
  config.tokenizer_class = members.String("tokenizer_class", "");
  config.do_lower_case = members.OptionalBool("do_lower_case");
  config.strip_accents = members.OptionalBool("strip_accents");
  config.tokenize_chinese_chars = members.OptionalBool("tokenize_chinese_chars");
  const double length = members.OptionalNumber("model_max_length").value_or(kNoLimit);
  if (!(length >= 1) || (length < kNoLimit && length != std::floor(length))) {
    members.Refuse("model_max_length", "a whole number of at least 1");
  } else if (length < kNoLimit) {
    config.model_max_length = static_cast<size_t>(length);
  }
  for (const char* const key : kSpecialTokenKeys) ReadSpecialToken(&members, key, &config);
  const bool has_added = members.Has("added_tokens_decoder");
  if (!members.ok()) return members.status();
  if (has_added) {
    const JsonValue& added = members.RequiredObject("added_tokens_decoder");
    if (!members.ok()) return members.status();
    for (const auto& [id, token] : added.members()) {
      Status status = ReadAddedToken(id, token, config.file + ": added_tokens_decoder", &config);
      if (!status.ok()) return status;
    }
    std::sort(config.added_tokens.begin(), config.added_tokens.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  }
  return config;
}

void CompareWithConfig(const TokenizerConfig& config, const std::string& file,
                       TokenizerParts* parts) {
  parts->model_max_length = config.model_max_length;
  const auto tell = [&](const char* what, const std::string& counts, const std::string& key,
                        const std::string& says) {
    parts->decisions.push_back(
        {what, counts, file + " counts; " + config.file + " says " + key + " " + says});
  };
  const auto compare = [&](const char* what, bool counts, const char* key,
                           const std::optional<bool>& says) {
    if (says && *says != counts) tell(what, counts ? "yes" : "no", key, TrueFalse(*says));
  };
  const NormalizerFacts& facts = parts->facts;
  compare("lower case", facts.lowercase, "do_lower_case", config.do_lower_case);
  if (facts.is_bert) {
    compare("Chinese characters apart", facts.handle_chinese_chars, "tokenize_chinese_chars",
            config.tokenize_chinese_chars);
    compare("accents removed", facts.strip_accents.value_or(facts.bert_lowercase), "strip_accents",
            config.strip_accents);
  }
  const auto in_template = [&](const std::string& token) {
    const std::vector<TemplatePiece>& pieces = parts->post_template.single;
    const AddedToken* const added = parts->added_tokens.Find(token);
    const std::optional<int32_t> id =
        added != nullptr ? std::optional<int32_t>(added->id) : parts->model->TokenToId(token);
    return id && std::any_of(pieces.begin(), pieces.end(), [&](const TemplatePiece& piece) {
             return piece.kind == TemplatePiece::Kind::kToken && piece.id == *id;
           });
  };
  for (const auto& [key, token] : config.special_tokens) {
    if (key == "unk_token" && token != parts->unk_token) {
      tell("unknown token", parts->unk_token, key, Quoted(token));
    }
    if ((key == "cls_token" || key == "sep_token") && !in_template(token)) {
      tell("template", "without " + Quoted(token), key, Quoted(token));
    }
  }
  for (const AddedToken& token : config.added_tokens) {
    const AddedToken* const found = parts->added_tokens.Find(token.content);
    if (found != nullptr && found->id == token.id) continue;
    tell("added tokens", Quoted(token.content) + " ignored", "added_tokens_decoder",
         "it is " + std::to_string(token.id));
  }
}

}  // namespace encore::internal
