// SPDX-License-Identifier: Apache-2.0
//
// The one table of a layer's tensors: name, member, shape, when it has a place, and what it is
// packed into. Checking, loading, packing, and everything that draws or names weights goes by it.

#ifndef ENCORE_ENGINE_NN_LAYER_TENSORS_H_
#define ENCORE_ENGINE_NN_LAYER_TENSORS_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "encore/encoder.h"
#include "engine/nn/layer_sizes.h"

namespace encore::inline v0_1::internal {

// An extent in terms of the layer's sizes; kOne columns make a vector.
enum class Extent {
  kOne,
  kModel,
  kQkv,      // (H + 2 G) D
  kQueries,  // H D
  kKeys,     // G D
  kHead,     // D
  kHeads,    // H
  kBuckets,  // num_buckets
  kInner,    // d_ff
  kFirst,    // d_ff, or 2 d_ff where gated
};

// What gives a tensor its place in a layer.
enum class TensorPlace {
  kAlways,
  kFusedQkv,    // unless one of the three is given
  kApartQkv,    // if one of the three is given
  kQkNorm,      // qk_norm
  kBuckets,     // buckets
  kLayerScale,  // any placement but kBoth
  kFusedFirst,  // unless gate_proj or up_proj is given
  kApartFirst,  // gate_proj or up_proj is given, and the layer is gated
  kNorm1,       // attention_norm
  kPostNorm,    // NormPlacement::kBoth
};

// What a tensor becomes a part of (packed_layer.h).
enum class PackedPart {
  kQkv,
  kOutProj,
  kLinear1,
  kLinear2,
  kNorm1,
  kNorm2,
  kPostNorm1,
  kPostNorm2,
  kQNorm,
  kKNorm,
  kPositions,
  kScale1,
  kScale2
};

// What is in a tensor, where more than its part tells.
enum class TensorRole {
  kWeight,      // a matrix, maybe int8; also every vector that is nothing below
  kBias,        // of a matrix or a norm
  kRowScale,    // of a matrix of int8
  kInputScale,  // of a matrix's columns
};

struct LayerTensor {
  std::string_view name;   // after "layers.N."; torch.nn.TransformerEncoderLayer's where it has it
  std::string_view alias;  // another name for it, or ""
  WeightView EncoderLayerWeights::*view;
  Extent rows;
  Extent columns;
  TensorPlace place;
  PackedPart part;
  bool required;  // where it has a place
  bool in_torch;  // torch.nn.TransformerEncoderLayer has it, or it is a scale beside such a one

