// SPDX-License-Identifier: Apache-2.0
//
// Reads the files that speak of late interaction.

#include "engine/text/late_settings.h"

#include <algorithm>

#include "encore/safetensors.h"
#include "engine/base/status_macros.h"
#include "engine/models/weight_files.h"
#include "engine/text/m3_heads.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kMetadataFile = "artifact.metadata";

// ASCII's punctuation characters, in the order of Python's string.punctuation.
std::vector<std::string> Punctuation() {
  std::vector<std::string> words;
  for (const char c : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) {
    words.emplace_back(1, c);
  }
  return words;
}

// A list of strings, or one string alone.
std::vector<std::string> ReadWords(JsonMembers& members, std::string_view key) {
  std::vector<std::string> words;
  if (!members.Has(key)) return words;
  const JsonValue& value = *members.Find(key);
  if (value.is_string()) return {value.text()};
  for (const JsonValue& item : value.items()) {
    if (!item.is_string()) break;
    words.push_back(item.text());
  }
  if (!value.is_array() || words.size() != value.items().size()) {
    members.Refuse(key, "a list of strings");
  }
  return words;
}

std::vector<int32_t> ReadIds(JsonMembers& members, std::string_view key) {
  std::vector<int32_t> ids;
  if (!members.Has(key)) return ids;
  const JsonValue& value = *members.Find(key);
  for (const JsonValue& item : value.items()) {
    uint64_t id = 0;
    if (!item.AsUnsigned(&id) || id > INT32_MAX) break;
    ids.push_back(static_cast<int32_t>(id));
  }
  if (!value.is_array() || ids.size() != value.items().size()) {
    members.Refuse(key, "a list of token ids");
  }
  return ids;
}

Status ReadMask(const std::string& path, const FolderReading& reading, LateSettings* settings) {
  const std::string file = Within(path, "config.json");
  settings->has_mask = true;
  if (path.empty()) return {};
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return {};
  JsonMembers members(*json, file);
  settings->skip_words = ReadWords(members, "skiplist_words");
  if (members.Has("skiplist_tasks")) settings->skip_tasks = ReadWords(members, "skiplist_tasks");
  settings->keep_ids = ReadIds(members, "keep_only_token_ids");
  return CheckUnreadKeys(members, reading);
}

// What PyLate wrote into config_sentence_transformers.json. Its lengths count unless the
// transformer's own file has some. `is_named`: by model_type, which gives punctuation as a skip
// list.
Status ReadPyLate(const FolderReading& reading, bool is_pylate, bool is_named,
                  LateSettings* settings) {
  const std::string file(kSentenceConfigFile);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  const JsonValue none = JsonValue::Object({});
  JsonMembers members(json.has_value() ? *json : none, file);
  settings->mean = members.String("similarity_fn_name", "maxsim") == "meanmaxsim";
  bool is_marked = false;
  for (const std::string_view key : kPyLateKeys) is_marked |= members.Find(key) != nullptr;
  for (const auto& [key, name] :
       {std::pair("query_prefix", "query"), std::pair("document_prefix", "document")}) {
    if (members.Find(key) == nullptr) continue;
    settings->prefixes.emplace_back(name, members.String(key, ""));
  }
  TaskLengths& lengths = settings->lengths;
  lengths = ReadTaskLengths(members);
  if (!lengths.query.value_or(std::nullopt)) lengths.query = {};  // null says nothing here
  if (!lengths.document.value_or(std::nullopt)) lengths.document = {};
  if (!lengths.expansion && is_marked) {
    if (!members.Bool("do_query_expansion", true)) {
      lengths.expansion.emplace(std::nullopt);
    } else {
      const char* const attend = members.Find("attend_to_expansion_tokens") != nullptr
                                     ? "attend_to_expansion_tokens"
                                     : "attend_to_mask_tokens";
      QueryExpansion expansion{.attend = members.Bool(attend, false)};
      if (lengths.query) expansion.length = **lengths.query;
      lengths.query = {};
      lengths.expansion = expansion;
    }
  }
  if (is_pylate) {
    settings->has_mask = settings->normalizes = true;
    if (members.Has("skiplist_words")) {
      settings->skip_words = ReadWords(members, "skiplist_words");
    } else if (is_named || !settings->prefixes.empty()) {
      settings->skip_words = Punctuation();
    }
  }
  return members.status();
}

