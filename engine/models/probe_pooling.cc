// SPDX-License-Identifier: Apache-2.0
//
// SigLIP's head.

#include "engine/models/probe_pooling.h"

#include <string>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/models/table_memory.h"

namespace encore::inline v0_1::internal {

Result<ProbePooling> ProbePooling::Read(const ModelSpec& spec, ModelTensors* tensors) {
  const std::string name = tensors->Base(spec.patches.attention_head);
  const size_t d = spec.encoder.d_model;
  const LayerConfig& layer = spec.encoder.layers.front();
  ProbePooling head;
  head.heads_ = layer.num_heads;
  head.activation_ = spec.patches.activation;
  ENCORE_ASSIGN_OR_RETURN(const Tensor probe, tensors->Read(name + ".probe", Shape(1, 1, d)));
  ENCORE_ASSIGN_OR_RETURN(const Tensor weight,
                          tensors->Read(name + ".attention.in_proj_weight", Shape(3 * d, d)));
  ENCORE_ASSIGN_OR_RETURN(const Tensor bias,
                          tensors->Read(name + ".attention.in_proj_bias", Shape(3 * d)));
  const ConstView rows = weight.View<float>();
  const float* const biases = bias.View<float>().data();
  ENCORE_ASSIGN_OR_RETURN(head.query_, Tensor::Create(DType::kF32, Shape(1, d)));
  ENCORE_ASSIGN_OR_RETURN(const PackedLinear query,
                          PackedLinear::Create(RowRange(rows, 0, d), ConstView(biases, Shape(d))));
  ENCORE_RETURN_IF_ERROR(query.Apply(
      ConstView(static_cast<const float*>(probe.data()), Shape(1, d)), head.query_.View<float>()));
  ENCORE_ASSIGN_OR_RETURN(
      head.keys_values_,
      PackedLinear::Create(RowRange(rows, d, 3 * d), ConstView(biases + d, Shape(2 * d))));
  ENCORE_ASSIGN_OR_RETURN(head.out_, tensors->ReadLinear(name + ".attention.out_proj", d, d, true));
  ENCORE_ASSIGN_OR_RETURN(head.norm_,
                          tensors->ReadNorm(name + ".layernorm", d, layer.norm.epsilon, true));
  ENCORE_ASSIGN_OR_RETURN(head.first_, tensors->ReadLinear(name + ".mlp.fc1", layer.d_ff, d, true));
  ENCORE_ASSIGN_OR_RETURN(head.second_,
                          tensors->ReadLinear(name + ".mlp.fc2", d, layer.d_ff, true));
  return head;
}

size_t ProbePooling::packed_bytes() const {
  return PackedBytes(keys_values_) + PackedBytes(out_) + PackedBytes(first_) + PackedBytes(second_);
}

Status ProbePooling::Apply(ConstView states, MutableView vectors, FloatBuffer* keys,
                           FloatBuffer* more, const Executor& executor) const {
  const size_t d = vectors.dim(1);
  const size_t pictures = vectors.dim(0);
  const size_t tokens = states.dim(0) / pictures;
  const size_t inner = first_->out_features();
  size_t values = 0;
  if (!CheckedMul(states.dim(0), 2 * d, &values)) {
    return Status(ErrorCode::kOutOfMemory, "a batch's keys exceed what can be addressed");
  }
  ENCORE_ASSIGN_OR_RETURN(float* const kv, keys->Get<float>(values));
  ENCORE_ASSIGN_OR_RETURN(float* const memory, more->Get<float>(pictures * (2 * d + inner)));
  ENCORE_RETURN_IF_ERROR(
      keys_values_->Apply(states, MutableView(kv, Shape(states.dim(0), 2 * d)), executor));
  const size_t head = d / heads_;
  const auto stride = [](size_t count) { return static_cast<ptrdiff_t>(count); };
  const Shape all(pictures, heads_, tokens, head);
  const ConstView::Strides of_keys = {stride(tokens * 2 * d), stride(head), stride(2 * d), 1};
  const Shape one(pictures, heads_, size_t{1}, head);
  const MutableView seen(memory, Shape(pictures, d));
  const ConstView query(static_cast<const float*>(query_.data()), one,
                        {0, stride(head), stride(d), 1});
  const MutableView of_heads(memory, one, {stride(d), stride(head), stride(d), 1});
  ENCORE_RETURN_IF_ERROR(Attention(query, ConstView(kv, all, of_keys),
                                   ConstView(kv + d, all, of_keys), of_heads,
                                   {.executor = executor}));
  ENCORE_RETURN_IF_ERROR(out_->Apply(seen, vectors, executor));
  const MutableView normed(memory + pictures * d, Shape(pictures, d));
  ENCORE_RETURN_IF_ERROR(LayerNorm(vectors, norm_.weight.View<float>(), norm_.bias.View<float>(),
                                   norm_.epsilon, normed));
  const MutableView wide(memory + 2 * pictures * d, Shape(pictures, inner));
  ENCORE_RETURN_IF_ERROR(first_->Apply(normed, wide, executor));
  activation_->apply(wide.data(), pictures * inner);
  ENCORE_RETURN_IF_ERROR(second_->Apply(wide, seen, executor));
  return Add(vectors, seen, vectors);
}

}  // namespace encore::internal
