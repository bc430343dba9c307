// SPDX-License-Identifier: Apache-2.0
//
// Opens tokenizers: which files there are, and in which order they count.

#include "engine/tokenizer/tokenizer_factory.h"

#include <new>

#include "engine/base/out_of_memory.h"
#include "engine/base/quoted.h"
#include "engine/io/folder.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "engine/tokenizer/vocab_txt.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

constexpr const char* kJsonFile = "tokenizer.json";

Result<TokenizerParts> PartsFromJson(const JsonValue& json, const TokenizerConfig* config,
                                     const TokenizerOptions& options) {
  Result<TokenizerParts> parts = ReadTokenizerJson(json, kJsonFile, options);
  if (parts.ok() && config != nullptr) CompareWithConfig(*config, kJsonFile, &*parts);
  return parts;
}

// Nothing for an empty text.
Result<std::optional<TokenizerConfig>> ParseConfig(std::string_view text) {
  if (text.empty()) return std::optional<TokenizerConfig>();
  const Result<JsonValue> json = JsonValue::Parse(text);
  if (!json.ok()) return json.status();
  Result<TokenizerConfig> config = ReadTokenizerConfig(*json);
  if (!config.ok()) return config.status();
  return std::optional<TokenizerConfig>(*std::move(config));
}

const TokenizerConfig* OrNull(const std::optional<TokenizerConfig>& config) {
  return config ? &*config : nullptr;
}

// A sentence about a file of this folder.
Status InFolder(const Folder& folder, const Status& status) {
  return Status(status.code(), Quoted(folder.path()) + ": " + status.message());
}

Result<TokenizerParts> PartsFromFolder(const Folder& folder, const TokenizerOptions& options) {
  std::optional<TokenizerConfig> config;
  const Result<std::optional<JsonValue>> config_json = folder.ReadJson("tokenizer_config.json");
  if (!config_json.ok()) return config_json.status();
  if (config_json->has_value()) {
    Result<TokenizerConfig> read = ReadTokenizerConfig(**config_json);
    if (!read.ok()) return InFolder(folder, read.status());
    config = *std::move(read);
  }
  const Result<std::optional<JsonValue>> json = folder.ReadJson(kJsonFile);
  if (!json.ok()) return json.status();
  if (json->has_value()) {
    Result<TokenizerParts> parts = PartsFromJson(**json, OrNull(config), options);
    if (!parts.ok()) return InFolder(folder, parts.status());
    return parts;
  }
  const Result<std::optional<MappedFile>> vocab = folder.Read("vocab.txt");
  if (!vocab.ok()) return vocab.status();
  if (!vocab->has_value()) {
    return Status(ErrorCode::kNotFound,
                  Quoted(folder.path()) + " has neither tokenizer.json nor vocab.txt");
  }
  const std::span<const std::byte> bytes = (*vocab)->bytes();
  Result<TokenizerParts> parts =
      ReadVocabTxt({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                   config.value_or(TokenizerConfig()), options);
  if (!parts.ok()) return InFolder(folder, parts.status());
  return parts;
}

}  // namespace

Result<Tokenizer> TokenizerFactory::FromJson(std::string_view tokenizer_json,
                                             const TokenizerOptions& options,
                                             std::string_view config_json) try {
  const Result<std::optional<TokenizerConfig>> config = ParseConfig(config_json);
  if (!config.ok()) return config.status();
  const Result<JsonValue> json = JsonValue::Parse(tokenizer_json);
  if (!json.ok()) return json.status();
  Result<TokenizerParts> parts = PartsFromJson(*json, OrNull(*config), options);
  if (!parts.ok()) return parts.status();
  return Make(*std::move(parts));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<Tokenizer> TokenizerFactory::FromVocab(std::string_view vocab_txt,
                                              const TokenizerOptions& options,
                                              std::string_view config_json) try {
  const Result<std::optional<TokenizerConfig>> config = ParseConfig(config_json);
  if (!config.ok()) return config.status();
  Result<TokenizerParts> parts =
      ReadVocabTxt(vocab_txt, config->value_or(TokenizerConfig()), options);
  if (!parts.ok()) return parts.status();
  return Make(*std::move(parts));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

}  // namespace internal

Result<Tokenizer> Tokenizer::Open(const std::string& folder, const TokenizerOptions& options) try {
  const Result<internal::Folder> opened = internal::Folder::Open(folder);
  if (!opened.ok()) return opened.status();
  Result<internal::TokenizerParts> parts = internal::PartsFromFolder(*opened, options);
  if (!parts.ok()) return parts.status();
  return internal::TokenizerFactory::Make(*std::move(parts));
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

}  // namespace encore
