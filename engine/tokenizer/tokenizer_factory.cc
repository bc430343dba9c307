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
constexpr const char* kSentencePieceFile = "spm.model";
constexpr const char* kSiglipFile = "spiece.model";
// The decision about a cache.
constexpr const char* kPacked = "packed tokenizer";
constexpr const char* kCacheOption = "option cache";

// A sentence about a file of this folder.
Status InFolder(const Folder& folder, Status status) {
  if (status.ok()) return status;
  return Prefixed(QuotedPath(folder.path()), status);
}
template <typename T>
Result<T> InFolder(const Folder& folder, Result<T> result) {
  if (result.ok()) return result;
  return InFolder(folder, result.status());
}

// tokenizer_config.json with the files that older versions of transformers wrote beside it.
Result<TokenizerConfig> ConfigOfFolder(const Folder& folder) {
  TokenizerConfig config;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(config.file));
  if (json.has_value()) {
    ENCORE_ASSIGN_OR_RETURN(config, InFolder(folder, ReadTokenizerConfig(*json)));
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> map,
                          folder.ReadJson("special_tokens_map.json"));
  if (map.has_value()) {
    ENCORE_RETURN_IF_ERROR(InFolder(folder, ReadSpecialTokensMap(*map, &config)));
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> added,
                          folder.ReadJson("added_tokens.json"));
  if (added.has_value()) {
    ENCORE_RETURN_IF_ERROR(InFolder(folder, ReadOldAddedTokens(*added, &config)));
  }
  return config;
}

// The older files, in the order in which they count; `config` takes what one says of added tokens.
Result<JsonValue> VocabularyOfFolder(const Folder& folder, const TokenizerClass& which,
                                     std::string* name, TokenizerConfig* config) {
  if (which.kind == TokenizerKind::kDebertaV2) {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> spm, folder.Read(kSentencePieceFile));
    if (!spm.has_value()) {
      return Status(ErrorCode::kNotFound, "there is neither tokenizer.json nor spm.model");
    }
    *name = kSentencePieceFile;
    ENCORE_ASSIGN_OR_RETURN(SentencePieceModel model,
                            ModelOfSentencePiece(kSentencePieceFile, TextOf(*spm)));
    config->extra_tokens = std::move(model.added_tokens);
    config->unk_id = model.unk_id;
    return std::move(model.json);
  }
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

Result<SentencePieceModel> SiglipOfFolder(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> file, folder.Read(kSiglipFile));
  if (file.has_value()) return ModelOfSentencePiece(kSiglipFile, TextOf(*file));
  return Status(ErrorCode::kNotFound,
                "there is no spiece.model, which is all that SiglipTokenizer reads");
}

// From the text of tokenizer.json, or what a cache has of it.
Result<TokenizerParts> PartsOfJson(const Folder& folder, const MappedFile& file,
                                   const TokenizerClass& which, const TokenizerConfig& config,
                                   const TokenizerOptions& options, const TokenizerCache& cache) {
  std::optional<PackedTokenizer> packed;
  if (!cache.folder.empty()) {
    ENCORE_ASSIGN_OR_RETURN(packed, PackedTokenizer::Find(cache.folder, folder, TextOf(file)));
    std::optional<PackedTokenizer::Content> content;
    if (!cache.rebuild) content = packed->Read();
    const Result<JsonValue> rest = JsonValue::Parse(content ? content->rest : "");
    if (rest.ok()) {
      Result<TokenizerParts> parts = ReadTokenizerJson(
          {*rest, kJsonFile, false, nullptr, &content->tables}, which, config, options);
      if (parts.ok() && content->tables.AtEnd()) {
        parts->Note(kPacked, "read", kCacheOption);
        return parts;
      }
    }
  }
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json, folder.ParseJson(kJsonFile, file));
  ENCORE_ASSIGN_OR_RETURN(
      TokenizerParts parts,
      InFolder(folder, ReadTokenizerJson({json, kJsonFile}, which, config, options)));
  if (packed) parts.Note(kPacked, packed->Write(TextOf(file), *parts.model), kCacheOption);
  return parts;
}