Status ReadStanford(const FolderReading& reading, LateSettings* settings) {
  const std::string file(kMetadataFile);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  const JsonValue none = JsonValue::Object({});
  JsonMembers members(json.has_value() ? *json : none, file);
  settings->has_mask = settings->normalizes = true;
  for (const auto& [name, key, absent] : {std::tuple("query", "query_token_id", "[unused0]"),
                                          std::tuple("document", "doc_token_id", "[unused1]")}) {
    const std::string marker = members.String(key, absent);
    settings->prefixes.emplace_back(name, (marker.empty() ? absent : marker) + " ");
  }
  const std::optional<size_t> document = members.OptionalSize("doc_maxlen");
  if (document) settings->lengths.document = document;
  size_t length = members.Size("query_maxlen", 0);
  if (length == 0) length = 32;
  settings->lengths.expansion =
      QueryExpansion{.length = length, .attend = members.Bool("attend_to_mask_tokens", false)};
  if (members.Bool("mask_punctuation", true)) settings->skip_words = Punctuation();
  reading.Note("late interaction", "as Stanford's ColBERT",
               json.has_value() ? file : "architectures; there is no " + file);
  return members.status();
}

// The projection of Stanford's ColBERT, [any width, d_model], from the file of the model's weights.
Result<PackedLinear> ReadProjection(const Folder& folder, size_t d_model, std::string* source) {
  ENCORE_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder));
  const WeightFiles::Found found = files.Find(kStanfordProjection);
  *source = files.name();
  const bool fits = found.tensor != nullptr && found.tensor->shape.rank() == 2 &&
                    found.tensor->shape[0] != 0 && found.tensor->shape[1] == d_model;
  if (!fits) {
    return InvalidArgument(
        files.name() + ": tensor " + Quoted(kStanfordProjection) + ": found " +
        (found.tensor == nullptr ? "none" : "shape " + found.tensor->shape.ToString()) +
        "; wanted [columns, " + std::to_string(d_model) + "]");
  }
  ENCORE_ASSIGN_OR_RETURN(const Tensor weight, found.file->ReadAsF32(kStanfordProjection));
  return PackedLinear::Create(weight.View<float>());
}

// As the text alone, without special tokens, would be tokenized.
Result<bool> IsOneToken(const Tokenizer& tokenizer, const std::string& token) {
  Tokens tokens;
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode(token, &tokens, {.add_special_tokens = false}));
  return tokens.ids.size() == 1 && tokens.ids[0] == tokenizer.TokenToId(token);
}

// The id of the token that queries are expanded by.
Result<int32_t> ExpansionId(const QueryExpansion& expansion, const Tokenizer& tokenizer) {
  if (!expansion.token.empty()) {
    if (const std::optional<int32_t> id = tokenizer.TokenToId(expansion.token)) return *id;
    return InvalidArgument("query_expansion: token is " + Quoted(expansion.token) +
                           ", which is none of the tokenizer's tokens; wanted one");
  }
  for (const std::string_view key : {"mask_token", "eos_token"}) {
    if (const std::optional<int32_t> id = TokenizerFactory::SpecialTokenId(tokenizer, key))
      return *id;
  }
  return InvalidArgument(
      "query_expansion: token is null, and the tokenizer has neither a mask_token nor an "
      "eos_token; wanted the token that queries are expanded by");
}

