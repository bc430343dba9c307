// SPDX-License-Identifier: Apache-2.0
//
// Opens a model's folder: reads its files in the order in which they count, and keeps what was
// decided. Or its tokenizer alone.

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/models/family.h"
#include "engine/text/late_settings.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

using internal::Folder;
using internal::FolderReading;
using internal::ModuleEntry;

namespace {

Result<Tokenizer> OpenTokenizer(const internal::TransformerFolder& found) {
  return Tokenizer::Open(found.folder.path(), {.lowercase = found.settings.lower_case});
}

// What encore or the folder has not: without a tokenizer ids are of use, without a model the
// tokenizer is.
bool MayBeMissing(const Status& status) {
  return status.code() == ErrorCode::kUnsupported || status.code() == ErrorCode::kNotFound;
}

// Whether the modules are a masked language model and SpladePooling; kUnsupported where they are
// one of these without the other.
Result<bool> HasSplade(const internal::TransformerFolder& found) {
  const bool pools = found.modules && found.modules->size() > 1 &&
                     (*found.modules)[1].kind == internal::ModuleKind::kSpladePooling;
  if (found.settings.fills_masks == pools) return pools;
  return Status(ErrorCode::kUnsupported,
                pools
                    ? "modules.json: SpladePooling follows a transformer whose transformer_task is "
                      "not 'fill-mask'; wanted that"
                    : found.settings.file +
                          ": transformer_task is 'fill-mask'; encore has that only before "
                          "SpladePooling");
}

// The same of a causal language model and LogitScore.
Result<bool> HasLogitScore(const internal::TransformerFolder& found) {
  const bool scores = found.modules && found.modules->size() > 1 &&
                      (*found.modules)[1].kind == internal::ModuleKind::kLogitScore;
  if (found.settings.generates == scores) return scores;
  return Status(ErrorCode::kUnsupported,
                scores ? "modules.json: LogitScore follows a transformer whose transformer_task is "
                         "not 'text-generation'; wanted that"
                       : found.settings.file +
                             ": transformer_task is 'text-generation'; encore has that only before "
                             "LogitScore");
}

// BGE-M3's, where the folder has a file of them. Its dense vectors need none.
Result<internal::SparseSide> ReadTokenWeightsOf(const internal::TransformerFolder& found,
                                                const internal::TextModel& model,
                                                const Result<Tokenizer>& tokenizer,
                                                const FolderReading& reading) {
  internal::SparseSide sparse;
  ENCORE_ASSIGN_OR_RETURN(const bool is_there, found.folder.Has(internal::kTokenWeightFile));
  if (!is_there || !tokenizer.ok() || model.makes_features()) return sparse;
  sparse.by_token = internal::ReadTokenWeights(found, *tokenizer, model.hidden_width(), reading);
  const Status& status = sparse.by_token->status();
  if (status.ok()) return sparse;
  if (status.code() == ErrorCode::kOutOfMemory || status.code() == ErrorCode::kIo) return status;
  reading.Tell("sparse vectors", "none", status.message());
  return sparse;
}

Result<internal::SparseSide> ReadSparse(const internal::TransformerFolder& found,
                                        const internal::TextModel& model,
                                        const Result<Tokenizer>& tokenizer,
                                        const FolderReading& reading) {
  internal::SparseSide sparse;
  const bool is_plain = !found.modules && model.language_head() != nullptr;
  if (is_plain) {
    sparse.pooling.emplace();
    reading.Tell("sparse vectors", "max of log1p(relu)", "default without modules.json");
    return sparse;
  }
  if (!found.settings.fills_masks) return ReadTokenWeightsOf(found, model, tokenizer, reading);
  ENCORE_ASSIGN_OR_RETURN(sparse.pooling, internal::ReadSpladePooling((*found.modules)[1].path,
                                                                      model.vocab_size(), reading));
  if (found.routes.query_path.empty()) return sparse;
  ENCORE_ASSIGN_OR_RETURN(sparse.query, internal::ReadSparseStatic(found.routes.query_path,
                                                                   model.vocab_size(), reading));
  sparse.default_task = found.routes.by_default;
  return sparse;
}

// The folder is of the class that was asked for.
Status CheckClass(const internal::TransformerFolder& found, bool wants_late,
                  const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const bool is_late, internal::IsLateInteraction(found, reading));
  if (wants_late && !is_late && !found.makes_features) {
    ENCORE_ASSIGN_OR_RETURN(const bool is_m3, found.folder.Has(internal::kTokenVectorFile));
    if (is_m3) return {};
  }
  if (is_late && !wants_late) {
    return Status(
        ErrorCode::kUnsupported,
        "the folder's model has a vector for each token (late interaction); wanted one of "
        "TextEncoder's: MultiVectorEncoder opens it");
  }
  if (!is_late && wants_late) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model is not one of late interaction; wanted one of "
                  "MultiVectorEncoder's: TextEncoder opens others");
  }
  if (found.makes_features && is_late) {
    return Status(
        ErrorCode::kUnsupported,
        "config.json: the model makes a vector of each text; wanted one whose tokens have "
        "vectors in a folder of late interaction");
  }
  for (size_t i = 1; found.makes_features && found.modules && i < found.modules->size(); ++i) {
    const internal::ModuleKind kind = (*found.modules)[i].kind;
    using enum internal::ModuleKind;
    if (kind == kDense || kind == kNormalize || kind == kLayerNorm || kind == kDropout) continue;
    return Status(ErrorCode::kUnsupported,
                  "modules.json: module " + std::to_string(i) +
                      " follows a model that makes a vector of each text; wanted Dense, "
                      "Normalize, LayerNorm and Dropout alone");
  }
  for (size_t i = 0; is_late && found.modules && i < found.modules->size(); ++i) {
    using enum internal::ModuleKind;
    const internal::ModuleKind kind = (*found.modules)[i].kind;
    const bool fits = i == 0 ? kind == kTransformer
                             : kind == kDense || kind == kMultiVectorMask || kind == kNormalize;
    if (fits) continue;
    return Status(ErrorCode::kUnsupported,
                  "modules.json: module " + std::to_string(i) +
                      " is none of late interaction; wanted a Transformer, and behind it Dense, "
                      "MultiVectorMask and Normalize alone");
  }
  const bool pools = !found.modules || found.makes_features || found.modules->size() < 2 ||
                     (*found.modules)[1].kind == internal::ModuleKind::kPooling ||
                     (*found.modules)[1].kind == internal::ModuleKind::kSpladePooling ||
                     (*found.modules)[1].kind == internal::ModuleKind::kLogitScore ||
                     found.modules->front().kind == internal::ModuleKind::kStaticEmbedding;
  if (!is_late && !pools) {
    return Status(ErrorCode::kUnsupported,
                  "modules.json: module 1 is out of order; wanted Pooling behind Transformer");
  }
  const internal::TaskLengths& lengths = found.settings.lengths;
  if (!is_late && !lengths.empty()) {
    const auto is = [](const char* key, size_t length) {
      return std::string(key) + " is " + std::to_string(length);
    };
    const std::string what = lengths.query && *lengths.query ? is("query_length", **lengths.query)
                             : lengths.document && *lengths.document
                                 ? is("document_length", **lengths.document)
                                 : "query_expansion is an object";
    return InvalidArgument(found.settings.file + ": " + what +
                           "; wanted null but in models of late interaction");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TextEncoder::Impl>> internal::OpenFolder(
    const std::string& folder_path, const OpenOptions& options, LateModel* late) {
  ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(folder_path));
  std::vector<Decision> decisions;
  const FolderReading reading{folder, options.ignore_unknown_keys, decisions};

  ENCORE_ASSIGN_OR_RETURN(internal::TransformerFolder found, internal::FindTransformer(reading));
  const bool has_modules = found.modules.has_value();
  ENCORE_RETURN_IF_ERROR(CheckClass(found, late != nullptr, reading));
  if (has_modules && found.modules->front().kind == internal::ModuleKind::kStaticEmbedding) {
    return internal::OpenStatic(found, options, reading);
  }
  if (has_modules && found.modules->front().kind == internal::ModuleKind::kSparseStatic) {
    return internal::OpenSparseStatic(found, options, reading);
  }
  LateSettings late_settings;
  if (late != nullptr) {
    ENCORE_ASSIGN_OR_RETURN(late_settings, ReadLateSettings(found, reading));
  }

  std::span<const ModuleEntry> rest;
  if (has_modules) rest = std::span<const ModuleEntry>(*found.modules).subspan(1);
  ENCORE_ASSIGN_OR_RETURN(const bool splade, HasSplade(found));
  OpenOptions model_options = options;
  model_options.language_head = options.language_head || splade;
  ENCORE_ASSIGN_OR_RETURN(const bool logit_score, HasLogitScore(found));
  internal::ModelExtras extras{.score_may_be_missing = !has_modules};
  if (late_settings.is_stanford) extras.read_later = internal::kStanfordProjection;
  Result<Tokenizer> tokenizer =
      late != nullptr ? OpenLateTokenizer(found, late_settings) : OpenTokenizer(found);
  if (logit_score) {
    ENCORE_ASSIGN_OR_RETURN(extras.score, ReadLogitScore(rest.front().path, reading));
  } else if (!has_modules && late == nullptr && tokenizer.ok()) {
    ENCORE_ASSIGN_OR_RETURN(extras.score, DefaultLogitScore(found.folder, *tokenizer));
  }
  ENCORE_ASSIGN_OR_RETURN(
      internal::TextModel model,
      internal::TextModel::Open(found.folder, model_options, &decisions, extras));
  if (tokenizer.ok()) {
    for (const Decision& decision : tokenizer->Describe()) decisions.push_back(decision);
  } else {
    if (!MayBeMissing(tokenizer.status()) || late != nullptr) return tokenizer.status();
    reading.Tell("tokenizer", "none: ids only", tokenizer.status().message());
  }
  ENCORE_ASSIGN_OR_RETURN(
      const size_t max_length,
      internal::ChooseMaxLength(
          {.option = options.max_length,
           .settings = found.settings,
           .tokenizer_maximum =
               tokenizer.ok() ? tokenizer->model_max_length() : std::optional<size_t>(),
           .model_usual = model.usual_tokens(),
           .model_maximum = model.max_tokens(),
           .special_tokens = tokenizer.ok() ? tokenizer->special_tokens_of_text() : 0,
           .positions_skip_padding = model.positions_skip_padding()},
          reading));
  ENCORE_ASSIGN_OR_RETURN(const bool use_type_ids,
                          internal::ReadUsesTypeIds(found, model.type_vocab_size(), reading));
  ENCORE_ASSIGN_OR_RETURN(internal::SentenceConfig config,
                          internal::ReadSentenceConfig(has_modules, reading, late != nullptr));

  std::optional<internal::Expansion> padding;
  if (model.pads()) {
    if (tokenizer.ok()) {
      ENCORE_ASSIGN_OR_RETURN(padding, internal::ReadPadding(found, *tokenizer, model, reading));
    }
  } else if (found.settings.padding) {
    return Status(ErrorCode::kUnsupported,
                  found.settings.file +
                      ": processing_kwargs pad texts; wanted that of models that "
                      "were trained on padded texts alone");
  }
  std::optional<internal::AfterEncoder> after;
  if (found.settings.classifies && !rest.empty()) {
    return Status(ErrorCode::kUnsupported,
                  "modules.json: found modules behind a transformer that classifies; encore has "
                  "none of them");
  }
  // Where modules.json lists a transformer alone, nothing makes vectors of texts.
  const bool has_pooling = !rest.empty() && !splade && !logit_score;
  const bool pools = !has_modules || has_pooling || !options.pooling.empty();
  if (late != nullptr) {
    late_settings.AddPrefixes(&config);
    config.truncate_dim = {};
    ENCORE_ASSIGN_OR_RETURN(after, ReadLateModules(found, late_settings, model.hidden_width(),
                                                   options.normalize, reading));
    ENCORE_ASSIGN_OR_RETURN(*late, ResolveLate(found, late_settings, *tokenizer, model, max_length,
                                               options.max_length, reading));
  } else if (model.makes_features()) {
    if (!options.pooling.empty()) {
      return InvalidArgument(
          "found the option pooling; wanted none, as the folder's model makes a "
          "vector of each text");
    }
    reading.Tell("pooling", "none: the model makes the vectors", "config.json");
    ENCORE_ASSIGN_OR_RETURN(after, internal::AfterEncoder::Read(
                                       internal::PoolingSettings{{PoolingMode::kLastToken}}, rest,
                                       model.hidden_width(), options.normalize, reading));
  } else if (pools) {
    ENCORE_ASSIGN_OR_RETURN(internal::PoolingSettings pooling,
                            internal::ReadPooling(has_pooling ? &rest.front() : nullptr,
                                                  model.hidden_width(), options.pooling, reading));
    ENCORE_ASSIGN_OR_RETURN(
        after, internal::AfterEncoder::Read(std::move(pooling), rest, model.hidden_width(),
                                            options.normalize, reading));
  }
  Result<const internal::ActivationRow*> as_cross_encoder =
      internal::FindTorchActivation("torch.nn.Identity");
  Result<const internal::ActivationRow*> as_classifier = as_cross_encoder;
  if (model.has_head()) {
    as_cross_encoder =
        internal::ReadScoreActivation(found.path, config, model.labels().size(), reading);
    if (!as_cross_encoder.ok()) {
      const Status& status = as_cross_encoder.status();
      if (status.code() != ErrorCode::kUnsupported) return status;
      reading.Tell("scores", "only with an activation of the caller's", status.message());
    }
    as_classifier = internal::ClassifierActivation(model, reading);
  }
  Result<std::optional<internal::PairChatTemplate>> pair_template =
      std::optional<internal::PairChatTemplate>();
  if (model.has_head() && tokenizer.ok()) {
    const std::string* prompt =
        config.default_prompt_name ? config.FindPrompt(*config.default_prompt_name) : nullptr;
    pair_template = internal::ReadPairChatTemplate(
        found, prompt != nullptr ? std::string_view(*prompt) : std::string_view(), *tokenizer,
        reading);
    if (!pair_template.ok()) {
      if (pair_template.status().code() != ErrorCode::kUnsupported) return pair_template.status();
      reading.Tell("pairs", "none: scores only of ids", pair_template.status().message());
    }
  }
  if (config.truncate_dim && after) {
    reading.Tell("dimensions", std::to_string(std::min(*config.truncate_dim, after->width())),
                 std::string(internal::kSentenceConfigFile));
  }
  internal::SparseSide sparse;
  if (late == nullptr) {
    ENCORE_ASSIGN_OR_RETURN(sparse, ReadSparse(found, model, tokenizer, reading));
  }
  std::optional<internal::WordRules> words;
  if (model.labels_tokens() && tokenizer.ok()) {
    ENCORE_ASSIGN_OR_RETURN(words, internal::ReadWordRules(found.folder, *tokenizer));
  }
  return std::shared_ptr<const TextEncoder::Impl>(new TextEncoder::Impl{
      .model = std::move(model),
      .tokenizer = std::move(tokenizer),
      .after = std::move(after),
      .as_cross_encoder = std::move(as_cross_encoder),
      .as_classifier = std::move(as_classifier),
      .config = std::move(config),
      .max_length = max_length,
      .use_type_ids = use_type_ids,
      .normalize = options.normalize,
      .sparse = std::move(sparse),
      .words = words,
      .padding = padding,
      .pair_template = std::move(pair_template),
      .decisions = std::move(decisions),
  });
}

