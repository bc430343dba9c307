// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder's scores and predictions: what a classification head says of texts and pairs.

#include <algorithm>

#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

namespace {

struct NamedActivation {
  ScoreActivation activation;
  std::string_view name;
  std::string_view torch = {};  // the class's; empty: the folder's choice
};

constexpr NamedActivation kScoreActivations[] = {
    {ScoreActivation::kIdentity, "identity", "Identity"},
    {ScoreActivation::kSigmoid, "sigmoid", "Sigmoid"},
    {ScoreActivation::kSoftmax, "softmax", "Softmax"},
    {ScoreActivation::kAsCrossEncoder, "as cross-encoder"},
    {ScoreActivation::kAsClassifier, "as classifier"},
};

const NamedActivation* FindScoreActivation(ScoreActivation activation) {
  for (const NamedActivation& known : kScoreActivations) {
    if (known.activation == activation) return &known;
  }
  return nullptr;
}

const internal::ActivationRow* TorchActivationOf(const NamedActivation& named) {
  return internal::FindTorchActivation("torch.nn." + std::string(named.torch));
}

// Between the head and the values.
Result<const internal::ActivationRow*> ActivationOf(const TextEncoder::Impl& impl,
                                                    const ScoreOptions& options,
                                                    ScoreActivation absent) {
  if (!impl.model.has_head()) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model has no classification head, so it gives no scores");
  }
  return internal::ResolveActivation(options.activation.value_or(absent), impl.as_cross_encoder,
                                     impl.as_classifier);
}

// Means of each text's rows: [texts, width].
void MeanRows(const float* rows, const std::vector<size_t>& starts, size_t width, float* means) {
  constexpr PoolingMode kMean[] = {PoolingMode::kMean};
  std::vector<double> sums(width);
  (void)RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      internal::PoolRows(kMean, rows + starts[i] * width, starts[i + 1] - starts[i], width,
                         sums.data(), means + i * width);
    }
  });
}

// What the head reads: [texts, d_model] of a batch's hidden states.
std::vector<float> PoolForHead(const internal::TextModel& model, const float* hidden,
                               const internal::CallScratch& scratch) {
  const size_t width = model.d_model();
  const std::vector<size_t>& starts = scratch.starts;
  const size_t texts = starts.size() - 1;
  if (scratch.rows != OutputRows::kAll) return std::vector<float>(hidden, hidden + texts * width);
  std::vector<float> pooled(texts * width);
  if (model.head_rows() == OutputRows::kLast) {
    for (size_t i = 0; i < texts; ++i) {
      const std::span<const int32_t> ids =
          std::span(scratch.ids).subspan(starts[i], starts[i + 1] - starts[i]);
      std::copy_n(hidden + (starts[i] + model.head_place(ids)) * width, width,
                  pooled.data() + i * width);
    }
    return pooled;
  }
  MeanRows(hidden, starts, width, pooled.data());
  return pooled;
}

// [texts, labels] of a batch's hidden states.
Result<std::vector<float>> LogitsOf(const internal::TextModel& model, const float* hidden,
                                    const internal::CallScratch& scratch,
                                    const Executor& executor) {
  const size_t labels = model.labels().size();
  const size_t texts = scratch.starts.size() - 1;
  std::vector<float> pooled;
  size_t rows = scratch.starts.back();
  if (!model.head_means_logits()) {
    pooled = PoolForHead(model, hidden, scratch);
    hidden = pooled.data();
    rows = texts;
  }
  std::vector<float> logits(rows * labels);
  ENCORE_RETURN_IF_ERROR(model.Logits(ConstView(hidden, Shape(rows, model.d_model())),
                                      MutableView(logits.data(), Shape(rows, labels)), executor));
  if (!model.head_means_logits()) return logits;
  std::vector<float> means(texts * labels);
  MeanRows(logits.data(), scratch.starts, labels, means.data());
  return means;
}

