// SPDX-License-Identifier: Apache-2.0
//
// What model2vec 0.10 reads of a folder, beside the table.

#include "engine/text/model2vec.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {
namespace {

// As int(numpy.median(lengths)).
size_t Median(std::vector<size_t> lengths) {
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  const size_t middle = lengths.size() / 2;
  if (lengths.size() % 2 != 0) return lengths[middle];
  return (lengths[middle - 1] + lengths[middle]) / 2;
}

// Of the model in tokenizer.json: by unk_token, or of Unigram by unk_id.
Result<std::optional<int32_t>> ReadUnknown(const JsonValue& json, const Tokenizer& tokenizer) {
  const JsonValue& model = json["model"];
  JsonMembers members(model, "tokenizer.json: model");
  const std::string type = members.String("type", "");
  std::optional<int32_t> unknown;
  if (type == "Unigram") {
    const std::optional<size_t> id = members.OptionalSize("unk_id");
    if (id && *id < tokenizer.vocab_size()) unknown = static_cast<int32_t>(*id);
    ENCORE_RETURN_IF_ERROR(members.status());
    return unknown;
  }
  const std::string absent = type == "WordPiece" ? "[UNK]" : "";
  const std::string token =
      members.Find("unk_token") == nullptr ? absent : members.String("unk_token", "");
  ENCORE_RETURN_IF_ERROR(members.status());
  if (!token.empty()) unknown = tokenizer.TokenToId(token);
  return unknown;
}

}  // namespace

size_t CharactersOf(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Result<std::optional<Model2VecConfig>> ReadModel2Vec(const FolderReading& reading) {
  std::optional<Model2VecConfig> config;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson("config.json"));
  if (!json || !json->is_object() || !(*json)["model_type"].is_string() ||
      (*json)["model_type"].text() != "model2vec") {
    return config;
  }
  JsonMembers members(*json, "config.json");
  config.emplace();
  config->normalize = members.Bool("normalize", false);
  if (members.Find("max_length") != nullptr) {
    const std::optional<size_t> length = members.OptionalSize("max_length");
    if (length == size_t{0}) members.Refuse("max_length", "null or at least 1");
    config->max_length = length.value_or(0);
  }
  ENCORE_RETURN_IF_ERROR(members.status());
  reading.Note("model", "Model2Vec's, by its own rules: unknown tokens do not count",
               "config.json; there is no modules.json");
  return config;
}

Result<Model2VecTexts> ReadModel2VecTexts(const Folder& folder, const Tokenizer& tokenizer,
                                          std::optional<size_t> rows) {
  std::vector<size_t> lengths;
  for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view token = tokenizer.IdToToken(static_cast<int32_t>(id));
    if (!token.empty()) lengths.push_back(CharactersOf(token));
  }
  if (rows && *rows != lengths.size()) {
    return InvalidArgument(QuotedPath(folder.path()) + ": the table has " + std::to_string(*rows) +
                           " vectors; wanted " + std::to_string(lengths.size()) +
                           ", one a token, or a tensor 'mapping'");
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson("tokenizer.json"));
  if (!json) return Status(ErrorCode::kNotFound, "there is no tokenizer.json");
  const JsonValue& truncation = (*json)["truncation"];
  if (truncation.is_object() && truncation["direction"].is_string() &&
      truncation["direction"].text() == "Left") {
    return Status(ErrorCode::kUnsupported,
                  "tokenizer.json: truncation: direction is 'Left'; wanted 'Right', as Model2Vec "
                  "cuts texts at their end");
  }
  Model2VecTexts texts;
  texts.characters = Median(std::move(lengths));
  ENCORE_ASSIGN_OR_RETURN(texts.unknown, ReadUnknown(*json, tokenizer));
  return texts;
}

}  // namespace encore::internal
