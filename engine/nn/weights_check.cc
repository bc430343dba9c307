// SPDX-License-Identifier: Apache-2.0
//
// The sentences of encoder_check.h about weights: each tensor of the table in layer_tensors.h, and
// the scales of int8 weights and of inputs.

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/layer_tensors.h"
#include "engine/base/number_text.h"
#include "engine/base/status_macros.h"
#include "engine/nn/encoder_check.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

bool IsFusedQkv(const EncoderLayerWeights& w) {
  return !w.in_proj.weight.empty() ||
         (w.q_proj.weight.empty() && w.k_proj.weight.empty() && w.v_proj.weight.empty());
}

bool IsFusedFirst(const EncoderLayerWeights& w) {
  return !w.linear1.weight.empty() || (w.gate_proj.weight.empty() && w.up_proj.weight.empty());
}

// Numbers that can be multiplied by and divided by.
Status CheckNumbers(const std::string& name, const WeightView& scales) {
  const FpEnvScope modes;
  std::vector<float> numbers(scales.dim(0));
  ReadVector(scales, numbers.data());
  const auto bad = std::find_if(numbers.begin(), numbers.end(),
                                [](float s) { return !(s > 0 && std::isnormal(s)); });
  if (bad == numbers.end()) return {};
  return InvalidArgument(name + "[" + std::to_string(bad - numbers.begin()) + "] is " +
                         NumberText(*bad) + "; wanted a finite, normal f32 number above 0");
}

// Of the scale of a matrix that needs one and has none, or the other way round.
Status MissingOrNeedless(const std::string& scale, const std::string& matrix,
                         const WeightView& view) {
  const std::string type(DTypeName(view.dtype()));
  if (view.dtype() == DType::kI8) {
    return InvalidArgument(scale + " is missing; wanted shape " + Shape(view.dim(0)).ToString() +
                           ", as " + matrix + " has dtype " + type);
  }
  return InvalidArgument(scale + " is given and " + matrix + " has dtype " + type +
                         "; wanted none");
}

// All scales that are needed, none that is not, each number one that can be used. Shapes and types
// are already checked.
Status CheckScales(const EncoderLayerWeights& w, const std::string& prefix) {
  for (const LayerTensor& tensor : kLayerTensors) {
    const WeightView& view = tensor.In(w);
    const std::string name = prefix + tensor.name();
    if (tensor.is_matrix() && !view.empty()) {
      const LayerTensor scale{tensor.part, TensorRole::kRowScale};
      const bool wanted = view.dtype() == DType::kI8;
      if (wanted == !scale.In(w).empty()) continue;
      return MissingOrNeedless(prefix + scale.name(), name, view);
    }
    if (tensor.is_scale() && !view.empty()) ENCORE_RETURN_IF_ERROR(CheckNumbers(name, view));
  }
  return {};
}

// may_be_int8: beside the types of floats.
Status CheckTensor(const std::string& name, const WeightView& view, const Shape& wanted,
                   const std::string& why, bool may_be_int8 = false) {
  if (!(view.shape() == wanted)) {
    return InvalidArgument(name + " has shape " + view.shape().ToString() + "; wanted " +
                           wanted.ToString() + " (" + why + ")");
  }
  if (!IsWeightType(view.dtype(), may_be_int8)) {
    return InvalidArgument(name + " has dtype " + std::string(DTypeName(view.dtype())) +
                           "; wanted " +
                           std::string(may_be_int8 ? kFloatTypesOrInt8 : kFloatTypes));
  }
  return {};
}

Status CheckLayerWeights(size_t d_model, const LayerConfig& layer, const EncoderLayerWeights& w,
                         const std::string& prefix) {
  for (const LayerTensor& tensor : kLayerTensors) {
    const WeightView& view = tensor.In(w);
    const std::string_view why_none = WhyNoPlace(tensor.place(), layer, w);
    if (view.empty() && !(why_none.empty() && tensor.required())) continue;
    const std::string name = prefix + tensor.name();
    if (!why_none.empty()) {
      return InvalidArgument(name + " is given and " + std::string(why_none) + "; wanted none");
    }
    const Shape wanted = ShapeOf(tensor, d_model, layer);
    std::string why(FactsOf(tensor.rows()).text);
    if (tensor.columns() != Extent::kOne) why.append(" by ").append(FactsOf(tensor.columns()).text);
    if (view.empty()) {
      std::string sentence = name;
      sentence.append(" is missing; wanted shape ").append(wanted.ToString());
      return InvalidArgument(sentence.append(" (").append(why).append(")"));
    }
    ENCORE_RETURN_IF_ERROR(CheckTensor(name, view, wanted, why, tensor.is_matrix()));
  }
  return CheckScales(w, prefix);
}

}  // namespace

