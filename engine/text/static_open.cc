// SPDX-License-Identifier: Apache-2.0
//
// Opens a folder of static embeddings, as sentence-transformers' StaticEmbedding does: a table, and
// tokenizer.json as it is, without special tokens.

#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTokenizerFile = "tokenizer.json";

// truncation of tokenizer.json, which holds here; 0: none.
Result<size_t> ReadTruncation(const JsonValue& json) {
  JsonMembers members(json, std::string(kTokenizerFile));
  if (!members.Has("truncation")) return size_t{0};
  const JsonValue& truncation = members.RequiredObject("truncation");
  ENCORE_RETURN_IF_ERROR(members.status());
  JsonMembers inner(truncation, std::string(kTokenizerFile) + ": truncation");
  const size_t length = inner.RequiredSize("max_length");
  if (length == 0) inner.Refuse("max_length", "at least 1");
  ENCORE_RETURN_IF_ERROR(inner.status());
  return length;
}

void TellLength(size_t length, const std::string& source, const FolderReading& reading) {
  reading.Tell("maximum length", length == 0 ? "none" : std::to_string(length), source);
}

// Whether the option says it; tells it then.
Result<bool> IsLengthChosen(const std::optional<size_t>& option, const FolderReading& reading) {
  if (option == size_t{0}) return InvalidArgument("max_length is 0; wanted at least 1");
  if (option) TellLength(*option, "option max_length", reading);
  return option.has_value();
}

Result<size_t> ChooseLength(const Folder& folder, const std::optional<size_t>& option,
                            const std::optional<Model2VecConfig>& model2vec,
                            const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const bool is_chosen, IsLengthChosen(option, reading));
  if (is_chosen) return *option;
  if (model2vec) {
    TellLength(model2vec->max_length, "config.json", reading);
    return model2vec->max_length;
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kTokenizerFile));
  if (!json) return Status(ErrorCode::kNotFound, "there is no " + std::string(kTokenizerFile));
  ENCORE_ASSIGN_OR_RETURN(const size_t length, ReadTruncation(*json));
  TellLength(length, std::string(kTokenizerFile) + ": truncation", reading);
  return length;
}

// What these folders have none of.
Status CheckNoTask(const OpenOptions& options) {
  if (options.task.empty()) return {};
  return InvalidArgument("task is " + Quoted(options.task) +
                         "; the folder has no adapters for tasks");
}

void TellCache(const OpenOptions& options, const FolderReading& reading) {
  if (options.cache.empty()) return;
  reading.Tell("packed weights", "none: static embeddings", "option cache");
}

}  // namespace

Result<Tokenizer> OpenWrittenTokenizer(const Folder& folder) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> file, folder.Read(kTokenizerFile));
  if (!file.has_value()) {
    return Status(ErrorCode::kNotFound, "there is no " + QuotedPath(folder.PathOf(kTokenizerFile)) +
                                            "; wanted it beside static embeddings");
  }
  Result<Tokenizer> tokenizer = TokenizerFactory::FromJson(TextOf(*file));
  if (tokenizer.ok()) return tokenizer;
  std::string sentence = tokenizer.status().message();
  if (!sentence.starts_with(kTokenizerFile))
    sentence = std::string(kTokenizerFile) + ": " + sentence;
  return Status(tokenizer.status().code(), QuotedPath(folder.path()) + ": " + sentence);
}

Result<FolderTokenizer> OpenStaticTokenizer(const TransformerFolder& found,
                                            const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenWrittenTokenizer(found.folder));
  ENCORE_ASSIGN_OR_RETURN(const size_t length,
                          ChooseLength(found.folder, {}, found.model2vec, reading));
  return FolderTokenizer{tokenizer, length, /*type_ids=*/false, /*add_special_tokens=*/false};
}

