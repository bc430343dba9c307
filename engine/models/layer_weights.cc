// SPDX-License-Identifier: Apache-2.0
//
// Views of an encoder's weights by a plan's tensor names.

#include "engine/models/layer_weights.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/layer_tensors.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

// "encoder.layer.{N}.output.dense" of layer 3: "encoder.layer.3.output.dense".
std::string NameInLayer(std::string_view pattern, size_t layer) {
  constexpr std::string_view kNumber = "{N}";
  std::string name(pattern);
  const size_t at = name.find(kNumber);
  if (at != std::string::npos) name.replace(at, kNumber.size(), std::to_string(layer));
  return name;
}

// `name`.weight, and the scales that a matrix has beside it.
Status ViewLinear(const std::string& name, const LayerPart& part, const Shape& shape,
                  ModelTensors* tensors, W* layer) {
  LinearWeights& linear = layer->*part.member.linear;
  const std::string weight_name = name + ".weight";
  ENCORE_ASSIGN_OR_RETURN(linear.weight, tensors->ViewMatrix(weight_name, shape));
  if (linear.weight.dtype() == DType::kI8) {
    ENCORE_ASSIGN_OR_RETURN(linear.scale, tensors->View(weight_name + "_scale", {shape[0]}));
  }
  const std::string input_name = name + ".input_scale";
  if (part.input_scale_of == nullptr || tensors->Find(input_name) == nullptr) return {};
  ENCORE_ASSIGN_OR_RETURN((layer->*part.input_scale_of).input_scale,
                          tensors->View(input_name, {shape[1]}));
  return {};
}

Status ViewModule(const std::string& name, const LayerModule& module, size_t d_model,
                  const LayerConfig& config, ModelTensors* tensors, W* layer) {
  const LayerPart& part = PartOf(module.member);
  const LayerTensor weight{&part, TensorRole::kWeight};
  const Shape shape = ShapeOf(weight, d_model, config);
  if (part.member.linear != nullptr) {
    ENCORE_RETURN_IF_ERROR(ViewLinear(name, part, shape, tensors, layer));
  } else {
    ENCORE_ASSIGN_OR_RETURN(weight.In(*layer), tensors->View(name + ".weight", shape));
  }
  if (!module.bias) return {};
  const LayerTensor bias{&part, TensorRole::kBias};
  ENCORE_ASSIGN_OR_RETURN(bias.In(*layer), tensors->View(name + ".bias", {shape[0]}));
  return {};
}

}  // namespace

std::vector<MatrixOfLayer> FloatMatrices(const EncoderWeights& weights) {
  std::vector<MatrixOfLayer> found;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    for (const LayerTensor& tensor : kLayerTensors) {
      const WeightView& view = tensor.In(weights.layers[i]);
      if (!tensor.is_matrix() || view.empty() || view.dtype() == DType::kI8) continue;
      const LayerMatrix matrix = MatrixOf(tensor.part->packed);
      const bool again = !found.empty() && found.back().layer == i && found.back().matrix == matrix;
      if (!again) found.push_back({i, matrix});
    }
  }
  return found;
}

Result<EncoderWeights> ViewLayers(const ModelPlan& plan, ModelTensors* tensors) {
  EncoderWeights weights;
  const size_t d_model = plan.encoder.d_model;
  for (size_t i = 0; i < plan.encoder.layers.size(); ++i) {
    W& layer = weights.layers.emplace_back();
    for (const LayerModule& module : plan.layer_modules) {
      const LayerConfig& config = plan.encoder.layers[i];
      if (module.member == &W::norm1 && !config.attention_norm) continue;
      ENCORE_RETURN_IF_ERROR(ViewModule(tensors->Base(NameInLayer(module.name, i)), module, d_model,
                                        config, tensors, &layer));
    }
  }
  if (plan.family->final_norm.empty()) return weights;
  const std::string name = tensors->Base(plan.family->final_norm);
  ENCORE_ASSIGN_OR_RETURN(weights.norm.weight, tensors->View(name + ".weight", {d_model}));
  if (plan.final_norm_bias) {
    ENCORE_ASSIGN_OR_RETURN(weights.norm.bias, tensors->View(name + ".bias", {d_model}));
  }
  return weights;
}

}  // namespace encore::internal
