// SPDX-License-Identifier: Apache-2.0
//
// Goes through the table of a layer's tensors.

#include "reference/layer_weights.h"

#include "engine/nn/layer_tensors.h"

namespace encore {
namespace {

using internal::LayerTensor;

WeightKind KindOf(const LayerTensor& tensor) {
  using W = EncoderLayerWeights;
  const internal::LayerMember& member = tensor.part->member;
  if (member == &W::position_bias) return WeightKind::kPositionBias;
  if (member == &W::relative_embeddings) return WeightKind::kRelativeEmbeddings;
  if (member == &W::layer_scale1 || member == &W::layer_scale2 || member == &W::layer_scalar) {
    return WeightKind::kLayerScale;
  }
  if (member.norm != nullptr) {
    return tensor.is_bias() ? WeightKind::kNormBias : WeightKind::kNormWeight;
  }
  return tensor.required() ? WeightKind::kMatrix : WeightKind::kBias;
}

// Of a norm's tensor, its norm.
const NormConfig& NormOf(const LayerTensor& tensor, const LayerConfig& layer) {
  using W = EncoderLayerWeights;
  const internal::LayerMember& member = tensor.part->member;
  if (member == &W::q_norm || member == &W::k_norm) return layer.qk_norm;
  if (member == &W::relative_norm && layer.relative) return layer.relative->norm;
  if (member == &W::input_norm && layer.layer_input) return layer.layer_input->norm;
  return layer.norm;
}

// Whether the layer has this tensor.
bool IsGiven(const LayerTensor& tensor, const LayerConfig& layer, const WeightChoices& choices) {
  if (tensor.is_scale()) return false;
  const internal::LayerPart& part = *tensor.part;
  if (!part.presence.in(layer)) return false;
  if (part.fusion != internal::Fusion::kNone) {
    const bool fused = part.matrix == LayerMatrix::kQkv
                           ? choices.fused_qkv
                           : choices.fused_first || layer.gate == Gate::kNone;
    if (fused != (part.fusion == internal::Fusion::kOne)) return false;
  }
  if (part.member == &EncoderLayerWeights::layer_scale1 ||
      part.member == &EncoderLayerWeights::layer_scale2) {
    return choices.layer_scale;
  }
  if (KindOf(tensor) == WeightKind::kBias || tensor.is_bias()) return choices.biases;
  return KindOf(tensor) != WeightKind::kNormWeight || choices.norm_weights;
}

}  // namespace

EncoderWeights MakeWeights(const EncoderConfig& config, std::span<const WeightChoices> choices,
                           const MakeWeight& make) {
  EncoderWeights weights;
  for (size_t i = 0; i < config.num_layers(); ++i) {
    const LayerConfig& layer = config.layers[i];
    EncoderLayerWeights& w = weights.layers.emplace_back();
    size_t inputs = 0;
    for (const LayerTensor& tensor : internal::kLayerTensors) {
      const WeightKind kind = KindOf(tensor);
      const bool linear = kind == WeightKind::kMatrix || kind == WeightKind::kBias;
      if (kind == WeightKind::kMatrix) {
        inputs = internal::ShapeOf(tensor, config.d_model, layer)[1];
      }
      if (!IsGiven(tensor, layer, choices[i])) continue;
      const Shape shape = internal::ShapeOf(tensor, config.d_model, layer);
      WeightView& view = tensor.In(w);
      const bool table =
          kind == WeightKind::kPositionBias || kind == WeightKind::kRelativeEmbeddings;
      if (table && choices[i].shared_position_bias && i > 0) {
        view = tensor.In(weights.layers[i - 1]);
        if (!view.empty() && view.shape() == shape) continue;
      }
      const NormConfig& norm = NormOf(tensor, layer);
      view = make({.name = tensor.name(),
                   .alias = tensor.alias(),
                   .kind = kind,
                   .shape = shape,
                   .inputs = linear ? inputs : 0,
                   .weight_offset = norm.weight_offset,
                   .type = choices[i].type});
    }
  }
  if (config.final_norm.type == NormType::kNone) return weights;
  const WeightChoices& last = choices[config.num_layers() - 1];
  NewWeight norm{.name = std::string(internal::kFinalNormWeight),
                 .alias = "",
                 .kind = WeightKind::kNormWeight,
                 .shape = Shape(config.d_model),
                 .inputs = 0,
                 .weight_offset = config.final_norm.weight_offset,
                 .type = last.type};
  if (last.norm_weights) weights.norm.weight = make(norm);
  norm.name = internal::kFinalNormBias;
  norm.kind = WeightKind::kNormBias;
  if (last.biases) weights.norm.bias = make(norm);
  return weights;
}

}  // namespace encore