// Sets what goes around inputs: a chat template, if there is one, else the prompt before the first
// text of each, as CrossEncoder.predict has it. A template with the call's prompt goes to `own`.
Status ChoosePrompt(const TextEncoder::Impl& impl, const ScoreOptions& options,
                    internal::TextInputs* inputs, internal::PairChatTemplate* own) {
  if (inputs->ids) {
    if (!options.prompt && !options.prompt_name) return {};
    return InvalidArgument("found a prompt; wanted none, as ids are taken as they are");
  }
  if (!impl.pair_template.ok()) return impl.pair_template.status();
  ENCORE_ASSIGN_OR_RETURN(const std::string_view prompt,
                          internal::ResolvePrompt(impl, options.prompt_name, options.prompt));
  if (!*impl.pair_template) {
    inputs->prompt = prompt;
    return {};
  }
  if (!inputs->pairs()) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's texts are rendered by a chat template; wanted pairs of texts");
  }
  if (options.plain_text) {
    return Status(ErrorCode::kUnsupported,
                  "found plain_text; wanted none, as the folder's chat template has special tokens "
                  "in its text");
  }
  inputs->pair_template = &**impl.pair_template;
  if (!options.prompt && !options.prompt_name) return {};
  ENCORE_ASSIGN_OR_RETURN(*own,
                          internal::RenderPairs(**impl.pair_template, prompt, *impl.tokenizer));
  inputs->pair_template = own;
  return {};
}

// For all of `inputs`; with the activation `absent` where the options have none.
Result<Predictions> Predict(const TextEncoder::Impl& impl, internal::TextInputs inputs,
                            const ScoreOptions& options,
                            ScoreActivation absent = ScoreActivation::kAsClassifier) {
  internal::CallWatch watch(options);
  ENCORE_ASSIGN_OR_RETURN(const internal::ActivationRow* const activation,
                          ActivationOf(impl, options, absent));
  internal::PairChatTemplate own_template;
  ENCORE_RETURN_IF_ERROR(ChoosePrompt(impl, options, &inputs, &own_template));
  ENCORE_ASSIGN_OR_RETURN(
      internal::StreamOptions stream,
      internal::MakeStreamOptions(impl, options, inputs.ids.has_value(), /*rows=*/{}, &watch));
  if (inputs.pair_template != nullptr) stream.tokenize.add_special_tokens = false;
  const size_t labels = impl.model.labels().size();
  ENCORE_ASSIGN_OR_RETURN(Tensor values, Tensor::Create(DType::kF32, {inputs.size(), labels}));
  Predictions predictions{std::move(values), {}};
  const MutableView rows = predictions.values.View<float>();
  const auto write = [&](const float* hidden, std::span<const size_t> texts,
                         internal::CallScratch* scratch) -> Status {
    ENCORE_ASSIGN_OR_RETURN(std::vector<float> logits,
                            LogitsOf(impl.model, hidden, *scratch, options.executor));
    (void)RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
      for (size_t i = 0; i < texts.size(); ++i) {
        activation->apply(logits.data() + i * labels, labels);
        std::copy_n(logits.data() + i * labels, labels, &rows(texts[i], 0));
      }
    });
    return Status();
  };
  ENCORE_RETURN_IF_ERROR(
      internal::StreamTexts(impl, inputs, stream, std::ref(write), &predictions.counts));
  return predictions;
}

}  // namespace

std::string_view ScoreActivationName(ScoreActivation activation) {
  const NamedActivation* known = FindScoreActivation(activation);
  return known == nullptr ? "unknown" : known->name;
}

Result<ScoreActivation> ScoreActivationFromName(std::string_view name) {
  return internal::Guarded("the name", [&]() -> Result<ScoreActivation> {
    if (name == "none") return ScoreActivation::kIdentity;
    for (const NamedActivation& known : kScoreActivations) {
      if (name == known.name) return known.activation;
      if (known.torch.empty()) continue;
      if (internal::FindTorchActivation(name) == TorchActivationOf(known)) return known.activation;
    }
    return InvalidArgument("the activation is " + internal::Quoted(name) +
                           "; wanted 'identity', 'none', 'sigmoid', 'softmax', or one of torch's "
                           "classes of these, such as 'torch.nn.Sigmoid'");
  });
}