// What sentence-transformers computes of expanded queries and encore does not.
Status CheckExpansion(const ModelFolder& found, const QueryExpansion& expansion,
                      const TextModel& model) {
  const std::string file = Within(found.path, "tokenizer_config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          found.folder.ReadJson("tokenizer_config.json"));
  if (json.has_value() && (*json)["padding_side"].is_string() &&
      (*json)["padding_side"].text() == "left") {
    return Status(ErrorCode::kUnsupported, file +
                                               ": padding_side is 'left'; wanted 'right', as "
                                               "encore expands queries at their end");
  }
  // Their embeddings are multiplied by the attention mask.
  const bool masks_embeddings = model.family() == "deberta-v2" || model.family() == "esm";
  if (masks_embeddings && !expansion.attend) {
    return Status(ErrorCode::kUnsupported, "query_expansion: attend is false with a model of " +
                                               std::string(model.family()) + "; wanted true");
  }
  return {};
}

}  // namespace

TaskLengths ReadTaskLengths(JsonMembers& members) {
  TaskLengths lengths;
  for (const auto& [key, length] : {std::pair("query_length", &lengths.query),
                                    std::pair("document_length", &lengths.document)}) {
    if (members.Find(key) == nullptr) continue;
    length->emplace(members.OptionalSize(key));
    if (**length == size_t{0}) members.Refuse(key, "at least 1");
  }
  constexpr std::string_view kExpansion = "query_expansion";
  if (members.Find(kExpansion) == nullptr) return lengths;
  lengths.expansion.emplace();
  if (!members.Has(kExpansion)) return lengths;
  JsonMembers inner(members.RequiredObject(kExpansion), std::string(kExpansion));
  QueryExpansion expansion;
  const std::string strategy = inner.RequiredString("strategy");
  if (strategy != "fixed" && strategy != "min") inner.Refuse("strategy", "'fixed' or 'min'");
  expansion.fixed = strategy == "fixed";
  expansion.attend = inner.Bool("attend", false);
  expansion.token = inner.String("token", "");
  expansion.length = inner.RequiredSize("length");
  if (expansion.length == 0) inner.Refuse("length", "at least 1");
  if (!inner.ok() || !inner.Unread().empty()) {
    members.Refuse(kExpansion,
                   "strategy ('fixed' or 'min') and length, and at most attend and token");
  }
  *lengths.expansion = expansion;
  return lengths;
}

void LateSettings::AddPrefixes(SentenceConfig* config) const {
  for (const auto& [role, prefix] : prefixes) {
    const std::string& name = role;
    const auto known = std::find_if(config->prompts.begin(), config->prompts.end(),
                                    [&](const auto& prompt) { return prompt.first == name; });
    if (known == config->prompts.end()) {
      config->prompts.emplace_back(name, prefix);
    } else if (!known->second.starts_with(prefix)) {
      known->second.insert(0, prefix);
    }
  }
}

Result<LateSettings> ReadLateSettings(const ModelFolder& found, const FolderReading& reading) {
  LateSettings settings;
  if (found.kind == FolderKind::kM3) {
    settings.normalizes = settings.mean = true;
    reading.Note("late interaction",
                 "as BGE-M3: tokens from the second on, whatever makes vectors "
                 "of texts",
                 std::string(kTokenVectorFile));
    return settings;
  }
  if (found.kind == FolderKind::kStanford) {
    ENCORE_RETURN_IF_ERROR(ReadStanford(reading, &settings));
    return settings;
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson(kSentenceConfigFile));
  const bool is_named = json.has_value() && (*json)["model_type"].is_string();
  const bool is_pylate = is_named ? (*json)["model_type"].text() == "ColBERT"
                                  : std::any_of(found.modules.begin(), found.modules.end(),
                                                [](const ModuleEntry& e) { return e.of_pylate; });
  ENCORE_RETURN_IF_ERROR(ReadPyLate(reading, is_pylate, is_named, &settings));
  const TaskLengths& own = found.settings.lengths;
  if (own.query) settings.lengths.query = own.query;
  if (own.document) settings.lengths.document = own.document;
  if (own.expansion) settings.lengths.expansion = own.expansion;
  for (const ModuleEntry& entry : found.modules) {
    if (entry.kind != ModuleKind::kMultiVectorMask) continue;
    if (settings.has_mask) {
      return Status(ErrorCode::kUnsupported,
                    "modules.json: found a second MultiVectorMask; wanted at most one" +
                        std::string(is_pylate ? ", which a folder of PyLate's always has" : ""));
    }
    ENCORE_RETURN_IF_ERROR(ReadMask(entry.path, reading, &settings));
  }
  return settings;
}