namespace {

// A model's tokens of a text, unless a caller or a file wants more, and at most; the largest
// numbers where its family or its config.json is not known.
struct ModelLengths {
  size_t usual = std::numeric_limits<size_t>::max();
  size_t maximum = std::numeric_limits<size_t>::max();
};

Result<ModelLengths> ReadLengths(const Folder& folder, bool ignore_unknown_keys) {
  std::vector<Decision> decisions;
  const Result<internal::ModelPlan> plan =
      internal::ReadModelConfig(folder, ignore_unknown_keys, &decisions);
  if (plan.ok()) {
    return ModelLengths{plan->embeddings.usual_tokens(), plan->embeddings.max_tokens()};
  }
  if (MayBeMissing(plan.status())) return ModelLengths();
  return plan.status();
}

}  // namespace

Result<internal::FolderTokenizer> internal::OpenFolderTokenizer(const std::string& path,
                                                                bool ignore_unknown_keys) {
  return Guarded("the tokenizer", [&]() -> Result<FolderTokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
    std::vector<Decision> decisions;
    const FolderReading reading{folder, ignore_unknown_keys, decisions};
    ENCORE_ASSIGN_OR_RETURN(const TransformerFolder found, FindTransformer(reading));
    if (found.modules && found.modules->front().kind == ModuleKind::kStaticEmbedding) {
      return OpenStaticTokenizer(found, reading);
    }
    ENCORE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, OpenTokenizer(found));
    if (found.modules && found.modules->front().kind == ModuleKind::kSparseStatic) {
      return FolderTokenizer{tokenizer, tokenizer.model_max_length().value_or(0),
                             /*type_ids=*/false, /*add_special_tokens=*/false};
    }
    ENCORE_ASSIGN_OR_RETURN(const ModelLengths lengths,
                            ReadLengths(found.folder, ignore_unknown_keys));
    ENCORE_ASSIGN_OR_RETURN(const size_t length,
                            ChooseMaxLength({.option = {},
                                             .settings = found.settings,
                                             .tokenizer_maximum = tokenizer.model_max_length(),
                                             .model_usual = lengths.usual,
                                             .model_maximum = lengths.maximum},
                                            reading));
    const bool is_known = length < std::numeric_limits<size_t>::max();
    ENCORE_ASSIGN_OR_RETURN(const bool type_ids, ReadUsesTypeIds(found, 1, reading));
    return FolderTokenizer{tokenizer, is_known ? length : 0, type_ids};
  });
}