Result<const internal::ActivationRow*> internal::ResolveActivation(
    ScoreActivation wanted, const Result<const ActivationRow*>& as_cross_encoder,
    const Result<const ActivationRow*>& as_classifier) {
  if (wanted == ScoreActivation::kAsCrossEncoder) return as_cross_encoder;
  if (wanted == ScoreActivation::kAsClassifier) return as_classifier;
  const NamedActivation* named = FindScoreActivation(wanted);
  if (named != nullptr) return TorchActivationOf(*named);
  return InvalidArgument("activation is number " + std::to_string(static_cast<int>(wanted)) +
                         "; wanted one of the ScoreActivation");
}

Result<const internal::ActivationRow*> internal::ClassifierActivation(
    const Result<ProblemType>& problem, size_t labels, const FolderReading& reading) {
  if (!problem.ok()) {
    reading.Note("classes", "only with an activation of the caller's", problem.status().message());
    return problem.status();
  }
  const bool is_one = labels == 1;
  const ActivationRow* activation = nullptr;
  std::string source = std::string(kConfigFile) + ": problem_type";
  switch (*problem) {
    case ProblemType::kRegression:
      activation = FindTorchActivation("torch.nn.Identity");
      break;
    case ProblemType::kMultiLabel:
      activation = FindTorchActivation("torch.nn.Sigmoid");
      break;
    case ProblemType::kSingleLabel:
      activation = FindTorchActivation("torch.nn.Softmax");
      break;
    case ProblemType::kUnnamed:
      activation = FindTorchActivation(is_one ? "torch.nn.Sigmoid" : "torch.nn.Softmax");
      source = is_one ? "default for one label" : "default for several labels";
      break;
  }
  reading.Note("classes", std::string(activation->text), source);
  return activation;
}

Result<Scores> TextEncoder::Score(std::string_view query, Texts documents,
                                  const ScoreOptions& options) const {
  return internal::Guarded("the scores", [&]() -> Result<Scores> {
    if (impl_->model.has_head() && impl_->model.labels().size() != 1) {
      return Status(ErrorCode::kUnsupported, "the folder's head has " +
                                                 std::to_string(impl_->model.labels().size()) +
                                                 " labels; a score wants one (Classify gives all)");
    }
    ENCORE_ASSIGN_OR_RETURN(
        Predictions predictions,
        Predict(*impl_, {.texts = documents, .query = &query, .name = "documents"}, options,
                ScoreActivation::kAsCrossEncoder));
    Scores scores;
    const auto* values = static_cast<const float*>(predictions.values.data());
    scores.values.assign(values, values + documents.size());
    scores.counts = std::move(predictions.counts);
    return scores;
  });
}

Result<Predictions> TextEncoder::Classify(Texts texts, const ScoreOptions& options) const {
  return internal::Guarded("the scores",
                           [&] { return Predict(*impl_, {.texts = texts}, options); });
}

Result<Predictions> TextEncoder::Classify(Texts first, Texts second,
                                          const ScoreOptions& options) const {
  return internal::Guarded("the scores", [&]() -> Result<Predictions> {
    if (first.size() != second.size()) {
      return InvalidArgument("found " + std::to_string(first.size()) + " first texts and " +
                             std::to_string(second.size()) + " second ones; wanted as many");
    }
    return Predict(*impl_, {.texts = first, .second = &second, .name = "pairs"}, options);
  });
}

Result<Predictions> TextEncoder::ClassifyIds(std::span<const std::vector<int32_t>> ids,
                                             std::span<const std::vector<uint8_t>> type_ids,
                                             const ScoreOptions& options) const {
  return internal::Guarded("the scores", [&]() -> Result<Predictions> {
    if (!type_ids.empty() && type_ids.size() != ids.size()) {
      return InvalidArgument("type_ids has " + std::to_string(type_ids.size()) + " lists; wanted " +
                             std::to_string(ids.size()) + ", as ids has");
    }
    return Predict(*impl_, {.ids = ids, .type_ids = type_ids}, options);
  });
}

}  // namespace encore
