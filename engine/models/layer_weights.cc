// SPDX-License-Identifier: Apache-2.0
//
// Views of an encoder's weights by a plan's tensor names.

#include "engine/models/layer_weights.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

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

// Of a matrix, as EncoderLayerWeights says, or of a norm's weight, which is a vector.
Shape ShapeOf(WeightView W::*weight, size_t d_model, const LayerConfig& layer) {
  const size_t head = layer.head_size != 0 ? layer.head_size : d_model / layer.num_heads;
  const size_t queries = layer.num_heads * head;
  const size_t keys = (layer.num_kv_heads != 0 ? layer.num_kv_heads : layer.num_heads) * head;
  const size_t first = layer.gate == Gate::kNone ? layer.d_ff : 2 * layer.d_ff;
  const std::pair<WeightView W::*, Shape> shapes[] = {
      {&W::in_proj_weight, {queries + 2 * keys, d_model}},
      {&W::q_proj_weight, {queries, d_model}},
      {&W::k_proj_weight, {keys, d_model}},
      {&W::v_proj_weight, {keys, d_model}},
      {&W::q_norm_weight, {head}},
      {&W::k_norm_weight, {head}},
      {&W::out_proj_weight, {d_model, queries}},
      {&W::linear1_weight, {first, d_model}},
      {&W::gate_proj_weight, {layer.d_ff, d_model}},
      {&W::up_proj_weight, {layer.d_ff, d_model}},
      {&W::linear2_weight, {d_model, layer.d_ff}},
  };
  if (weight == &W::position_bias) return {layer.buckets->num_buckets, layer.num_heads};
  for (const auto& [member, shape] : shapes) {
    if (member == weight) return shape;
  }
  return {d_model};  // the other norms
}

// A matrix, and where the scales beside it go. Of q, k and v apart, those of the input are q's.
struct MatrixMembers {
  WeightView W::*weight;
  WeightView W::*row_scale;
  WeightView W::*input_scale;
  LayerMatrix matrix;
};
constexpr MatrixMembers kMatrices[] = {
    {&W::in_proj_weight, &W::in_proj_weight_scale, &W::qkv_input_scale, LayerMatrix::kQkv},
    {&W::q_proj_weight, &W::q_proj_weight_scale, &W::qkv_input_scale, LayerMatrix::kQkv},
    {&W::k_proj_weight, &W::k_proj_weight_scale, nullptr, LayerMatrix::kQkv},
    {&W::v_proj_weight, &W::v_proj_weight_scale, nullptr, LayerMatrix::kQkv},
    {&W::out_proj_weight, &W::out_proj_weight_scale, &W::out_proj_input_scale,
     LayerMatrix::kOutProj},
    {&W::linear1_weight, &W::linear1_weight_scale, &W::linear1_input_scale, LayerMatrix::kLinear1},
    {&W::gate_proj_weight, &W::gate_proj_weight_scale, &W::linear1_input_scale,
     LayerMatrix::kLinear1},
    {&W::up_proj_weight, &W::up_proj_weight_scale, nullptr, LayerMatrix::kLinear1},
    {&W::linear2_weight, &W::linear2_weight_scale, &W::linear2_input_scale, LayerMatrix::kLinear2},
};

Status ViewVector(const std::string& name, size_t size, ModelTensors* tensors, WeightView* view) {
  Result<WeightView> found = tensors->View(name, Shape(size));
  if (found.ok()) *view = *found;
  return found.status();
}

// `name`.weight, and the scales that a matrix has beside it.
Status ViewWeight(const std::string& name, WeightView W::*member, const Shape& shape,
                  ModelTensors* tensors, W* layer) {
  const MatrixMembers* matrix =
      std::find_if(std::begin(kMatrices), std::end(kMatrices),
                   [&](const MatrixMembers& m) { return m.weight == member; });
  const std::string weight_name = name + ".weight";
  if (matrix == std::end(kMatrices)) {
    Result<WeightView> vector = tensors->View(weight_name, shape);
    if (vector.ok()) layer->*member = *vector;
    return vector.status();
  }
  Result<WeightView> weight = tensors->ViewMatrix(weight_name, shape);
  if (!weight.ok()) return weight.status();
  layer->*member = *weight;
  if (weight->dtype() == DType::kI8) {
    Status s = ViewVector(weight_name + "_scale", shape[0], tensors, &(layer->*matrix->row_scale));
    if (!s.ok()) return s;
  }
  const std::string input_name = name + ".input_scale";
  if (matrix->input_scale == nullptr || tensors->Find(input_name) == nullptr) return {};
  return ViewVector(input_name, shape[1], tensors, &(layer->*matrix->input_scale));
}

}  // namespace

std::vector<MatrixOfLayer> FloatMatrices(const EncoderWeights& weights) {
  std::vector<MatrixOfLayer> found;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    for (const MatrixMembers& m : kMatrices) {
      const WeightView& view = weights.layers[i].*m.weight;
      if (view.empty() || view.dtype() == DType::kI8) continue;
      const bool again =
          !found.empty() && found.back().layer == i && found.back().matrix == m.matrix;
      if (!again) found.push_back({i, m.matrix});
    }
  }
  return found;
}

Result<EncoderWeights> ViewLayers(const ModelPlan& plan, ModelTensors* tensors) {
  EncoderWeights weights;
  for (size_t i = 0; i < plan.encoder.layers.size(); ++i) {
    W& layer = weights.layers.emplace_back();
    for (const LayerModule& module : plan.layer_modules) {
      if (module.weight == &W::norm1_weight && !plan.encoder.layers[i].attention_norm) continue;
      const Shape shape = ShapeOf(module.weight, plan.encoder.d_model, plan.encoder.layers[i]);
      const std::string name = tensors->Base(NameInLayer(module.name, i));
      if (Status s = ViewWeight(name, module.weight, shape, tensors, &layer); !s.ok()) return s;
      if (module.bias == nullptr) continue;
      Result<WeightView> bias = tensors->View(name + ".bias", Shape(shape[0]));
      if (!bias.ok()) return bias.status();
      layer.*module.bias = *bias;
    }
  }
  if (plan.final_norm.empty()) return weights;
  const std::string name = tensors->Base(plan.final_norm);
  const size_t d_model = plan.encoder.d_model;
  if (Status s = ViewVector(name + ".weight", d_model, tensors, &weights.norm_weight); !s.ok()) {
    return s;
  }
  if (!plan.final_norm_bias) return weights;
  if (Status s = ViewVector(name + ".bias", d_model, tensors, &weights.norm_bias); !s.ok()) {
    return s;
  }
  return weights;
}

}  // namespace encore::internal