  TensorRole role() const {
    if (columns != Extent::kOne) return TensorRole::kWeight;
    if (name.ends_with("weight_scale")) return TensorRole::kRowScale;
    if (name.ends_with("input_scale")) return TensorRole::kInputScale;
    return name.ends_with("bias") ? TensorRole::kBias : TensorRole::kWeight;
  }
  bool is_bias() const { return role() == TensorRole::kBias; }
  bool is_scale() const {
    return role() == TensorRole::kRowScale || role() == TensorRole::kInputScale;
  }
  // Of one of the four products; it may be int8.
  bool is_matrix() const { return columns != Extent::kOne && part != PackedPart::kPositions; }
};

// A weight's bias follows it; a matrix's row scales follow its bias.
inline constexpr std::array<LayerTensor, 46> kLayerTensors = [] {
  using W = EncoderLayerWeights;
  using E = Extent;
  using P = TensorPlace;
  using K = PackedPart;
  return std::array<LayerTensor, 46>{{
      {"self_attn.in_proj_weight", "", &W::in_proj_weight, E::kQkv, E::kModel, P::kFusedQkv,
       K::kQkv, true, true},
      {"self_attn.in_proj_bias", "", &W::in_proj_bias, E::kQkv, E::kOne, P::kFusedQkv, K::kQkv,
       false, true},
      {"self_attn.in_proj_weight_scale", "", &W::in_proj_weight_scale, E::kQkv, E::kOne,
       P::kFusedQkv, K::kQkv, false, true},
      {"self_attn.q_proj.weight", "", &W::q_proj_weight, E::kQueries, E::kModel, P::kApartQkv,
       K::kQkv, true, false},
      {"self_attn.q_proj.bias", "", &W::q_proj_bias, E::kQueries, E::kOne, P::kApartQkv, K::kQkv,
       false, false},
      {"self_attn.q_proj.weight_scale", "", &W::q_proj_weight_scale, E::kQueries, E::kOne,
       P::kApartQkv, K::kQkv, false, false},
      {"self_attn.k_proj.weight", "", &W::k_proj_weight, E::kKeys, E::kModel, P::kApartQkv, K::kQkv,
       true, false},
      {"self_attn.k_proj.bias", "", &W::k_proj_bias, E::kKeys, E::kOne, P::kApartQkv, K::kQkv,
       false, false},
      {"self_attn.k_proj.weight_scale", "", &W::k_proj_weight_scale, E::kKeys, E::kOne,
       P::kApartQkv, K::kQkv, false, false},
      {"self_attn.v_proj.weight", "", &W::v_proj_weight, E::kKeys, E::kModel, P::kApartQkv, K::kQkv,
       true, false},
      {"self_attn.v_proj.bias", "", &W::v_proj_bias, E::kKeys, E::kOne, P::kApartQkv, K::kQkv,
       false, false},
      {"self_attn.v_proj.weight_scale", "", &W::v_proj_weight_scale, E::kKeys, E::kOne,
       P::kApartQkv, K::kQkv, false, false},
      {"self_attn.in_proj_input_scale", "", &W::qkv_input_scale, E::kModel, E::kOne, P::kAlways,
       K::kQkv, false, true},
      {"self_attn.q_norm.weight", "", &W::q_norm_weight, E::kHead, E::kOne, P::kQkNorm, K::kQNorm,
       false, false},
      {"self_attn.q_norm.bias", "", &W::q_norm_bias, E::kHead, E::kOne, P::kQkNorm, K::kQNorm,
       false, false},
      {"self_attn.k_norm.weight", "", &W::k_norm_weight, E::kHead, E::kOne, P::kQkNorm, K::kKNorm,
       false, false},
      {"self_attn.k_norm.bias", "", &W::k_norm_bias, E::kHead, E::kOne, P::kQkNorm, K::kKNorm,
       false, false},
      {"self_attn.position_bias", "", &W::position_bias, E::kBuckets, E::kHeads, P::kBuckets,
       K::kPositions, true, false},
      {"self_attn.out_proj.weight", "", &W::out_proj_weight, E::kModel, E::kQueries, P::kAlways,
       K::kOutProj, true, true},
      {"self_attn.out_proj.bias", "", &W::out_proj_bias, E::kModel, E::kOne, P::kAlways,
       K::kOutProj, false, true},
      {"self_attn.out_proj.weight_scale", "", &W::out_proj_weight_scale, E::kModel, E::kOne,
       P::kAlways, K::kOutProj, false, true},
      {"self_attn.out_proj.input_scale", "", &W::out_proj_input_scale, E::kQueries, E::kOne,
       P::kAlways, K::kOutProj, false, true},
      {"layer_scale1", "", &W::layer_scale1, E::kModel, E::kOne, P::kLayerScale, K::kScale1, false,
       false},
      {"layer_scale2", "", &W::layer_scale2, E::kModel, E::kOne, P::kLayerScale, K::kScale2, false,
       false},
      {"linear1.weight", "ff.0.weight", &W::linear1_weight, E::kFirst, E::kModel, P::kFusedFirst,
       K::kLinear1, true, true},
      {"linear1.bias", "ff.0.bias", &W::linear1_bias, E::kFirst, E::kOne, P::kFusedFirst,
       K::kLinear1, false, true},
      {"linear1.weight_scale", "ff.0.weight_scale", &W::linear1_weight_scale, E::kFirst, E::kOne,
       P::kFusedFirst, K::kLinear1, false, true},
      {"gate_proj.weight", "", &W::gate_proj_weight, E::kInner, E::kModel, P::kApartFirst,
       K::kLinear1, true, false},
      {"gate_proj.bias", "", &W::gate_proj_bias, E::kInner, E::kOne, P::kApartFirst, K::kLinear1,
       false, false},
      {"gate_proj.weight_scale", "", &W::gate_proj_weight_scale, E::kInner, E::kOne, P::kApartFirst,
       K::kLinear1, false, false},
      {"up_proj.weight", "", &W::up_proj_weight, E::kInner, E::kModel, P::kApartFirst, K::kLinear1,
       true, false},
      {"up_proj.bias", "", &W::up_proj_bias, E::kInner, E::kOne, P::kApartFirst, K::kLinear1, false,
       false},
      {"up_proj.weight_scale", "", &W::up_proj_weight_scale, E::kInner, E::kOne, P::kApartFirst,
       K::kLinear1, false, false},
      {"linear1.input_scale", "ff.0.input_scale", &W::linear1_input_scale, E::kModel, E::kOne,
       P::kAlways, K::kLinear1, false, true},
      {"linear2.weight", "ff.2.weight", &W::linear2_weight, E::kModel, E::kInner, P::kAlways,
       K::kLinear2, true, true},
      {"linear2.bias", "ff.2.bias", &W::linear2_bias, E::kModel, E::kOne, P::kAlways, K::kLinear2,
       false, true},
      {"linear2.weight_scale", "ff.2.weight_scale", &W::linear2_weight_scale, E::kModel, E::kOne,
       P::kAlways, K::kLinear2, false, true},
      {"linear2.input_scale", "ff.2.input_scale", &W::linear2_input_scale, E::kInner, E::kOne,
       P::kAlways, K::kLinear2, false, true},
      {"norm1.weight", "", &W::norm1_weight, E::kModel, E::kOne, P::kNorm1, K::kNorm1, false, true},
      {"norm1.bias", "", &W::norm1_bias, E::kModel, E::kOne, P::kNorm1, K::kNorm1, false, true},
      {"norm2.weight", "", &W::norm2_weight, E::kModel, E::kOne, P::kAlways, K::kNorm2, false,
       true},
      {"norm2.bias", "", &W::norm2_bias, E::kModel, E::kOne, P::kAlways, K::kNorm2, false, true},
      {"post_norm1.weight", "", &W::post_norm1_weight, E::kModel, E::kOne, P::kPostNorm,
       K::kPostNorm1, false, false},
      {"post_norm1.bias", "", &W::post_norm1_bias, E::kModel, E::kOne, P::kPostNorm, K::kPostNorm1,
       false, false},
      {"post_norm2.weight", "", &W::post_norm2_weight, E::kModel, E::kOne, P::kPostNorm,
       K::kPostNorm2, false, false},
      {"post_norm2.bias", "", &W::post_norm2_bias, E::kModel, E::kOne, P::kPostNorm, K::kPostNorm2,
       false, false},
  }};
}();

// Of a part that is one of the four products.
constexpr LayerMatrix MatrixOf(PackedPart part) {
  if (part == PackedPart::kQkv) return LayerMatrix::kQkv;
  if (part == PackedPart::kOutProj) return LayerMatrix::kOutProj;
  return part == PackedPart::kLinear1 ? LayerMatrix::kLinear1 : LayerMatrix::kLinear2;
}

// The names of the final norm's.
inline constexpr std::string_view kFinalNormWeight = "norm.weight";
inline constexpr std::string_view kFinalNormBias = "norm.bias";

// "(H + 2 G) D" and the like: the extent in words.
std::string_view ExtentText(Extent extent);
size_t ExtentOf(Extent extent, size_t d_model, const LayerConfig& layer);
Shape ShapeOf(const LayerTensor& tensor, size_t d_model, const LayerConfig& layer);

// Whether the configuration, and what else is given, leave a place for such a tensor.
bool HasPlace(TensorPlace place, const LayerConfig& layer, const EncoderLayerWeights& weights);
// Why it has none: "the layer has no qk_norm".
std::string_view WhyNoPlace(TensorPlace place, const LayerConfig& layer);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_LAYER_TENSORS_H_
