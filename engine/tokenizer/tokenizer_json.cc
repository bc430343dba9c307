// SPDX-License-Identifier: Apache-2.0
//
// Reads the components in the order in which they need each other.

#include "engine/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>

#include "engine/base/once.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json.h"
#include "engine/tokenizer/added_token_list.h"
#include "engine/tokenizer/class_recipe.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

// Steps that each make a text a few times as long would make it as long as memory is large. The
// largest factor among published tokenizers is in the hundreds.
constexpr unsigned kMaxGrowth = 65536;

Status CheckGrowth(const std::string& file, const TokenizerParts& parts) {
  const double growth = parts.normalizer.Growth() * parts.pre_tokenizer.Growth();
  if (growth <= kMaxGrowth) return {};
  const auto times = static_cast<uint64_t>(std::min(growth, 1e18));
  return Status(ErrorCode::kUnsupported,
                file + ": normalizer and pre_tokenizer can make a text " + std::to_string(times) +
                    " times as long; wanted at most " + std::to_string(kMaxGrowth) + " times");
}

// The member, or null.
const JsonValue& FindOrNull(const JsonValue& json, std::string_view key) {
  static constinit Once<JsonValue> null;
  const JsonValue* const value = json.Find(key);
  return value == nullptr ? null.Get([] { return JsonValue(); }) : *value;
}

// The Precompiled normalizer of the file, in the order of a list or alone, as JSON; empty if there
// is none.
Result<std::string> CharsmapJson(const JsonValue& normalizer) {
  const auto is_precompiled = [](const JsonValue& json) {
    if (!json.is_object()) return false;
    const JsonValue& type = FindOrNull(json, "type");
    return type.is_string() && type.text() == "Precompiled" &&
           FindOrNull(json, "precompiled_charsmap").is_string();
  };
  const JsonValue* found = is_precompiled(normalizer) ? &normalizer : nullptr;
  if (found == nullptr && normalizer.is_object()) {
    const JsonValue& list = FindOrNull(normalizer, "normalizers");
    if (!list.is_array()) return std::string();
    const auto at = std::find_if(list.items().begin(), list.items().end(), is_precompiled);
    if (at == list.items().end()) return std::string();
    found = &*at;
  }
  if (found == nullptr) return std::string();
  ENCORE_ASSIGN_OR_RETURN(const std::string map,
                          JsonString(found->Find("precompiled_charsmap")->text()));
  return R"({"type": "Precompiled", "precompiled_charsmap": )" + map + "}";
}

// What stands in the files, or what the class makes in its place.
struct Components {
  JsonValue normalizer, pre_tokenizer, model;
  bool by_class = false;
};

Result<Components> MakeComponents(const JsonValue& file, const TokenizerClass& which,
                                  const TokenizerConfig& config,
                                  const std::vector<NamedToken>& named) {
  Components made;
  made.by_class = true;
  ENCORE_ASSIGN_OR_RETURN(const std::string charsmap, CharsmapJson(FindOrNull(file, "normalizer")));
  const JsonValue& model = FindOrNull(file, "model");
  ENCORE_ASSIGN_OR_RETURN(
      const std::string settings,
      ModelJson(which.kind, named, model.is_object() ? model.Find("vocab") : nullptr));
  const std::pair<std::string, JsonValue*> texts[] = {
      {NormalizerJson(which.kind, config, charsmap), &made.normalizer},
      {PreTokenizerJson(which.kind, config), &made.pre_tokenizer},
      {settings, &made.model}};
  for (const auto& [text, value] : texts) {
    ENCORE_ASSIGN_OR_RETURN(JsonValue parsed, JsonValue::Parse(text));
    *value = std::move(parsed);
  }
  return made;
}