Result<TokenizerParts> PartsFromFolder(const Folder& folder, const TokenizerOptions& options,
                                       const std::vector<std::string>& whole_tokens,
                                       const TokenizerCache& cache) {
  ENCORE_ASSIGN_OR_RETURN(TokenizerConfig config, ConfigOfFolder(folder));
  config.whole_tokens = whole_tokens;
  ENCORE_ASSIGN_OR_RETURN(const TokenizerClass which,
                          InFolder(folder, ChooseTokenizerClass(folder)));
  if (which.kind == TokenizerKind::kSiglip) {
    ENCORE_ASSIGN_OR_RETURN(const SentencePieceModel model,
                            InFolder(folder, SiglipOfFolder(folder)));
    return InFolder(
        folder, ReadTokenizerJson({model.json, kSiglipFile, true, &model}, which, config, options));
  }
  if (which.kind != TokenizerKind::kEsm) {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> file, folder.Read(kJsonFile));
    if (file) return PartsOfJson(folder, *file, which, config, options, cache);
  }
  std::string name;
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json,
                          InFolder(folder, VocabularyOfFolder(folder, which, &name, &config)));
  return InFolder(folder, ReadTokenizerJson({json, name, true}, which, config, options));
}

// From the texts of tokenizer.json or vocab.txt, and of tokenizer_config.json.
Result<Tokenizer> FromTexts(bool is_vocabulary, std::string_view text, std::string_view config_text,
                            const TokenizerOptions& options) {
  return internal::Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    const char* const name = is_vocabulary ? kVocabFile : kJsonFile;
    TokenizerConfig config;
    std::optional<JsonValue> config_json;
    if (!config_text.empty()) {
      ENCORE_ASSIGN_OR_RETURN(config_json, JsonValue::Parse(config_text));
      ENCORE_ASSIGN_OR_RETURN(config, ReadTokenizerConfig(*config_json));
    }
    ENCORE_ASSIGN_OR_RETURN(const TokenizerClass which,
                            ChooseTokenizerClass(config_json, {}, is_vocabulary ? "" : text));
    ENCORE_ASSIGN_OR_RETURN(const JsonValue json,
                            is_vocabulary ? ModelOfVocabTxt(text) : JsonValue::Parse(text));
    ENCORE_ASSIGN_OR_RETURN(TokenizerParts parts,
                            ReadTokenizerJson({json, name, is_vocabulary}, which, config, options));
    return TokenizerFactory::Make(std::move(parts));
  });
}

}  // namespace

Result<Tokenizer> TokenizerFactory::FromJson(std::string_view tokenizer_json,
                                             const TokenizerOptions& options,
                                             std::string_view config_json) {
  return FromTexts(false, tokenizer_json, config_json, options);
}

Result<Tokenizer> TokenizerFactory::FromVocab(std::string_view vocab_txt,
                                              const TokenizerOptions& options,
                                              std::string_view config_json) {
  return FromTexts(true, vocab_txt, config_json, options);
}

Result<Tokenizer> TokenizerFactory::FromSentencePiece(std::string_view spiece_model,
                                                      const TokenizerOptions& options,
                                                      std::string_view config_json) {
  return Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    TokenizerConfig config;
    if (!config_json.empty()) {
      ENCORE_ASSIGN_OR_RETURN(const JsonValue json, JsonValue::Parse(config_json));
      ENCORE_ASSIGN_OR_RETURN(config, ReadTokenizerConfig(json));
    }
    ENCORE_ASSIGN_OR_RETURN(const SentencePieceModel model,
                            ModelOfSentencePiece(kSiglipFile, spiece_model));
    TokenizerClass siglip;
    siglip.name = "SiglipTokenizer";
    siglip.kind = TokenizerKind::kSiglip;
    ENCORE_ASSIGN_OR_RETURN(
        TokenizerParts parts,
        ReadTokenizerJson({model.json, kSiglipFile, true, &model}, siglip, config, options));
    return Make(std::move(parts));
  });
}

Result<Tokenizer> TokenizerFactory::OpenWith(const std::vector<std::string>& whole_tokens,
                                             const std::string& folder,
                                             const TokenizerOptions& options,
                                             const TokenizerCache& cache) {
  return Guarded("the tokenizer", [&]() -> Result<Tokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Folder opened, Folder::Open(folder));
    ENCORE_ASSIGN_OR_RETURN(TokenizerParts parts,
                            PartsFromFolder(opened, options, whole_tokens, cache));
    return Make(std::move(parts));
  });
}

}  // namespace internal

Result<Tokenizer> Tokenizer::Open(const std::string& folder, const TokenizerOptions& options) {
  return internal::TokenizerFactory::OpenWith({}, folder, options);
}

}  // namespace encore