Result<TextEncoder> TextEncoder::Open(const std::string& folder, const OpenOptions& options) {
  return internal::Guarded("the model", [&]() -> Result<TextEncoder> {
    ENCORE_ASSIGN_OR_RETURN(std::shared_ptr<const Impl> impl,
                            internal::OpenFolder(folder, options, nullptr));
    return TextEncoder(std::move(impl));
  });
}

size_t TextEncoder::dimensions() const { return impl_->after ? impl_->dimensions() : 0; }
size_t TextEncoder::max_dimensions() const { return impl_->after ? impl_->after->width() : 0; }
size_t TextEncoder::d_model() const { return impl_->model.hidden_width(); }
size_t TextEncoder::max_length() const { return impl_->max_length; }
bool TextEncoder::has_tokenizer() const { return impl_->tokenizer.ok(); }
const Tokenizer& TextEncoder::tokenizer() const& { return *impl_->tokenizer; }
bool TextEncoder::has_encoder() const { return !impl_->model.is_static(); }
const Encoder& TextEncoder::encoder() const& { return impl_->model.encoder(); }
const std::vector<std::string>& TextEncoder::labels() const& { return impl_->model.labels(); }
const std::vector<std::pair<std::string, std::string>>& TextEncoder::prompts() const& {
  return impl_->config.prompts;
}
const std::vector<Decision>& TextEncoder::Describe() const& { return impl_->decisions; }

}  // namespace encore
