// SPDX-License-Identifier: Apache-2.0
//
// The one table of a layer's weights: name, member, shape, which layers have them, and the product
// they are packed into. Checks, loading, packing, conversion, the families and the tests read it.

#ifndef ENCORE_ENGINE_NN_LAYER_TENSORS_H_
#define ENCORE_ENGINE_NN_LAYER_TENSORS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/elements.h"
#include "engine/nn/layer_sizes.h"

namespace encore::inline v0_1::internal {

// An extent of a shape in words, and as a number.
struct Extent {
  std::string_view text = {};
  size_t (*of)(const LayerSizes& sizes) = nullptr;  // null: none, as a vector has no columns
};

// Which layers have a tensor, and why the others do not.
struct Presence {
  bool (*in)(const LayerConfig& layer);
  std::string_view otherwise;
};

// A member of EncoderLayerWeights: a linear layer, a norm or a tensor by itself.
struct LayerMember {
  // NOLINTBEGIN(google-explicit-constructor): the families' tables name members
  constexpr LayerMember(LinearWeights EncoderLayerWeights::*member) : linear(member) {}
  constexpr LayerMember(NormWeights EncoderLayerWeights::*member) : norm(member) {}
  constexpr LayerMember(WeightView EncoderLayerWeights::*member) : tensor(member) {}
  // NOLINTEND(google-explicit-constructor)
  constexpr bool operator==(const LayerMember&) const = default;