Result<Tokenizer> OpenLateTokenizer(const ModelFolder& found, const LateSettings& settings,
                                    const TokenizerCache& cache) {
  const TokenizerOptions options{.lowercase = found.settings.lower_case};
  std::vector<std::string> whole;
  const std::string& folder = found.folder.path();
  ENCORE_ASSIGN_OR_RETURN(const Tokenizer plain,
                          TokenizerFactory::OpenWith({}, folder, options, cache));
  for (const auto& [name, prefix] : settings.prefixes) {
    const size_t begin = prefix.find_first_not_of(" \t\n\r\f\v");
    if (begin == std::string::npos) continue;
    const size_t end = std::min(prefix.find_first_of(" \t\n\r\f\v", begin), prefix.size());
    for (const std::string& token : {prefix, prefix.substr(begin, end - begin)}) {
      if (!plain.TokenToId(token)) continue;
      ENCORE_ASSIGN_OR_RETURN(const bool is_one, IsOneToken(plain, token));
      if (!is_one) whole.push_back(token);
      break;
    }
  }
  if (whole.empty()) return plain;
  return TokenizerFactory::OpenWith(whole, folder, options, cache);
}

Result<AfterEncoder> ReadLateModules(const ModelFolder& found, const LateSettings& settings,
                                     size_t d_model, std::optional<bool> normalize,
                                     const FolderReading& reading) {
  AfterEncoder after;
  const bool is_m3 = found.kind == FolderKind::kM3;
  if (is_m3 || found.kind == FolderKind::kStanford) {
    std::string source(kTokenVectorFile);
    ENCORE_ASSIGN_OR_RETURN(PackedLinear linear,
                            is_m3 ? ReadTorchLinear(found.folder, source, d_model, 0)
                                  : ReadProjection(found.folder, d_model, &source));
    reading.Note("dense",
                 std::to_string(d_model) + " to " + std::to_string(linear.out_features()) +
                     (is_m3 ? ", identity" : ", no bias, identity"),
                 source);
    after = AfterEncoder::OfTokens(std::move(linear), d_model);
  } else {
    ENCORE_ASSIGN_OR_RETURN(
        after, AfterEncoder::Read(PoolingSettings{{PoolingMode::kCls}}, found.behind(), d_model,
                                  normalize, reading, VectorsOf::kTokens));
  }
  if (settings.normalizes) {
    after.AddNormalization();
    reading.Note("normalize", "to length 1", "default of late interaction");
  }
  return after;
}

bool LateModel::Keeps(TextTask task, int32_t id, size_t place, bool expanded) const {
  if (expanded && !scores_expansion) return false;
  if (skips_first && place == 0) return false;
  if (skips[static_cast<size_t>(task)] &&
      std::binary_search(skip_ids.begin(), skip_ids.end(), id)) {
    return false;
  }
  return task == TextTask::kQuery || keep_ids.empty() ||
         std::binary_search(keep_ids.begin(), keep_ids.end(), id);
}

