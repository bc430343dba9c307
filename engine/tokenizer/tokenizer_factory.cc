// SPDX-License-Identifier: Apache-2.0
//
// Opens tokenizers: which files there are, and in which order they count.

#include "engine/tokenizer/tokenizer_factory.h"

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/folder.h"
#include "engine/tokenizer/tokenizer_class.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

constexpr const char* kJsonFile = "tokenizer.json";
constexpr const char* kVocabFile = "vocab.txt";
constexpr const char* kBpeFiles = "vocab.json and merges.txt";

// A vocab.txt whose class no file names is BERT's, and ConvBERT's is as well.
TokenizerClass OrBert(TokenizerClass which) {
  if (which.is_named && which.kind != TokenizerKind::kConvBert) return which;
  which.name = "BertTokenizer";
  which.kind = TokenizerKind::kBert;
  return which;
}

struct Config {
  TokenizerClass which;
  TokenizerConfig config;
};

// From the text of tokenizer_config.json, which may be empty.
Result<Config> ParseConfig(std::string_view text, std::string_view tokenizer_json) {
  Config read;
  JsonValue json;
  if (!text.empty()) {
    ENCORE_ASSIGN_OR_RETURN(json, JsonValue::Parse(text));
    Result<TokenizerConfig> config = ReadTokenizerConfig(json);
    if (!config.ok()) return config.status();
    read.config = *std::move(config);
  }
  Result<TokenizerClass> which =
      ChooseTokenizerClass(text.empty() ? nullptr : &json, nullptr, tokenizer_json);
  if (!which.ok()) return which.status();
  read.which = *std::move(which);
  return read;
}

// A sentence about a file of this folder.
Status InFolder(const Folder& folder, const Status& status) {
  return Status(status.code(), Quoted(folder.path()) + ": " + status.message());
}

std::string_view TextOf(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// tokenizer_config.json with the files that older versions of transformers wrote beside it.
Result<TokenizerConfig> ConfigOfFolder(const Folder& folder) {
  TokenizerConfig config;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(config.file));
  if (json.has_value()) {
    Result<TokenizerConfig> read = ReadTokenizerConfig(*json);
    if (!read.ok()) return InFolder(folder, read.status());
    config = *std::move(read);
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> map,
                          folder.ReadJson("special_tokens_map.json"));
  Status status = map.has_value() ? ReadSpecialTokensMap(*map, &config) : Status();
  if (!status.ok()) return InFolder(folder, status);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> added,
                          folder.ReadJson("added_tokens.json"));
  status = added.has_value() ? ReadOldAddedTokens(*added, &config) : Status();
  if (!status.ok()) return InFolder(folder, status);
  return config;
}

Result<JsonValue> VocabularyOfFolder(const Folder& folder, std::string* name) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> vocab_txt, folder.Read(kVocabFile));
  if (vocab_txt.has_value()) {
    *name = kVocabFile;
    return ModelOfVocabTxt(TextOf(*vocab_txt));
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> vocab_json, folder.Read("vocab.json"));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> merges, folder.Read("merges.txt"));
  if (vocab_json.has_value() && merges.has_value()) {
    *name = kBpeFiles;
    return ModelOfVocabJson(TextOf(*vocab_json), TextOf(*merges));
  }
  return Status(ErrorCode::kNotFound,
                "there is neither tokenizer.json nor vocab.txt, nor vocab.json with merges.txt");
}

Result<TokenizerParts> PartsFromFolder(const Folder& folder, const TokenizerOptions& options) {
  ENCORE_ASSIGN_OR_RETURN(const TokenizerConfig config, ConfigOfFolder(folder));
  Result<TokenizerClass> which = ChooseTokenizerClass(folder);
  if (!which.ok()) return InFolder(folder, which.status());
  Result<std::optional<JsonValue>> json = folder.ReadJson(kJsonFile);
  if (!json.ok()) return json.status();
  const bool is_vocabulary = !json->has_value();
  std::string name = kJsonFile;
  if (is_vocabulary) {
    Result<JsonValue> vocabulary = VocabularyOfFolder(folder, &name);
    if (!vocabulary.ok()) return InFolder(folder, vocabulary.status());
    *json = *std::move(vocabulary);
    if (name == kVocabFile) which = OrBert(*std::move(which));
  }
  Result<TokenizerParts> parts =
      ReadTokenizerJson({**json, name, is_vocabulary}, *which, config, options);
  if (!parts.ok()) return InFolder(folder, parts.status());
  return parts;
}

}  // namespace

Result<Tokenizer> TokenizerFactory::FromJson(std::string_view tokenizer_json,
                                             const TokenizerOptions& options,
                                             std::string_view config_json) {
  return internal::Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Config config, ParseConfig(config_json, tokenizer_json));
    ENCORE_ASSIGN_OR_RETURN(const JsonValue json, JsonValue::Parse(tokenizer_json));
    ENCORE_ASSIGN_OR_RETURN(TokenizerParts parts, ReadTokenizerJson({json, kJsonFile}, config.which,
                                                                    config.config, options));
    return Make(std::move(parts));
  });
}

Result<Tokenizer> TokenizerFactory::FromVocab(std::string_view vocab_txt,
                                              const TokenizerOptions& options,
                                              std::string_view config_json) {
  return internal::Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    ENCORE_ASSIGN_OR_RETURN(Config config, ParseConfig(config_json, {}));
    ENCORE_ASSIGN_OR_RETURN(const JsonValue json, ModelOfVocabTxt(vocab_txt));
    ENCORE_ASSIGN_OR_RETURN(TokenizerParts parts, ReadTokenizerJson({json, kVocabFile, true},
                                                                    OrBert(std::move(config.which)),
                                                                    config.config, options));
    return Make(std::move(parts));
  });
}

}  // namespace internal

Result<Tokenizer> Tokenizer::Open(const std::string& folder, const TokenizerOptions& options) {
  return internal::Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const internal::Folder opened, internal::Folder::Open(folder));
    ENCORE_ASSIGN_OR_RETURN(internal::TokenizerParts parts,
                            internal::PartsFromFolder(opened, options));
    return internal::TokenizerFactory::Make(std::move(parts));
  });
}

}  // namespace encore
