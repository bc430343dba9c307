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
#include "engine/models/config_keys.h"
#include "engine/models/table_memory.h"

namespace encore::inline v0_1::internal {
namespace {

Status CheckSpec(const ModelSpec& model) {
  const LanguageHeadSpec& spec = model.language;
  const std::string file(kConfigFile);
  if (spec.decoder.empty()) {
    return Status(ErrorCode::kUnsupported,
                  file + ": model_type is " + model.model_type +
                      "; encore has no masked language model's head of it");
  }
  if (!spec.dense.empty() && spec.activation->apply == nullptr) {
    return Status(ErrorCode::kUnsupported,
                  file + ": the activation is " + std::string(spec.activation->text) +
                      ", which encore does not support in a language model's head");
  }
  if (spec.dense.empty() && model.embeddings.width != model.encoder.d_model) {
    return Status(ErrorCode::kUnsupported,
                  file + ": the table of words is " + std::to_string(model.embeddings.width) +
                      " wide; encore has no language model's head of it but of hidden_size " +
                      std::to_string(model.encoder.d_model));
  }
  return {};
}

// Of a module's names the first that the file has, or the first of all.
std::string NameInFile(const ModelTensors& tensors, WordList names) {
  for (const std::string_view name : names) {
    if (tensors.Find(std::string(name) + ".weight") != nullptr) return std::string(name);
  }
  return std::string(names.first());
}

// "norm(gelu (erf)(dense))".
std::string LanguageHeadText(const LanguageHeadSpec& spec, const std::string& norm) {
  if (spec.dense.empty()) return "the last states";
  const std::string activation(spec.activation->text);
  std::string text = activation + "(" + std::string(spec.dense) + ")";
  if (!spec.second.empty()) {
    text = activation + "(" + std::string(spec.second) + "(" + text + "))";
  }
  return norm.empty() ? text : norm + "(" + text + ")";
}

// Two names of one tensor. Where the file has both, as where nothing is shared, the decoder's own
// counts.
Result<Tensor> ReadBias(const LanguageHeadSpec& spec, const std::string& decoder, size_t size,
                        ModelTensors* tensors) {
  std::string name = decoder + ".bias";
  if (tensors->Find(name) == nullptr && !spec.bias.empty()) name = spec.bias;
  return tensors->Read(name, {size});
}

}  // namespace

Status LanguageHead::ReadTransform(const ModelSpec& model, const std::string& norm,
                                   ModelTensors* tensors) {
  const LanguageHeadSpec& spec = model.language;
  const size_t d_model = model.encoder.d_model;
  activation_ = spec.activation;
  if (!spec.dense.empty()) {
    ENCORE_ASSIGN_OR_RETURN(dense_, tensors->ReadLinear(std::string(spec.dense),
                                                        spec.second.empty() ? width_ : spec.inner,
                                                        d_model, spec.dense_bias));
  }
  if (!spec.second.empty()) {
    ENCORE_ASSIGN_OR_RETURN(second_, tensors->ReadLinear(std::string(spec.second), width_,
                                                         spec.inner, /*has_bias=*/false));
  }
  if (norm.empty()) return {};
  ENCORE_ASSIGN_OR_RETURN(norm_,
                          tensors->ReadNorm(norm, width_, spec.norm_epsilon, spec.norm_bias));
  return {};
}

Result<LanguageHead> LanguageHead::Create(const ModelSpec& model, ModelTensors* tensors,
                                          std::vector<Decision>* decisions) {
  ENCORE_RETURN_IF_ERROR(CheckSpec(model));
  const LanguageHeadSpec& spec = model.language;
  LanguageHead head;
  head.vocab_size_ = model.embeddings.vocab_size;
  head.width_ = model.embeddings.width;
  const std::string norm = NameInFile(*tensors, spec.norm);
  ENCORE_RETURN_IF_ERROR(head.ReadTransform(model, norm, tensors));
  // transformers ties the two only where the file does not have both.
  const std::string decoder = NameInFile(*tensors, spec.decoder);
  const bool own = !spec.always_tied && tensors->Find(decoder + ".weight") != nullptr;
  const bool tied = spec.always_tied || (model.tied && !own);
  if (!tied && !own) return tensors->NotTied(decoder + ".weight");
  ENCORE_ASSIGN_OR_RETURN(
      const Tensor table,
      tensors->Read((tied ? tensors->Base(model.embeddings.word) : decoder) + ".weight",
                    {head.vocab_size_, head.width_}));
  Tensor bias;
  if (spec.has_bias) {
    ENCORE_ASSIGN_OR_RETURN(bias, ReadBias(spec, decoder, head.vocab_size_, tensors));
  }
  const ConstView rows = table.View<float>();
  for (size_t begin = 0; begin < head.vocab_size_; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, head.vocab_size_);
    ConstView part;
    if (spec.has_bias) {
      part = ConstView(std::as_const(bias).View<float>().data() + begin, Shape(end - begin));
    }
    ENCORE_ASSIGN_OR_RETURN(PackedLinear block,
                            PackedLinear::Create(RowRange(rows, begin, end), part));
    head.blocks_.push_back(std::move(block));
  }
  decisions->push_back({"masked language model",
                        std::to_string(head.vocab_size_) +
                            " logits a token: " + (tied ? "the table of words" : decoder) + " of " +
                            LanguageHeadText(spec, norm),
                        tensors->files().name()});
  return head;
}

Status LanguageHead::TransformRows(ConstView hidden, MutableView transformed) const {
  if (!dense_) {
    std::copy_n(hidden.data(), hidden.dim(0) * width_, transformed.data());
    return {};
  }
  Tensor memory;
  MutableView inner = transformed;
  if (second_) {
    ENCORE_ASSIGN_OR_RETURN(
        memory, Tensor::Create(DType::kF32, Shape(hidden.dim(0), dense_->out_features())));
    inner = memory.View<float>();
  }
  ENCORE_RETURN_IF_ERROR(dense_->Apply(hidden, inner));
  activation_->apply(inner.data(), inner.dim(0) * inner.dim(1));
  if (second_) {
    ENCORE_RETURN_IF_ERROR(second_->Apply(inner, transformed));
    activation_->apply(transformed.data(), transformed.dim(0) * transformed.dim(1));
  }
  return norm_ ? norm_->Apply(transformed) : Status();
}

Status LanguageHead::Transform(ConstView hidden, MutableView transformed,
                               const Executor& executor) const {
  constexpr size_t kRows = 64;  // of a task
  const size_t rows = hidden.dim(0);
  const size_t tasks = DivCeil(rows, kRows);
  FirstFailure failure;
  ENCORE_RETURN_IF_ERROR(RunParallel(tasks == 1 ? Executor() : executor, tasks, [&](size_t task) {
    const size_t begin = task * kRows;
    const size_t end = std::min(rows, begin + kRows);
    failure.Keep(TransformRows(RowRange(hidden, begin, end), RowRange(transformed, begin, end)));
  }));
  return failure.status();
}

}  // namespace encore::internal
