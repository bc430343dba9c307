// SPDX-License-Identifier: Apache-2.0
//
// The head of a masked language model.

#include "engine/models/language_head.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/first_failure.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

// Rows of the views [begin, end).
template <typename T>
TensorView<T> RowRange(const TensorView<T>& view, size_t begin, size_t end) {
  return TensorView<T>(view.data() + static_cast<ptrdiff_t>(begin) * view.stride(0),
                       Shape(end - begin, view.dim(1)), view.strides());
}

}  // namespace

Result<LanguageHead> LanguageHead::Create(const ModelPlan& model, ModelTensors* tensors,
                                          std::vector<Decision>* decisions) {
  const LanguageHeadPlan& plan = model.language;
  if (plan.bias.empty()) {
    return Status(ErrorCode::kUnsupported,
                  std::string(kConfigFile) + ": model_type is " + model.model_type +
                      "; encore has no masked language model's head of it");
  }
  if (plan.activation.apply == nullptr) {
    return Status(ErrorCode::kUnsupported, std::string(kConfigFile) + ": the activation is " +
                                               std::string(plan.activation.text) +
                                               ", which encore has not in a language model's head");
  }
  LanguageHead head;
  head.vocab_size_ = model.embeddings.vocab_size;
  head.width_ = model.embeddings.width;
  head.activation_ = plan.activation;
  const std::string dense(plan.dense);
  ENCORE_ASSIGN_OR_RETURN(
      head.dense_, tensors->ReadLinear(dense, head.width_, model.encoder.d_model, plan.dense_bias));
  ENCORE_ASSIGN_OR_RETURN(head.norm_, tensors->ReadNorm(std::string(plan.norm), head.width_,
                                                        plan.norm_epsilon, plan.norm_bias));
  const std::string words =
      model.tied ? tensors->Base(model.embeddings.word) : std::string(plan.decoder);
  ENCORE_ASSIGN_OR_RETURN(const Tensor table,
                          tensors->Read(words + ".weight", {head.vocab_size_, head.width_}));
  Tensor bias;
  if (plan.has_bias) {
    // Two names of one tensor; where nothing is shared the decoder's own counts.
    std::string name(plan.bias);
    std::string other = std::string(plan.decoder) + ".bias";
    if (!model.tied) std::swap(name, other);
    if (tensors->Find(name) == nullptr) name = other;
    ENCORE_ASSIGN_OR_RETURN(bias, tensors->Read(name, {head.vocab_size_}));
  }
  const ConstView rows = table.View<float>();
  for (size_t begin = 0; begin < head.vocab_size_; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, head.vocab_size_);
    ConstView part;
    if (plan.has_bias) {
      part = ConstView(std::as_const(bias).View<float>().data() + begin, Shape(end - begin));
    }
    ENCORE_ASSIGN_OR_RETURN(PackedLinear block,
                            PackedLinear::Create(RowRange(rows, begin, end), part));
    head.blocks_.push_back(std::move(block));
  }
  decisions->push_back({"masked language model",
                        std::to_string(head.vocab_size_) + " logits a token: " +
                            (model.tied ? "the table of words" : std::string(plan.decoder)) +
                            " of " + std::string(plan.norm) + "(" +
                            std::string(plan.activation.text) + "(" + dense + "))",
                        tensors->files().name()});
  return head;
}

Status LanguageHead::TransformRows(ConstView hidden, MutableView transformed) const {
  ENCORE_RETURN_IF_ERROR(dense_->Apply(hidden, transformed));
  ENCORE_RETURN_IF_ERROR(activation_.apply(transformed, transformed));
  return norm_.Apply(transformed);
}

Status LanguageHead::Transform(ConstView hidden, MutableView transformed,
                               const Executor& executor) const {
  constexpr size_t kRows = 64;  // of a task
  const size_t rows = hidden.dim(0);
  const size_t tasks = DivCeil(rows, kRows);
  FirstFailure failure;
  RunParallel(tasks == 1 ? Executor() : executor, tasks, [&](size_t task) {
    const size_t begin = task * kRows;
    const size_t end = std::min(rows, begin + kRows);
    failure.Keep(TransformRows(RowRange(hidden, begin, end), RowRange(transformed, begin, end)));
  });
  return failure.status();
}

}  // namespace encore::internal
