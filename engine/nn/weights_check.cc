// SPDX-License-Identifier: Apache-2.0
//
// Checks each tensor of layer_tensors.h, and the scales of int8 weights and of inputs.

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/input_check.h"
#include "engine/base/status_macros.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/layer_tensors.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

// Why the layer's other weights leave no room for a part's tensors, or "".
std::string_view WhyFusedOtherwise(const LayerPart& part, const EncoderLayerWeights& w) {
  if (part.fusion == Fusion::kNone) return "";
  const bool qkv = part.matrix == LayerMatrix::kQkv;
  const LinearWeights& one = qkv ? w.in_proj : w.linear1;
  const bool several =
      qkv ? !w.q_proj.weight.empty() || !w.k_proj.weight.empty() || !w.v_proj.weight.empty()
          : !w.gate_proj.weight.empty() || !w.up_proj.weight.empty();
  const bool fused = !one.weight.empty() || !several;
  if (fused == (part.fusion == Fusion::kOne)) return "";
  if (!fused) {
    return qkv ? "q_proj, k_proj or v_proj is given too" : "gate_proj or up_proj is given too";
  }
  return qkv ? "in_proj_weight is given too, or none of the weights of q_proj, k_proj and v_proj"
             : "linear1.weight is given too, or neither weight of gate_proj and up_proj";
}

// Numbers that can be multiplied by and divided by.
Status CheckNumbers(const std::string& name, const WeightView& scales) {
  const FpEnvScope modes;
  std::vector<float> numbers(scales.dim(0));
  ReadVector(scales, numbers.data());
  return CheckScales(name, numbers);
}

// A matrix needs a row scale and has none, or has a needless one.
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

// Exactly the needed scales are given, with usable numbers. Shapes and types are already checked.
Status CheckLayerScales(const EncoderLayerWeights& w, const std::string& prefix) {
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
    std::string_view why_none = tensor.WhyAbsent(layer);
    if (why_none.empty() && tensor.role != TensorRole::kInputScale) {
      why_none = WhyFusedOtherwise(*tensor.part, w);
    }
    if (view.empty() && !(why_none.empty() && tensor.required())) continue;
    const std::string name = prefix + tensor.name();
    if (!why_none.empty()) {
      return InvalidArgument(name + " is given and " + std::string(why_none) + "; wanted none");
    }
    const Shape wanted = ShapeOf(tensor, d_model, layer);
    std::string why(tensor.rows().text);
    if (tensor.required()) why.append(" by ").append(tensor.columns().text);
    if (view.empty()) {
      std::string sentence = name;
      sentence.append(" is missing; wanted shape ").append(wanted.ToString());
      return InvalidArgument(sentence.append(" (").append(why).append(")"));
    }
    ENCORE_RETURN_IF_ERROR(CheckTensor(name, view, wanted, why, tensor.is_matrix()));
  }
  return CheckLayerScales(w, prefix);
}

}  // namespace

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
