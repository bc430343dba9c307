// SPDX-License-Identifier: Apache-2.0
//
// Opens a folder of static embeddings, as sentence-transformers' StaticEmbedding does: a table, and
// tokenizer.json as it is, without special tokens.

#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/open_folder.h"
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

void NoteLength(size_t length, const std::string& source, const FolderReading& reading) {
  reading.Note("maximum length", length == 0 ? "none" : std::to_string(length), source);
}

// Whether the option says it, which is noted.
Result<bool> IsLengthChosen(const std::optional<size_t>& option, const FolderReading& reading) {
  if (option == size_t{0}) return InvalidArgument("max_length is 0; wanted at least 1");
  if (option) NoteLength(*option, "option max_length", reading);
  return option.has_value();
}

Result<size_t> ChooseLength(const Folder& folder, const std::optional<size_t>& option,
                            const std::optional<Model2VecConfig>& model2vec,
                            const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const bool is_chosen, IsLengthChosen(option, reading));
  if (is_chosen) return *option;
  if (model2vec) {
    NoteLength(model2vec->max_length, "config.json", reading);
    return model2vec->max_length;
  }
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson(kTokenizerFile));
  if (!json) return Status(ErrorCode::kNotFound, "there is no " + std::string(kTokenizerFile));
  ENCORE_ASSIGN_OR_RETURN(const size_t length, ReadTruncation(*json));
  NoteLength(length, std::string(kTokenizerFile) + ": truncation", reading);
  return length;
}

// What a folder without a transformer does not have.
Status CheckNoTask(const OpenOptions& options) {
  if (options.task.empty()) return {};
  return InvalidArgument("task is " + Quoted(options.task) +
                         "; the folder has no adapters for tasks");
}

void NoteCache(const OpenOptions& options, const FolderReading& reading) {
  if (options.cache.empty()) return;
  reading.Note("packed weights", "none: static embeddings", "option cache");
}

// What Model2Vec and StaticEmbedding have in common: table, tokenizer and prompts.
Result<NewImpl> OpenTable(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  if (!options.pooling.empty()) {
    return InvalidArgument("found pooling; wanted none, as static embeddings are averaged");
  }
  ENCORE_RETURN_IF_ERROR(CheckNoTask(options));
  ENCORE_ASSIGN_OR_RETURN(TextModel model,
                          TextModel::OpenStatic(found.folder, options, &reading.decisions));
  NoteCache(options, reading);
  ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenWrittenTokenizer(found.folder));
  for (const Decision& decision : tokenizer.Describe()) {
    if (decision.what != "truncation") reading.decisions.push_back(decision);  // noted below
  }
  NewImpl impl(new TextEncoder::Impl{.model = std::move(model),
                                     .tokenizer = tokenizer,
                                     .normalize = options.normalize,
                                     .scratch = ScratchPool(options.kept_bytes)});
  ENCORE_ASSIGN_OR_RETURN(impl->max_length,
                          ChooseLength(found.folder, options.max_length, found.model2vec, reading));
  ENCORE_ASSIGN_OR_RETURN(impl->config, ReadSentenceConfig(found, reading));
  reading.Note("pooling", "mean of all tokens, without special ones",
               found.has_modules() ? "modules.json" : "config.json");
  return impl;
}

// The model's means are a row for each text.
Status ReadBehindTable(const Opening& opening, TextEncoder::Impl* impl) {
  ENCORE_ASSIGN_OR_RETURN(
      impl->after,
      AfterEncoder::Read(PoolingSettings{{PoolingMode::kCls}}, opening.found.behind(),
                         impl->model.d_model(), opening.options.normalize, opening.reading));
  return {};
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

Result<FolderTokenizer> OpenStaticTokenizer(const ModelFolder& found,
                                            const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenWrittenTokenizer(found.folder));
  ENCORE_ASSIGN_OR_RETURN(const size_t length,
                          ChooseLength(found.folder, {}, found.model2vec, reading));
  return FolderTokenizer{tokenizer, length, /*type_ids=*/false, /*add_special_tokens=*/false};
}

Result<NewImpl> OpenStatic(const Opening& opening) {
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenTable(opening));
  ENCORE_RETURN_IF_ERROR(ReadBehindTable(opening, impl.get()));
  NoteDimensions(*impl, opening.reading);
  return impl;
}

Result<NewImpl> OpenModel2Vec(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenTable(opening));
  ENCORE_ASSIGN_OR_RETURN(impl->model2vec, ReadModel2VecTexts(found.folder, *impl->tokenizer,
                                                              impl->model.table_rows_of_tokens()));
  if (impl->max_length > 0) {
    reading.Note("characters of a text",
                 std::to_string(impl->model2vec->characters) + " for each of " +
                     std::to_string(impl->max_length) + " tokens",
                 "tokenizer.json: the tokens' median length");
  }
  ENCORE_RETURN_IF_ERROR(ReadBehindTable(opening, impl.get()));
  if (found.model2vec->normalize) {
    impl->after->AddNormalization();
    reading.Note("normalize", "to length 1", "config.json");
  }
  return impl;
}

Result<NewImpl> OpenSparseStatic(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  if (!options.pooling.empty()) {
    return InvalidArgument("found pooling; wanted none, as weights of tokens are not pooled");
  }
  ENCORE_RETURN_IF_ERROR(CheckNoTask(options));
  NoteCache(options, reading);
  ENCORE_ASSIGN_OR_RETURN(SparseStatic query, ReadSparseStatic(found.path, {}, reading));
  for (const Decision& decision : query.tokenizer.Describe()) {
    reading.decisions.push_back(decision);
  }
  NewImpl impl(new TextEncoder::Impl{.model = TextModel::OfVocabulary(query.weights.shape()[0]),
                                     .tokenizer = query.tokenizer,
                                     .scratch = ScratchPool(options.kept_bytes)});
  ENCORE_ASSIGN_OR_RETURN(impl->config, ReadSentenceConfig(found, reading));
  ENCORE_ASSIGN_OR_RETURN(const bool is_chosen, IsLengthChosen(options.max_length, reading));
  impl->max_length =
      is_chosen ? *options.max_length : query.tokenizer.model_max_length().value_or(0);
  if (!is_chosen) NoteLength(impl->max_length, "tokenizer_config.json", reading);
  reading.Note("sparse vectors", "the weights of a text's tokens, without special ones",
               "modules.json");
  impl->sparse.query = std::move(query);
  return impl;
}

}  // namespace encore::internal