  LinearWeights EncoderLayerWeights::*linear = nullptr;
  NormWeights EncoderLayerWeights::*norm = nullptr;
  WeightView EncoderLayerWeights::*tensor = nullptr;
};

// Weights that may be in one matrix or in several: either all are in the one, or none is.
enum class Fusion { kNone, kOne, kSeveral };

// A row of the table.
struct LayerPart {
  // What its tensors' names begin with, after "layers.N."; torch.nn.TransformerEncoderLayer's where
  // it has the part.
  std::string_view name;
  std::string_view alias;  // another beginning, or ""
  LayerMember member;
  Extent rows;     // of its weight, and elements of its bias
  Extent columns;  // of its weight
  Presence presence;
  bool in_torch = false;  // torch.nn.TransformerEncoderLayer has it
  // The product that a linear layer is packed into. Without one its weight is never int8.
  std::optional<LayerMatrix> matrix = {};
  // With `matrix`: the member whose input_scale is that of its inputs.
  LinearWeights EncoderLayerWeights::*input_scale_of = nullptr;
  Fusion fusion = Fusion::kNone;
};

inline constexpr std::array<LayerPart, 34> kLayerParts = [] {
  using W = EncoderLayerWeights;
  using S = LayerSizes;
  using L = LayerConfig;
  using K = LayerMatrix;
  constexpr Extent one{"1", [](const S&) -> size_t { return 1; }};
  constexpr Extent model{"d_model", [](const S& s) { return s.d_model; }};
  constexpr Extent qkv{"(num_heads + 2 num_kv_heads) head_size",
                       [](const S& s) { return s.qkv_width(); }};
  constexpr Extent queries{"num_heads head_size", [](const S& s) { return s.q_width(); }};
  constexpr Extent keys{"num_kv_heads head_size", [](const S& s) { return s.kv_width(); }};
  constexpr Extent head{"head_size", [](const S& s) { return s.head_size; }};
  constexpr Extent heads{"num_heads", [](const S& s) { return s.heads; }};
  constexpr Extent buckets{"num_buckets", [](const S& s) { return s.buckets; }};
  constexpr Extent relative{"2 span", [](const S& s) { return s.relative; }};
  constexpr Extent inner{"d_ff", [](const S& s) { return s.d_ff; }};
  constexpr Extent first{"d_ff, twice where gated", [](const S& s) { return s.linear1; }};
  constexpr Extent experts{"num_experts", [](const S& s) { return s.experts; }};
  constexpr Extent all_inner{"num_experts d_ff", [](const S& s) { return s.experts * s.d_ff; }};
  constexpr Extent input{"layer_input.width", [](const S& s) { return s.per_layer_input; }};
  constexpr Extent patch{"d_model convolution.kernel", [](const S& s) { return s.patch; }};
  constexpr Extent none = {};

  constexpr Presence always{[](const L&) { return true; }, ""};
  constexpr Presence qk_norm{[](const L& l) { return l.qk_norm.type != NormType::kNone; },
                             "the layer has no qk_norm"};
  constexpr Presence in_buckets{[](const L& l) { return l.buckets.has_value(); },
                                "the layer has no buckets"};
  constexpr Presence in_relative{[](const L& l) { return l.relative.has_value(); },
                                 "the layer has no relative embeddings"};
  constexpr Presence relative_norm{
      [](const L& l) { return l.relative && l.relative->norm.type != NormType::kNone; },
      "the layer has no norm of relative embeddings"};
  constexpr Presence relative_q{
      [](const L& l) {
        return l.relative && l.relative->own_projections && l.relative->position_to_content;
      },
      "the layer has no own projection of relative embeddings to queries"};
  constexpr Presence relative_k{[](const L& l) {
                                  return l.relative && l.relative->own_projections &&
                                         l.relative->content_to_position;
                                },
                                "the layer has no own projection of relative embeddings to keys"};
  constexpr Presence one_sided{[](const L& l) { return l.norm_placement != NormPlacement::kBoth; },
                               "the layer has norms on both sides"};
  constexpr Presence both_sides{[](const L& l) { return l.norm_placement == NormPlacement::kBoth; },
                                "the layer does not have norms on both sides"};
  constexpr Presence network{[](const L& l) { return !l.experts; }, "the layer has experts"};
  // A layer with experts is not gated.
  constexpr Presence gated{[](const L& l) { return l.gate != Gate::kNone; },
                           "the layer is not gated"};
  constexpr Presence in_experts{[](const L& l) { return l.experts.has_value(); },
                                "the layer has no experts"};
  constexpr Presence layer_input{[](const L& l) { return l.layer_input.has_value(); },
                                 "the layer has no layer_input"};
  constexpr Presence convolution{[](const L& l) { return l.convolution.has_value(); },
                                 "the layer has no convolution"};
  constexpr Presence norm1{[](const L& l) { return l.attention_norm; },
                           "the layer has no attention_norm"};

  constexpr Fusion fused = Fusion::kOne;
  constexpr Fusion apart = Fusion::kSeveral;
  return std::array<LayerPart, 34>{{
      {"self_attn.in_proj_", "", &W::in_proj, qkv, model, always, true, K::kQkv, &W::in_proj,
       fused},
      {"self_attn.q_proj.", "", &W::q_proj, queries, model, always, false, K::kQkv, &W::in_proj,
       apart},
      {"self_attn.k_proj.", "", &W::k_proj, keys, model, always, false, K::kQkv, nullptr, apart},
      {"self_attn.v_proj.", "", &W::v_proj, keys, model, always, false, K::kQkv, nullptr, apart},
      {"self_attn.q_norm.", "", &W::q_norm, head, none, qk_norm},
      {"self_attn.k_norm.", "", &W::k_norm, head, none, qk_norm},
      {"self_attn.position_bias", "", &W::position_bias, buckets, heads, in_buckets},
      {"self_attn.relative_embeddings", "", &W::relative_embeddings, relative, model, in_relative},
      {"self_attn.relative_norm.", "", &W::relative_norm, model, none, relative_norm},
      {"self_attn.pos_q_proj.", "", &W::pos_q_proj, queries, model, relative_q},
      {"self_attn.pos_k_proj.", "", &W::pos_k_proj, keys, model, relative_k},
      {"self_attn.out_proj.", "", &W::out_proj, model, queries, always, true, K::kOutProj,
       &W::out_proj},
      {"layer_scale1", "", &W::layer_scale1, model, none, one_sided},
      {"layer_scale2", "", &W::layer_scale2, model, none, one_sided},
      {"linear1.", "ff.0.", &W::linear1, first, model, network, true, K::kLinear1, &W::linear1,
       fused},
      {"gate_proj.", "", &W::gate_proj, inner, model, gated, false, K::kLinear1, &W::linear1,
       apart},
      {"up_proj.", "", &W::up_proj, inner, model, gated, false, K::kLinear1, nullptr, apart},
      {"linear2.", "ff.2.", &W::linear2, model, inner, network, true, K::kLinear2, &W::linear2},
      {"router", "", &W::router, experts, model, in_experts},
      {"experts_first", "", &W::experts_first, all_inner, model, in_experts},
      {"experts_second", "", &W::experts_second, all_inner, model, in_experts},
      {"experts_bias", "", &W::experts_bias, model, none, in_experts},
      {"input_proj.", "", &W::input_proj, input, model, layer_input},
      {"input_norm.", "", &W::input_norm, input, none, layer_input},
      {"input_gate.", "", &W::input_gate, input, model, layer_input},
      {"input_output.", "", &W::input_output, model, input, layer_input},
      {"post_input_norm.", "", &W::post_input_norm, model, none, layer_input},
      {"layer_scalar", "", &W::layer_scalar, one, none, layer_input},
      {"convolution.", "", &W::convolution, model, patch, convolution},
      {"convolution_norm.", "", &W::convolution_norm, model, none, convolution},
      {"norm1.", "", &W::norm1, model, none, norm1, true},
      {"norm2.", "", &W::norm2, model, none, always, true},
      {"post_norm1.", "", &W::post_norm1, model, none, both_sides},
      {"post_norm2.", "", &W::post_norm2, model, none, both_sides},
  }};
}();

constexpr const LayerPart& PartOf(const LayerMember& member) {
  size_t i = 0;
  while (!(kLayerParts[i].member == member)) ++i;  // every member has a row
  return kLayerParts[i];
}

// What a tensor of a part is.
enum class TensorRole {
  kWeight,      // a matrix, maybe int8; a norm's weight; a tensor by itself
  kBias,        // of a linear layer or a norm
  kRowScale,    // of a matrix of int8
  kInputScale,  // of a matrix's columns
};

// A tensor of a part, and what the table says of it.
struct LayerTensor {
  const LayerPart* part;
  TensorRole role;

