// SPDX-License-Identifier: Apache-2.0
//
// Opens folders that have a transformer.

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/text/open_folder.h"
#include "engine/tokenizer/tokenizer_factory.h"

namespace encore::inline v0_1::internal {
namespace {

Result<size_t> ChooseLengthOf(const Opening& opening, const TextEncoder::Impl& impl) {
  const bool has_tokenizer = impl.tokenizer.ok();
  return ChooseMaxLength(
      {.option = opening.options.max_length,
       .settings = opening.found.settings,
       .tokenizer_maximum =
           has_tokenizer ? impl.tokenizer->model_max_length() : std::optional<size_t>(),
       .model_usual = impl.model.usual_tokens(),
       .model_maximum = impl.model.max_tokens(),
       .special_tokens = has_tokenizer ? impl.tokenizer->special_tokens_of_text() : 0,
       .positions_skip_padding = impl.model.positions_skip_padding()},
      opening.reading);
}

// What all folders with a transformer have: the model, its tokenizer or why there is none, lengths,
// prompts and padding.
Result<NewImpl> OpenModel(const Opening& opening, Result<Tokenizer> tokenizer,
                          const ModelExtras& extras) {
  const auto& [found, options, reading] = opening;
  OpenOptions model_options = options;
  model_options.language_head = options.language_head || found.kind == FolderKind::kSparse;
  ENCORE_ASSIGN_OR_RETURN(TextModel model,
                          TextModel::Open(found.folder, model_options, &reading.decisions, extras));
  if (tokenizer.ok()) {
    for (const Decision& decision : tokenizer->Describe()) reading.decisions.push_back(decision);
  } else {
    if (!MayBeMissing(tokenizer.status())) return tokenizer.status();
    reading.Note("tokenizer", "none: ids only", tokenizer.status().message());
  }
  NewImpl impl(new TextEncoder::Impl{.model = std::move(model),
                                     .tokenizer = std::move(tokenizer),
                                     .normalize = options.normalize,
                                     .scratch = ScratchPool(options.kept_bytes)});
  ENCORE_ASSIGN_OR_RETURN(impl->max_length, ChooseLengthOf(opening, *impl));
  ENCORE_ASSIGN_OR_RETURN(impl->use_type_ids,
                          ReadUsesTypeIds(found, impl->model.type_vocab_size(), reading));
  ENCORE_ASSIGN_OR_RETURN(impl->config, ReadSentenceConfig(found, reading));
  if (impl->model.pads()) {
    if (impl->tokenizer.ok()) {
      ENCORE_ASSIGN_OR_RETURN(impl->padding,
                              ReadPadding(found, *impl->tokenizer, impl->model, reading));
    }
  } else if (found.settings.padding) {
    return Status(ErrorCode::kUnsupported,
                  found.settings.file +
                      ": processing_kwargs pad texts; wanted that of models that "
                      "were trained on padded texts alone");
  }
  return impl;
}

// `module`: null where the options or the default pool.
Status ReadPooledVectors(const Opening& opening, const ModuleEntry* module,
                         TextEncoder::Impl* impl) {
  const size_t width = impl->model.hidden_width();
  ENCORE_ASSIGN_OR_RETURN(PoolingSettings pooling,
                          ReadPooling(module, width, opening.options.pooling, opening.reading));
  ENCORE_ASSIGN_OR_RETURN(impl->after,
                          AfterEncoder::Read(std::move(pooling), opening.found.behind(), width,
                                             opening.options.normalize, opening.reading));
  return {};
}

// A folder without a Pooling module gives vectors of texts only if OpenOptions::pooling is set.
Status ReadWantedPooling(const Opening& opening, TextEncoder::Impl* impl) {
  if (opening.options.pooling.empty()) return {};
  return ReadPooledVectors(opening, nullptr, impl);
}

// kUnsupported parts are noted: what does not need them works.
Status ReadScores(const Opening& opening, TextEncoder::Impl* impl) {
  const auto& [found, options, reading] = opening;
  const SentenceConfig& config = impl->config;
  impl->as_cross_encoder =
      ReadScoreActivation(found.path, config, impl->model.labels().size(), reading);
  if (!impl->as_cross_encoder.ok()) {
    const Status& status = impl->as_cross_encoder.status();
    if (status.code() != ErrorCode::kUnsupported) return status;
    reading.Note("scores", "only with an activation of the caller's", status.message());
  }
  impl->as_classifier =
      ClassifierActivation(impl->model.problem_type(), impl->model.labels().size(), reading);
  if (!impl->tokenizer.ok()) return {};
  const std::string* prompt =
      config.default_prompt_name ? config.FindPrompt(*config.default_prompt_name) : nullptr;
  impl->pair_template = ReadPairChatTemplate(
      found, prompt != nullptr ? std::string_view(*prompt) : std::string_view(), *impl->tokenizer,
      reading);
  if (!impl->pair_template.ok()) {
    const Status& status = impl->pair_template.status();
    if (status.code() != ErrorCode::kUnsupported) return status;
    reading.Note("pairs", "none: scores only of ids", status.message());
  }
  return {};
}

// Of whatever head the model has.
Status ReadHead(const Opening& opening, TextEncoder::Impl* impl) {
  if (impl->model.has_head()) ENCORE_RETURN_IF_ERROR(ReadScores(opening, impl));
  if (impl->model.labels_tokens() && impl->tokenizer.ok()) {
    ENCORE_ASSIGN_OR_RETURN(impl->words, ReadWordRules(opening.found.folder, *impl->tokenizer));
  }
  NoteDimensions(*impl, opening.reading);
  return {};
}

// BGE-M3's, where the folder has a file of them. Its dense vectors need none.
Status ReadTokenWeightsOf(const Opening& opening, TextEncoder::Impl* impl) {
  const auto& [found, options, reading] = opening;
  ENCORE_ASSIGN_OR_RETURN(const bool is_there, found.folder.Has(kTokenWeightFile));
  if (!is_there || !impl->tokenizer.ok()) return {};
  impl->sparse.by_token =
      ReadTokenWeights(found, *impl->tokenizer, impl->model.hidden_width(), reading);
  const Status& status = impl->sparse.by_token->status();
  if (status.ok()) return {};
  if (status.code() == ErrorCode::kOutOfMemory || status.code() == ErrorCode::kIo) return status;
  reading.Note("sparse vectors", "none", status.message());
  return {};
}

TokenizerCache TokenizerCacheOf(const OpenOptions& options) {
  return {.folder = options.cache, .rebuild = options.compare_cache};
}

}  // namespace

Result<Tokenizer> OpenTokenizer(const ModelFolder& found, const OpenOptions& options) {
  return TokenizerFactory::OpenWith(
      {}, found.folder.path(), {.lowercase = found.settings.lower_case}, TokenizerCacheOf(options));
}

bool MayBeMissing(const Status& status) {
  return status.code() == ErrorCode::kUnsupported || status.code() == ErrorCode::kNotFound;
}

void NoteDimensions(const TextEncoder::Impl& impl, const FolderReading& reading) {
  if (!impl.config.truncate_dim || !impl.after) return;
  reading.Note("dimensions", std::to_string(impl.dimensions()), std::string(kSentenceConfigFile));
}

Result<NewImpl> OpenCheckpoint(const Opening& opening) {
  Result<Tokenizer> tokenizer = OpenTokenizer(opening.found, opening.options);
  ModelExtras extras{.score_may_be_missing = true};
  if (tokenizer.ok()) {
    ENCORE_ASSIGN_OR_RETURN(extras.score, DefaultLogitScore(opening.found.folder, *tokenizer));
  }
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenModel(opening, std::move(tokenizer), extras));
  ENCORE_RETURN_IF_ERROR(ReadPooledVectors(opening, nullptr, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  if (impl->model.language_head() == nullptr) {
    ENCORE_RETURN_IF_ERROR(ReadTokenWeightsOf(opening, impl.get()));
  } else {
    impl->sparse.pooling.emplace();
    opening.reading.Note("sparse vectors", "max of log1p(relu)", "default without modules.json");
  }
  return impl;
}

Result<NewImpl> OpenDense(const Opening& opening) {
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl,
                          OpenModel(opening, OpenTokenizer(opening.found, opening.options), {}));
  ENCORE_RETURN_IF_ERROR(ReadPooledVectors(opening, &opening.found.behind()[0], impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadTokenWeightsOf(opening, impl.get()));
  return impl;
}

Result<NewImpl> OpenTransformer(const Opening& opening) {
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl,
                          OpenModel(opening, OpenTokenizer(opening.found, opening.options), {}));
  ENCORE_RETURN_IF_ERROR(ReadWantedPooling(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadTokenWeightsOf(opening, impl.get()));
  return impl;
}

Result<NewImpl> OpenLogitScore(const Opening& opening) {
  ModelExtras extras;
  ENCORE_ASSIGN_OR_RETURN(extras.score,
                          ReadLogitScore(opening.found.behind()[0].path, opening.reading));
  ENCORE_ASSIGN_OR_RETURN(
      NewImpl impl, OpenModel(opening, OpenTokenizer(opening.found, opening.options), extras));
  ENCORE_RETURN_IF_ERROR(ReadWantedPooling(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadTokenWeightsOf(opening, impl.get()));
  return impl;
}

Result<NewImpl> OpenSparse(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenModel(opening, OpenTokenizer(found, options), {}));
  ENCORE_RETURN_IF_ERROR(ReadWantedPooling(opening, impl.get()));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  const size_t vocab_size = impl->model.vocab_size();
  ENCORE_ASSIGN_OR_RETURN(impl->sparse.pooling,
                          ReadSpladePooling(found.behind()[0].path, vocab_size, reading));
  if (found.routes.query_path.empty()) return impl;
  ENCORE_ASSIGN_OR_RETURN(impl->sparse.query,
                          ReadSparseStatic(found.routes.query_path, vocab_size, reading));
  impl->sparse.default_task = found.routes.by_default;
  return impl;
}

Result<NewImpl> OpenFeatures(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenModel(opening, OpenTokenizer(found, options), {}));
  if (!options.pooling.empty()) {
    return InvalidArgument(
        "found the option pooling; wanted none, as the folder's model makes a vector of each text");
  }
  reading.Note("pooling", "none: the model makes the vectors", "config.json");
  ENCORE_ASSIGN_OR_RETURN(
      impl->after, AfterEncoder::Read(PoolingSettings{{PoolingMode::kLastToken}}, found.behind(),
                                      impl->model.hidden_width(), options.normalize, reading));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  return impl;
}

Result<NewImpl> OpenLate(const Opening& opening) {
  const auto& [found, options, reading] = opening;
  ENCORE_ASSIGN_OR_RETURN(const LateSettings settings, ReadLateSettings(found, reading));
  ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer,
                          OpenLateTokenizer(found, settings, TokenizerCacheOf(options)));
  ModelExtras extras;
  if (found.kind == FolderKind::kStanford) extras.read_later = kStanfordProjection;
  ENCORE_ASSIGN_OR_RETURN(NewImpl impl, OpenModel(opening, tokenizer, extras));
  settings.AddPrefixes(&impl->config);
  impl->config.truncate_dim = {};
  ENCORE_ASSIGN_OR_RETURN(impl->after, ReadLateModules(found, settings, impl->model.hidden_width(),
                                                       options.normalize, reading));
  ENCORE_ASSIGN_OR_RETURN(impl->late, ResolveLate(found, settings, *impl->tokenizer, impl->model,
                                                  impl->max_length, options.max_length, reading));
  ENCORE_RETURN_IF_ERROR(ReadHead(opening, impl.get()));
  return impl;
}

}  // namespace encore::internal
