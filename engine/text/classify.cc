// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder's scores and predictions: what a classification head says of texts and pairs.

#include <algorithm>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/text/pooling.h"
#include "engine/text/stream.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {

namespace {

struct Classifying {
  const internal::TorchActivation* activation = nullptr;
  internal::StreamOptions stream;
};

const internal::TorchActivation* ActivationOf(ScoreActivation activation) {
  return internal::FindTorchActivation(
      activation == ScoreActivation::kSigmoid ? "torch.nn.Sigmoid" : "torch.nn.Identity");
}

Result<Classifying> MakeClassifying(const TextEncoder::Impl& impl, const ScoreOptions& options) {
  if (!impl.model.has_head()) {
    return Status(ErrorCode::kUnsupported,
                  "the folder's model has no classification head, so it gives no scores");
  }
  if (!options.activation && !impl.activation.ok()) return impl.activation.status();
  Classifying classifying;
  classifying.activation =
      options.activation ? ActivationOf(*options.activation) : *impl.activation;
  classifying.stream.executor = options.executor;
  classifying.stream.batch_tokens = options.batch_tokens;
  classifying.stream.rows = impl.model.head_rows();
  return classifying;
}

// What the head reads: [texts, d_model] of a batch's hidden states.
std::vector<float> PoolForHead(const internal::TextModel& model, const float* hidden, size_t texts,
                               const std::vector<size_t>& starts) {
  const size_t width = model.d_model();
  if (model.head_rows() == OutputRows::kFirst) {
    return std::vector<float>(hidden, hidden + texts * width);
  }
  constexpr PoolingMode kMean[] = {PoolingMode::kMean};
  std::vector<float> pooled(texts * width);
  std::vector<double> sums(width);
  RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
    for (size_t i = 0; i < texts; ++i) {
      internal::PoolRows(kMean, hidden + starts[i] * width, starts[i + 1] - starts[i], width,
                         sums.data(), pooled.data() + i * width);
    }
  });
  return pooled;
}

internal::TakeBatch WritePredictions(const TextEncoder::Impl& impl, const Classifying& classifying,
                                     MutableView predictions) {
  return [&impl, &classifying, predictions](const float* hidden, std::span<const size_t> texts,
                                            internal::Scratch* scratch) {
    const size_t labels = impl.model.labels().size();
    const std::vector<float> pooled =
        PoolForHead(impl.model, hidden, texts.size(), scratch->starts);
    std::vector<float> logits(texts.size() * labels);
    ENCORE_RETURN_IF_ERROR(impl.model.Logits(
        ConstView(pooled.data(), Shape(texts.size(), impl.model.d_model())),
        MutableView(logits.data(), Shape(texts.size(), labels)), classifying.stream.executor));
    RunParallel(Executor::Inline(), 1, [&](size_t) {  // under the default rounding
      for (size_t i = 0; i < texts.size(); ++i) {
        classifying.activation->apply(logits.data() + i * labels, labels);
        std::copy_n(logits.data() + i * labels, labels, &predictions(texts[i], 0));
      }
    });
    return Status();
  };
}

// For all texts of `inputs`.
Result<Predictions> Predict(const TextEncoder::Impl& impl, internal::TextInputs inputs,
                            const ScoreOptions& options) {
  ENCORE_ASSIGN_OR_RETURN(Classifying classifying, MakeClassifying(impl, options));
  // As CrossEncoder.predict: the default prompt goes before the first text of a pair.
  const Result<std::string_view> prompt = internal::ResolvePrompt(impl, {}, {});
  if (!prompt.ok()) return prompt.status();
  inputs.prompt = *prompt;
  const Result<size_t> max_length = internal::ResolveMaxLength(impl, options.max_length);
  if (!max_length.ok()) return max_length.status();
  classifying.stream.tokenize = {.max_length = *max_length,
                                 .on_long = options.on_long,
                                 .on_invalid_utf8 = options.on_invalid_utf8,
                                 .plain_text = options.plain_text};
  ENCORE_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Create(DType::kF32, {inputs.size(), impl.model.labels().size()}));
  Predictions predictions{std::move(values), {}};
  ENCORE_RETURN_IF_ERROR(internal::StreamTexts(
      impl, inputs, classifying.stream,
      WritePredictions(impl, classifying, predictions.values.View<float>()), &predictions.counts));
  return predictions;
}

}  // namespace

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
        Predict(*impl_, {.texts = documents, .query = &query, .name = "documents"}, options));
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
    ENCORE_ASSIGN_OR_RETURN(const Classifying classifying, MakeClassifying(*impl_, options));
    ENCORE_ASSIGN_OR_RETURN(
        const size_t max_length,
        internal::ResolveMaxLength(
            *impl_, options.max_length > 0 ? options.max_length : impl_->model.max_tokens()));
    ENCORE_ASSIGN_OR_RETURN(
        Tensor values, Tensor::Create(DType::kF32, {ids.size(), impl_->model.labels().size()}));
    Predictions predictions{std::move(values), {}};
    ENCORE_RETURN_IF_ERROR(
        internal::StreamIds(*impl_, ids, type_ids, max_length, classifying.stream,
                            WritePredictions(*impl_, classifying, predictions.values.View<float>()),
                            &predictions.counts));
    return predictions;
  });
}

}  // namespace encore