Result<std::shared_ptr<const TextEncoder::Impl>> OpenSparseStatic(const TransformerFolder& found,
                                                                  const OpenOptions& options,
                                                                  const FolderReading& reading) {
  if (!options.pooling.empty()) {
    return InvalidArgument("found pooling; wanted none, as weights of tokens are not pooled");
  }
  ENCORE_RETURN_IF_ERROR(CheckNoTask(options));
  TellCache(options, reading);
  ENCORE_ASSIGN_OR_RETURN(SparseStatic query, ReadSparseStatic(found.path, {}, reading));
  for (const Decision& decision : query.tokenizer.Describe()) {
    reading.decisions.push_back(decision);
  }
  ENCORE_ASSIGN_OR_RETURN(SentenceConfig config,
                          ReadSentenceConfig(/*has_modules=*/true, reading, /*is_late=*/false));
  ENCORE_ASSIGN_OR_RETURN(const bool is_chosen, IsLengthChosen(options.max_length, reading));
  const size_t length =
      is_chosen ? *options.max_length : query.tokenizer.model_max_length().value_or(0);
  if (!is_chosen) TellLength(length, "tokenizer_config.json", reading);
  reading.Tell("sparse vectors", "the weights of a text's tokens, without special ones",
               "modules.json");
  const Tokenizer tokenizer = query.tokenizer;
  TextModel model = TextModel::OfVocabulary(query.weights.shape()[0]);
  return std::shared_ptr<const TextEncoder::Impl>(new TextEncoder::Impl{
      .model = std::move(model),
      .tokenizer = tokenizer,
      .after = {},
      .as_cross_encoder = FindTorchActivation("torch.nn.Identity"),
      .as_classifier = FindTorchActivation("torch.nn.Identity"),
      .config = std::move(config),
      .max_length = length,
      .sparse = {.pooling = {}, .query = std::move(query), .default_task = {}},
      .decisions = reading.decisions});
}

Result<std::shared_ptr<const TextEncoder::Impl>> OpenStatic(const TransformerFolder& found,
                                                            const OpenOptions& options,
                                                            const FolderReading& reading) {
  if (!options.pooling.empty()) {
    return InvalidArgument("found pooling; wanted none, as static embeddings are averaged");
  }
  ENCORE_RETURN_IF_ERROR(CheckNoTask(options));
  ENCORE_ASSIGN_OR_RETURN(TextModel model,
                          TextModel::OpenStatic(found.folder, options, &reading.decisions));
  TellCache(options, reading);
  ENCORE_ASSIGN_OR_RETURN(Tokenizer tokenizer, OpenWrittenTokenizer(found.folder));
  for (const Decision& decision : tokenizer.Describe()) {
    if (decision.what != "truncation") reading.decisions.push_back(decision);  // told below
  }
  ENCORE_ASSIGN_OR_RETURN(const size_t length,
                          ChooseLength(found.folder, options.max_length, found.model2vec, reading));
  ENCORE_ASSIGN_OR_RETURN(SentenceConfig config,
                          ReadSentenceConfig(!found.model2vec, reading, /*is_late=*/false));
  reading.Tell("pooling", "mean of all tokens, without special ones",
               found.model2vec ? "config.json" : "modules.json");
  std::optional<Model2VecTexts> texts;
  if (found.model2vec) {
    ENCORE_ASSIGN_OR_RETURN(
        texts, ReadModel2VecTexts(found.folder, tokenizer, model.table_rows_of_tokens()));
    if (length > 0) {
      reading.Tell(
          "characters of a text",
          std::to_string(texts->characters) + " for each of " + std::to_string(length) + " tokens",
          "tokenizer.json: the tokens' median length");
    }
  }
  const std::span<const ModuleEntry> rest = std::span(*found.modules).subspan(1);
  // What comes is a row a text already.
  ENCORE_ASSIGN_OR_RETURN(AfterEncoder after,
                          AfterEncoder::Read(PoolingSettings{{PoolingMode::kCls}}, rest,
                                             model.d_model(), options.normalize, reading));
  if (found.model2vec && found.model2vec->normalize) {
    after.AddNormalization();
    reading.Tell("normalize", "to length 1", "config.json");
  }
  if (config.truncate_dim) {
    reading.Tell("dimensions", std::to_string(std::min(*config.truncate_dim, after.width())),
                 std::string(kSentenceConfigFile));
  }
  return std::shared_ptr<const TextEncoder::Impl>(
      new TextEncoder::Impl{.model = std::move(model),
                            .tokenizer = tokenizer,
                            .after = std::move(after),
                            .as_cross_encoder = FindTorchActivation("torch.nn.Identity"),
                            .as_classifier = FindTorchActivation("torch.nn.Identity"),
                            .config = std::move(config),
                            .max_length = length,
                            .normalize = options.normalize,
                            .model2vec = texts,
                            .decisions = reading.decisions});
}

}  // namespace encore::internal
