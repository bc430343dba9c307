// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder's labels of tokens, and its predictions of tokens.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/first_failure.h"
#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1 {
namespace {

Status WantTokenHead(const TextEncoder::Impl& impl) {
  ENCORE_RETURN_IF_ERROR(internal::WantTokenizer(impl));
  if (impl.model.labels_tokens()) return {};
  return Status(ErrorCode::kUnsupported,
                "found a model of " + std::string(impl.model.family()) +
                    " without a head that labels tokens; wanted a folder for token classification, "
                    "of a family whose head encore supports");
}

// logits [tokens, labels] of hidden [tokens, d_model].
Result<Tensor> TokenLogitsOf(const internal::TextModel& model, const float* hidden, size_t tokens,
                             const Executor& executor) {
  const size_t labels = model.labels().size();
  ENCORE_ASSIGN_OR_RETURN(Tensor logits, Tensor::Create(DType::kF32, {tokens, labels}));
  ENCORE_RETURN_IF_ERROR(model.Logits(ConstView(hidden, Shape(tokens, model.d_model())),
                                      logits.View<float>(), executor));
  return logits;
}

Result<Entities> FindAll(const TextEncoder::Impl& impl, Texts texts, const LabelOptions& options) {
  internal::CallWatch watch(options);
  ENCORE_RETURN_IF_ERROR(WantTokenHead(impl));
  ENCORE_ASSIGN_OR_RETURN(
      internal::StreamOptions stream,
      internal::MakeStreamOptions(impl, options, /*of_ids=*/false, OutputRows::kAll, &watch));
  stream.tokenize.offsets = true;
  const std::vector<std::string>& labels = impl.model.labels();
  Entities found;
  found.of_texts.resize(texts.size());
  const auto take = [&](const float* hidden, std::span<const size_t> batch,
                        internal::CallScratch* scratch) -> Status {
    const std::vector<size_t>& starts = scratch->starts;
    ENCORE_ASSIGN_OR_RETURN(const Tensor logits,
                            TokenLogitsOf(impl.model, hidden, starts.back(), options.executor));
    const auto* const values = static_cast<const float*>(logits.data());
    internal::FirstFailure failure;
    ENCORE_RETURN_IF_ERROR(RunParallel(options.executor, batch.size(), [&](size_t i) {
      failure.Keep(internal::Guarded("the entities of a text", [&]() -> Status {
        found.of_texts[batch[i]] = internal::EntitiesOf(
            texts[batch[i]], scratch->tokens.tokens(batch[i] - scratch->first_text),
            values + starts[i] * labels.size(), labels, *impl.tokenizer, *impl.words, options);
        return {};
      }));
    }));
    return failure.status();
  };
  ENCORE_RETURN_IF_ERROR(
      internal::StreamTexts(impl, {.texts = texts}, stream, std::ref(take), &found.counts));
  return found;
}

// The tokens of a text, and their hidden states.
Result<TokenVectors> HiddenStates(const TextEncoder::Impl& impl, std::string_view text,
                                  const LabelOptions& options, internal::CallWatch* watch) {
  ENCORE_RETURN_IF_ERROR(internal::WantTokenizer(impl));
  ENCORE_ASSIGN_OR_RETURN(
      const internal::StreamOptions stream,
      internal::MakeStreamOptions(impl, options, /*of_ids=*/false, OutputRows::kAll, watch));
  return internal::EncodeTokensOf(impl, /*prompt=*/"", text, stream);
}

Status CheckPositions(std::span<const size_t> positions, size_t tokens) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < tokens) continue;
    return InvalidArgument("positions[" + std::to_string(i) + "] is " +
                           std::to_string(positions[i]) + "; wanted 0 .. " +
                           std::to_string(tokens - 1) + ", as the text has tokens");
  }
  return {};
}

// Logits of rows of hidden states, a block of the vocabulary after the other.
Result<Tensor> VocabularyLogits(const internal::LanguageHead& head, ConstView hidden,
                                const Executor& executor) {
  const size_t rows = hidden.dim(0);
  ENCORE_ASSIGN_OR_RETURN(Tensor logits, Tensor::Create(DType::kF32, {rows, head.vocab_size()}));
  ENCORE_ASSIGN_OR_RETURN(Tensor transformed, Tensor::Create(DType::kF32, {rows, head.width()}));
  if (rows == 0) return logits;
  ENCORE_RETURN_IF_ERROR(head.Transform(hidden, transformed.View<float>(), executor));
  auto* const out = static_cast<float*>(logits.data());
  const TensorView<float>::Strides strides = {static_cast<ptrdiff_t>(head.vocab_size()), 1};
  internal::FirstFailure failure;
  ENCORE_RETURN_IF_ERROR(RunParallel(executor, head.blocks(), [&](size_t block) {
    const MutableView columns(out + block * internal::LanguageHead::kBlock,
                              Shape(rows, head.block_size(block)), strides);
    failure.Keep(head.Block(block, transformed.View<float>(), columns));
  }));
  ENCORE_RETURN_IF_ERROR(failure.status());
  return logits;
}

}  // namespace

Result<Entities> TextEncoder::FindEntities(Texts texts, const LabelOptions& options) const {
  return internal::Guarded("the entities", [&] { return FindAll(*impl_, texts, options); });
}

Result<TokenLogits> TextEncoder::LabelTokens(std::string_view text,
                                             const LabelOptions& options) const {
  return internal::Guarded("the labels", [&]() -> Result<TokenLogits> {
    internal::CallWatch watch(options);
    ENCORE_RETURN_IF_ERROR(WantTokenHead(*impl_));
    ENCORE_ASSIGN_OR_RETURN(TokenVectors hidden, HiddenStates(*impl_, text, options, &watch));
    ENCORE_ASSIGN_OR_RETURN(
        Tensor logits, TokenLogitsOf(impl_->model, static_cast<const float*>(hidden.vectors.data()),
                                     hidden.tokens.ids.size(), options.executor));
    return TokenLogits{std::move(logits), std::move(hidden.tokens)};
  });
}

Result<TokenLogits> TextEncoder::PredictTokens(std::string_view text,
                                               std::span<const size_t> positions,
                                               const LabelOptions& options) const {
  return internal::Guarded("the predictions", [&]() -> Result<TokenLogits> {
    internal::CallWatch watch(options);
    const internal::LanguageHead* const head = impl_->model.language_head();
    if (head == nullptr) {
      return Status(ErrorCode::kUnsupported,
                    "the folder was opened without a masked language model's head; wanted "
                    "OpenOptions::language_head");
    }
    ENCORE_ASSIGN_OR_RETURN(TokenVectors hidden, HiddenStates(*impl_, text, options, &watch));
    const size_t width = impl_->model.d_model();
    ENCORE_RETURN_IF_ERROR(CheckPositions(positions, hidden.tokens.ids.size()));
    ENCORE_ASSIGN_OR_RETURN(Tensor rows, Tensor::Create(DType::kF32, {positions.size(), width}));
    const auto* const from = static_cast<const float*>(hidden.vectors.data());
    for (size_t i = 0; i < positions.size(); ++i) {
      std::copy_n(from + positions[i] * width, width, static_cast<float*>(rows.data()) + i * width);
    }
    ENCORE_ASSIGN_OR_RETURN(
        Tensor logits, VocabularyLogits(*head, ConstView(rows.View<float>()), options.executor));
    return TokenLogits{std::move(logits), std::move(hidden.tokens)};
  });
}

bool TextEncoder::labels_tokens() const { return impl_->model.labels_tokens(); }

}  // namespace encore