  // After "layers.N.".
  std::string name() const { return std::string(part->name).append(Suffix()); }
  std::string alias() const {  // or ""
    return part->alias.empty() ? std::string() : std::string(part->alias).append(Suffix());
  }
  const WeightView& In(const EncoderLayerWeights& weights) const {
    return View<const WeightView>(weights);
  }
  WeightView& In(EncoderLayerWeights& weights) const { return View<WeightView>(weights); }

  constexpr const Extent& rows() const {
    return role == TensorRole::kInputScale ? part->columns : part->rows;
  }
  constexpr Extent columns() const {
    return role == TensorRole::kWeight ? part->columns : Extent{};
  }
  // Why a layer does not have it, or "".
  std::string_view WhyAbsent(const LayerConfig& layer) const {
    if (role == TensorRole::kInputScale && part->member.linear != part->input_scale_of) {
      return "in_proj or linear1 has the scale of its input";
    }
    return part->presence.in(layer) ? "" : part->presence.otherwise;
  }
  // In a layer that has it. Biases, scales, and the weights of norms may be missing.
  constexpr bool required() const { return columns().of != nullptr; }
  constexpr bool is_bias() const { return role == TensorRole::kBias; }
  constexpr bool is_scale() const {
    return role == TensorRole::kRowScale || role == TensorRole::kInputScale;
  }
  // The weight of a product; it may be int8.
  constexpr bool is_matrix() const {
    return role == TensorRole::kWeight && part->matrix.has_value();
  }

 private:
  constexpr std::string_view Suffix() const {
    if (part->member.tensor != nullptr) return "";
    constexpr std::string_view kSuffixes[] = {"weight", "bias", "weight_scale", "input_scale"};
    return kSuffixes[static_cast<size_t>(role)];
  }
  template <typename V, typename Weights>
  V& View(Weights& weights) const {
    if (part->member.tensor != nullptr) return weights.*part->member.tensor;
    if (part->member.norm != nullptr) {
      auto& norm = weights.*part->member.norm;
      return role == TensorRole::kWeight ? norm.weight : norm.bias;
    }
    auto& linear = weights.*part->member.linear;
    if (role == TensorRole::kWeight) return linear.weight;
    if (role == TensorRole::kBias) return linear.bias;
    return role == TensorRole::kRowScale ? linear.scale : linear.input_scale;
  }
};

// How many tensors a part has: the first so many roles.
constexpr size_t NumTensors(const LayerPart& part) {
  if (part.matrix.has_value()) return 4;
  return part.member.tensor != nullptr ? 1 : 2;
}

inline constexpr size_t kNumLayerTensors = [] {
  size_t count = 0;
  for (const LayerPart& part : kLayerParts) count += NumTensors(part);
  return count;
}();

// Every tensor of every part, in the order of the table.
inline constexpr std::array<LayerTensor, kNumLayerTensors> kLayerTensors = [] {
  std::array<LayerTensor, kNumLayerTensors> tensors{};
  size_t count = 0;
  for (const LayerPart& part : kLayerParts) {
    for (size_t role = 0; role < NumTensors(part); ++role) {
      tensors[count++] = {&part, static_cast<TensorRole>(role)};
    }
  }
  return tensors;
}();

// The types that a tensor may have: floats, and of a matrix int8.
constexpr bool IsWeightType(DType type, bool may_be_int8) {
  return IsFloat(type) || (may_be_int8 && type == DType::kI8);
}

// The names of the final norm's.
inline constexpr std::string_view kFinalNormWeight = "norm.weight";
inline constexpr std::string_view kFinalNormBias = "norm.bias";

inline Shape ShapeOf(const LayerTensor& tensor, size_t d_model, const LayerConfig& layer) {
  const LayerSizes sizes(d_model, layer);
  const size_t rows = tensor.rows().of(sizes);
  return tensor.required() ? Shape(rows, tensor.columns().of(sizes)) : Shape(rows);
}

// The matrices that are not int8.
inline std::vector<MatrixOfLayer> FloatMatrices(const EncoderWeights& weights) {
  std::vector<MatrixOfLayer> found;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    for (const LayerTensor& tensor : kLayerTensors) {
      const WeightView& view = tensor.In(weights.layers[i]);
      if (!tensor.is_matrix() || view.empty() || view.dtype() == DType::kI8) continue;
      const LayerMatrix matrix = *tensor.part->matrix;
      const bool again = !found.empty() && found.back().layer == i && found.back().matrix == matrix;
      if (!again) found.push_back({i, matrix});
    }
  }
  return found;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_LAYER_TENSORS_H_