namespace {

// Queries get tokens of the expansion's id.
Status SetExpansion(const ModelFolder& found, const LateSettings& settings,
                    const Tokenizer& tokenizer, const TextModel& model,
                    const FolderReading& reading, LateModel* late) {
  if (!settings.lengths.expansion || !*settings.lengths.expansion) return {};
  const QueryExpansion& expansion = **settings.lengths.expansion;
  ENCORE_RETURN_IF_ERROR(CheckExpansion(found, expansion, model));
  const std::optional<size_t> length = settings.lengths.query.value_or(std::nullopt);
  if (length && *length < expansion.length) {
    return InvalidArgument("query_length is " + std::to_string(*length) + "; wanted at least " +
                           std::to_string(expansion.length) + ", query_expansion's length");
  }
  if (expansion.length > model.max_tokens()) {
    return InvalidArgument("query_expansion: length is " + std::to_string(expansion.length) +
                           "; wanted at most " + std::to_string(model.max_tokens()) +
                           ", the model's positions");
  }
  ENCORE_ASSIGN_OR_RETURN(const int32_t id, ExpansionId(expansion, tokenizer));
  late->expansion = Expansion{expansion.length, id, expansion.attend};
  late->scores_expansion |= expansion.attend;
  late->fixed = expansion.fixed;
  // "min" fills up what is shorter, and cuts as without expansion.
  if (late->fixed) late->SetLength(TextTask::kQuery, expansion.length);
  reading.Note("query expansion",
               std::string(late->fixed ? "to " : "to at least ") +
                   std::to_string(expansion.length) + " tokens by " +
                   Quoted(tokenizer.IdToToken(id)) +
                   (expansion.attend ? ", which others see" : ", which others do not see"),
               "query_expansion");
  return {};
}

// Which tokens have rows.
void SetMask(const LateSettings& settings, const Tokenizer& tokenizer, const FolderReading& reading,
             LateModel* late) {
  std::string skipped;
  for (const std::string& word : settings.skip_words) {
    const std::optional<int32_t> id = tokenizer.TokenToId(word);
    if (!id) continue;  // as sentence-transformers, which warns
    late->skip_ids.push_back(*id);
    skipped += (skipped.empty() ? "" : " ") + word;
  }
  const auto has_task = [&](std::string_view task) {
    return std::find(settings.skip_tasks.begin(), settings.skip_tasks.end(), task) !=
           settings.skip_tasks.end();
  };
  late->skips[static_cast<size_t>(TextTask::kQuery)] = has_task("query");
  late->skips[static_cast<size_t>(TextTask::kDocument)] =
      late->skips[static_cast<size_t>(TextTask::kNone)] = has_task("document");
  if (!skipped.empty()) reading.Note("skip list", skipped, "MultiVectorMask");
  late->keep_ids = settings.keep_ids;
  if (!late->keep_ids.empty()) {
    reading.Note("tokens kept", std::to_string(late->keep_ids.size()) + " ids", "MultiVectorMask");
  }
  std::sort(late->skip_ids.begin(), late->skip_ids.end());
  std::sort(late->keep_ids.begin(), late->keep_ids.end());
}

}  // namespace

Result<LateModel> ResolveLate(const ModelFolder& found, const LateSettings& settings,
                              const Tokenizer& tokenizer, const TextModel& model, size_t max_length,
                              std::optional<size_t> wanted, const FolderReading& reading) {
  LateModel late;
  std::fill(std::begin(late.max_length), std::end(late.max_length), max_length);
  for (const auto& [task, own] : {std::pair(TextTask::kDocument, settings.lengths.document),
                                  std::pair(TextTask::kQuery, settings.lengths.query)}) {
    const std::optional<size_t> length = own.value_or(std::nullopt);
    if (length && !wanted) late.SetLength(task, std::min(*length, model.max_tokens()));
  }
  late.scores_expansion = settings.has_mask;
  ENCORE_RETURN_IF_ERROR(SetExpansion(found, settings, tokenizer, model, reading, &late));
  for (const TextTask task : {TextTask::kQuery, TextTask::kDocument}) {
    const size_t tokens = late.max_length[static_cast<size_t>(task)];
    const std::string what = task == TextTask::kQuery ? "queries" : "documents";
    if (tokens < tokenizer.special_tokens_of_text()) {
      return InvalidArgument(
          "the maximum length of " + what + " is " + std::to_string(tokens) + "; wanted at least " +
          std::to_string(tokenizer.special_tokens_of_text()) + ", the tokenizer's special tokens");
    }
    reading.Note("tokens of " + what, std::to_string(tokens), "late interaction");
  }
  SetMask(settings, tokenizer, reading, &late);
  late.skips_first = found.kind == FolderKind::kM3;
  late.mean = settings.mean;
  reading.Note("similarity", late.mean ? "meanmaxsim" : "maxsim",
               std::string(late.skips_first ? kTokenVectorFile : kSentenceConfigFile));
  return late;
}

}  // namespace encore::internal