// Added tokens of all files, then special tokens that are none yet.
Status AddTokens(const TokenizerFile& file, const TokenizerClass& which,
                 const TokenizerConfig& config, bool by_class, std::vector<NamedToken>* named,
                 TokenizerParts* parts) {
  std::vector<AddedToken> written;
  ENCORE_RETURN_IF_ERROR(ReadAddedTokens(FindOrNull(file.json, "added_tokens"), file.name,
                                         !by_class, *parts->model, &written));
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
  const size_t told = more.size();
  // One that a file lists as an added token, or null; those that are appended below are none.
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < told; ++i) places.emplace(more[i].content, i);
  const auto find_told = [&](const std::string& content) -> AddedToken* {
    const auto found = places.find(content);
    return found == places.end() ? nullptr : &more[found->second];
  };
  std::vector<AddedToken> extra = config.extra_tokens.value_or(std::vector<AddedToken>());
  if (!config.extra_tokens) extra = ExtraTokens(which.kind, config);
  for (NamedToken& token : *named) {
    const std::string& content = token.token.content;
    if (content.empty()) continue;
    if (AddedToken* const known = find_told(content)) {
      known->special = true;
      token.from_class = false;
    } else if (list.Find(content) == nullptr) {
      more.push_back(token.token);
    }
  }
  for (const AddedToken& token : extra) {
    const bool known = list.Find(token.content) != nullptr || find_told(token.content) != nullptr;
    if (!known) more.push_back(token);
  }
  list.Add(more);
  if (which.kind == TokenizerKind::kQwen2) {
    // Once more, with no flags but that they are special.
    const auto again = [&](const std::string& content) {
      AddedToken token;
      token.content = content;
      token.special = true;
      token.normalized = false;
      if (!content.empty()) list.Add(std::move(token));
    };
    for (const NamedToken& token : *named) again(token.token.content);
    for (const AddedToken& token : extra) again(token.content);
  }
  for (size_t i = 0; i < told; ++i) {
    const int32_t id = list.Find(more[i].content)->id;
    if (id == more[i].id) continue;
    parts->decisions.push_back({"added tokens",
                                Quoted(more[i].content) + " is " + std::to_string(id),
                                "the next free id; a file says " + std::to_string(more[i].id)});
  }
  const std::string where = file.name + ": added_tokens";
  ENCORE_ASSIGN_OR_RETURN(AddedTokens added,
                          AddedTokens::Create(list.tokens(), parts->normalizer, where));
  parts->added_tokens = std::move(added);
  parts->decisions.push_back({"added tokens", std::to_string(list.tokens().size()),
                              where + (config.added_tokens ? " and " + config.file : "")});
  return {};
}

// Which end of a text that is too long is kept.
Status ReadTruncation(const JsonValue& json, const std::string& file, const TokenizerConfig& config,
                      TokenizerParts* parts) {
  std::string source = config.file + ": truncation_side";
  if (config.cut_start) {
    parts->cut_start = *config.cut_start;
  } else if (!json.is_null()) {
    JsonMembers members(json, file + ": truncation");
    const std::string direction = members.String("direction", "Right");
    if (direction != "Left" && direction != "Right") members.Refuse("direction", "Left or Right");
    if (!members.ok()) return members.status();
    parts->cut_start = direction == "Left";
    source = file + ": truncation: direction";
  }
  if (parts->cut_start) {
    parts->decisions.push_back({"texts that are too long", "lose their first tokens", source});
  }
  return {};
}

// bos_token and eos_token where no tokenizer.json has a template: GPT-2's way.
Status SetBosEosTemplate(const TokenizerConfig& config, const std::vector<NamedToken>& named,
                         TokenizerParts* parts) {
  using Piece = TemplatePiece;
  PostTemplate& post = parts->post_template;
  const auto id = [&](const char* key) -> std::optional<int32_t> {
    const AddedToken* const token = parts->added_tokens.Find(ContentOf(named, key));
    return token == nullptr ? std::optional<int32_t>() : token->id;
  };
  const std::optional<int32_t> bos =
      config.add_bos_token.value_or(false) ? id("bos_token") : std::nullopt;
  const std::optional<int32_t> eos =
      config.add_eos_token.value_or(false) ? id("eos_token") : std::nullopt;
  const auto put = [&](std::vector<Piece>* pieces, Piece::Kind kind, uint8_t type) {
    if (bos) pieces->push_back({Piece::Kind::kToken, *bos, type});
    pieces->push_back({kind, 0, type});
    if (eos) pieces->push_back({Piece::Kind::kToken, *eos, type});
  };
  post.single.clear();
  put(&post.single, Piece::Kind::kFirst, 0);
  post.pair = post.single;
  put(&post.pair, Piece::Kind::kSecond, 1);
  DescribeTemplate(config.file, parts);
  return {};
}

// Whether a class has its model from the older files: LLaMA's and Gemma's are sentencepiece's.
bool ReadsVocabulary(TokenizerKind kind, std::string_view model) {
  return ModelOf(kind) == model && kind != TokenizerKind::kLlama && kind != TokenizerKind::kGemma;
}

void TellClass(const TokenizerClass& which, const std::string& file, bool by_class,
               const std::string& found_model, TokenizerParts* parts) {
  std::vector<Decision>& decisions = parts->decisions;
  if (by_class) {
    decisions.push_back({"tokenizer",
                         "vocabulary as written, the rest as " + which.name + " makes it",
                         file + "; " + which.source});
    return;
  }
  decisions.push_back({"tokenizer", "as written", file});
  if (which.kind == TokenizerKind::kOther || !ModelOf(which.kind).empty()) {
    decisions.push_back(
        {"ignored",
         "what transformers makes of " + which.name +
             (which.kind == TokenizerKind::kOther ? " itself"
                                                  : ", whose model is not " + found_model) +
             "; sentence-transformers may have other ids",
         which.source});
  }
}

}  // namespace