std::string_view WhyNoPlace(TensorPlace place, const LayerConfig& layer,
                            const EncoderLayerWeights& weights) {
  const auto unless = [](bool has_place, std::string_view why) {
    return has_place ? std::string_view() : why;
  };
  const bool both_sides = layer.norm_placement == NormPlacement::kBoth;
  switch (place) {
    case TensorPlace::kAlways:
      return "";
    case TensorPlace::kFusedQkv:
      return unless(IsFusedQkv(weights), "q_proj, k_proj or v_proj is given too");
    case TensorPlace::kApartQkv:
      return unless(
          !IsFusedQkv(weights),
          "in_proj_weight is given too, or none of the weights of q_proj, k_proj and v_proj");
    case TensorPlace::kQkNorm:
      return unless(layer.qk_norm.type != NormType::kNone, "the layer has no qk_norm");
    case TensorPlace::kBuckets:
      return unless(layer.buckets.has_value(), "the layer has no buckets");
    case TensorPlace::kRelative:
      return unless(layer.relative.has_value(), "the layer has no relative embeddings");
    case TensorPlace::kRelativeNorm:
      return unless(layer.relative && layer.relative->norm.type != NormType::kNone,
                    "the layer has no norm of relative embeddings");
    case TensorPlace::kRelativeQueries:
      return unless(
          layer.relative && layer.relative->own_projections && layer.relative->position_to_content,
          "the layer has no own projection of relative embeddings to queries");
    case TensorPlace::kRelativeKeys:
      return unless(
          layer.relative && layer.relative->own_projections && layer.relative->content_to_position,
          "the layer has no own projection of relative embeddings to keys");
    case TensorPlace::kLayerScale:
      return unless(!both_sides, "the layer has norms on both sides");
    case TensorPlace::kNetwork:
      return unless(!layer.experts, "the layer has experts");
    case TensorPlace::kExperts:
      return unless(layer.experts.has_value(), "the layer has no experts");
    case TensorPlace::kLayerInput:
      return unless(layer.layer_input.has_value(), "the layer has no layer_input");
    case TensorPlace::kConvolution:
      return unless(layer.convolution.has_value(), "the layer has no convolution");
    case TensorPlace::kFusedFirst:
      if (layer.experts) return "the layer has experts";
      return unless(IsFusedFirst(weights), "gate_proj or up_proj is given too");
    case TensorPlace::kApartFirst:
      if (layer.experts) return "the layer has experts";
      if (layer.gate == Gate::kNone) return "the layer is not gated";
      return unless(!IsFusedFirst(weights),
                    "linear1.weight is given too, or neither weight of gate_proj and up_proj");
    case TensorPlace::kNorm1:
      return unless(layer.attention_norm, "the layer has no attention_norm");
    case TensorPlace::kPostNorm:
      return unless(both_sides, "the layer does not have norms on both sides");
    case TensorPlace::kNever:
      return "in_proj or linear1 has the scale of its input";
  }
  return "";
}

Status CheckWeights(const EncoderConfig& c, const EncoderWeights& weights) {
  if (weights.layers.size() != c.num_layers()) {
    return InvalidArgument("weights have " + std::to_string(weights.layers.size()) +
                           " layers; wanted as many as the configuration has, " +
                           std::to_string(c.num_layers()));
  }
  for (size_t i = 0; i < c.num_layers(); ++i) {
    ENCORE_RETURN_IF_ERROR(CheckLayerWeights(c.d_model, c.layers[i], weights.layers[i],
                                             "layers." + std::to_string(i) + "."));
  }
  const struct {
    std::string_view name;
    const WeightView& view;
  } norm[] = {{kFinalNormWeight, weights.norm.weight}, {kFinalNormBias, weights.norm.bias}};
  for (const auto& [name, view] : norm) {
    if (view.empty()) continue;
    if (c.final_norm.type == NormType::kNone) {
      return InvalidArgument(std::string(name) +
                             " is given and final_norm.type is kNone; wanted none");
    }
    ENCORE_RETURN_IF_ERROR(CheckTensor(std::string(name), view, Shape(c.d_model), "d_model"));
  }
  return {};
}

}  // namespace encore::internal