Result<TokenizerParts> ReadTokenizerJson(const TokenizerFile& file, const TokenizerClass& which,
                                         const TokenizerConfig& config,
                                         const TokenizerOptions& options) {
  if (which.kind == TokenizerKind::kPython) {
    return Status(ErrorCode::kUnsupported,
                  which.source + " is " + Quoted(which.name) +
                      ", whose code is Python; encore has tokenizers that `tokenizers` computes");
  }
  JsonMembers members(file.json, file.name);
  TokenizerParts parts;
  if (members.String("version", "1.0") != "1.0") members.Refuse("version", "'1.0'");
  const JsonValue& model = members.RequiredObject("model");
  if (!members.ok()) return members.status();
  const std::string_view wanted = ModelOf(which.kind);
  const std::string found = ModelType(model);
  if (file.is_vocabulary && !ReadsVocabulary(which.kind, found)) {
    return Status(ErrorCode::kUnsupported,
                  which.source + ": the tokenizer's class is " + Quoted(which.name) +
                      "; encore reads " + file.name + " of " +
                      (found == "BPE" ? "RobertaTokenizer, GPT2Tokenizer, Qwen2Tokenizer, "
                                        "HerbertTokenizer"
                                      : "BertTokenizer, MPNetTokenizer, FunnelTokenizer") +
                      " and their kin, others from tokenizer.json");
  }
  std::vector<NamedToken> named = NamedTokens(which.kind, config);
  Components own;
  if (!wanted.empty() && wanted == found) {
    ENCORE_ASSIGN_OR_RETURN(Components made, MakeComponents(file.json, which, config, named));
    own = std::move(made);
  }
  const bool by_class = own.by_class;
  TellClass(which, file.name, by_class, found, &parts);
  if (!by_class && !wanted.empty()) named = NamedTokens(TokenizerKind::kAsWritten, config);
  const JsonValue& normalizer = FindOrNull(file.json, "normalizer");
  const JsonValue& pre_tokenizer = FindOrNull(file.json, "pre_tokenizer");
  const JsonValue& post_processor = FindOrNull(file.json, "post_processor");
  const std::string& source = by_class ? which.name : file.name;
  Status status =
      ReadNormalizer(by_class ? own.normalizer : normalizer, source, options.lowercase, &parts);
  if (status.ok()) {
    status = ReadPreTokenizer(by_class ? own.pre_tokenizer : pre_tokenizer, source, &parts);
  }
  if (status.ok()) status = CheckGrowth(file.name, parts);
  if (status.ok()) status = ReadModel(model, file.name, &parts, by_class ? &own.model : nullptr);
  if (status.ok()) status = AddTokens(file, which, config, by_class, &named, &parts);
  const bool keeps_class = by_class || which.kind == TokenizerKind::kConvBert;
  const bool file_counts = which.kind == TokenizerKind::kAlbert && !post_processor.is_null();
  if (status.ok() && keeps_class && HasTemplate(which.kind) && !file_counts) {
    status = SetClassTemplate(which, config, named, &parts);
  } else if (status.ok() && file.is_vocabulary) {
    status = SetBosEosTemplate(config, named, &parts);
  } else if (status.ok()) {
    status = ReadPostProcessor(post_processor, file.name, &parts);
  }
  if (status.ok())
    status = ReadTruncation(FindOrNull(file.json, "truncation"), file.name, config, &parts);
  for (const char* const key : {"truncation", "padding"}) {
    if (members.Has(key)) parts.decisions.push_back({key, "ignored", file.name + ": " + key});
  }
  for (const char* const key :
       {"normalizer", "pre_tokenizer", "added_tokens", "post_processor", "decoder"}) {
    members.Ignore(key);  // read above; the decoder is the way back, from tokens to text
  }
  if (status.ok()) status = RefuseUnread(members);
  if (!status.ok()) return status;
  parts.model_max_length = config.model_max_length;
  parts.plain_text = config.split_special_tokens;
  if (parts.plain_text) {
    parts.decisions.push_back(
        {"special tokens in texts", "ordinary text", config.file + ": split_special_tokens"});
  }
  if (!by_class) CompareWithConfig(config, file.name, &parts);
  return parts;
}

}  // namespace encore::internal
