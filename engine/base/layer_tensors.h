// SPDX-License-Identifier: Apache-2.0
//
// The one table of a layer's weights: name, member, shape, when each has a place, and what it is
// packed into. Checking, loading, packing, converting, the families and the tests go by it.

#ifndef ENCORE_ENGINE_BASE_LAYER_TENSORS_H_
#define ENCORE_ENGINE_BASE_LAYER_TENSORS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/elements.h"
#include "engine/base/layer_sizes.h"

namespace encore::inline v0_1::internal {

// An extent in terms of the layer's sizes; kOne columns make a vector.
enum class Extent {
  kOne,
  kModel,
  kQkv,
  kQueries,
  kKeys,
  kHead,
  kHeads,
  kBuckets,
  kRelative,
  kInner,
  kFirst,
  kExperts,
  kAllInner,
  kLayerInput,
  kNeighbours,
};

// Of ExpertsConfig; beyond any model.
inline constexpr size_t kMaxExperts = 4096;
// Of ConvolutionConfig; likewise.
inline constexpr size_t kMaxConvolution = 63;

// In words, and as a number.
struct ExtentFacts {
  std::string_view text;
  size_t (*of)(const LayerSizes& sizes, const LayerConfig& layer);
};
// In the order of the enumerators.
inline constexpr std::array<ExtentFacts, 15> kExtents = {{
    {"1", [](const LayerSizes&, const LayerConfig&) -> size_t { return 1; }},
    {"d_model", [](const LayerSizes& s, const LayerConfig&) { return s.d_model; }},
    {"(num_heads + 2 num_kv_heads) head_size",
     [](const LayerSizes& s, const LayerConfig&) { return s.qkv_width(); }},
    {"num_heads head_size", [](const LayerSizes& s, const LayerConfig&) { return s.q_width(); }},
    {"num_kv_heads head_size",
     [](const LayerSizes& s, const LayerConfig&) { return s.kv_width(); }},
    {"head_size", [](const LayerSizes& s, const LayerConfig&) { return s.head_size; }},
    {"num_heads", [](const LayerSizes& s, const LayerConfig&) { return s.heads; }},
    {"num_buckets",
     [](const LayerSizes&, const LayerConfig& layer) {
       return layer.buckets ? layer.buckets->num_buckets : 0;
     }},
    {"2 span",
     [](const LayerSizes&, const LayerConfig& layer) {
       return layer.relative ? 2 * RelativeSpan(*layer.relative) : 0;
     }},
    {"d_ff", [](const LayerSizes& s, const LayerConfig&) { return s.d_ff; }},
    {"d_ff, twice where gated",
     [](const LayerSizes& s, const LayerConfig& layer) {
       return layer.gate == Gate::kNone ? s.d_ff : 2 * s.d_ff;
     }},
    {"num_experts",
     [](const LayerSizes&, const LayerConfig& layer) {
       return layer.experts ? layer.experts->num_experts : 0;
     }},
    {"num_experts d_ff",
     [](const LayerSizes& s, const LayerConfig& layer) {
       return layer.experts ? layer.experts->num_experts * s.d_ff : 0;
     }},
    {"layer_input.width",
     [](const LayerSizes&, const LayerConfig& layer) {
       return layer.layer_input ? layer.layer_input->width : 0;
     }},
    {"d_model convolution.kernel",
     [](const LayerSizes& s, const LayerConfig& layer) {
       return layer.convolution ? s.d_model * layer.convolution->kernel : 0;
     }},
}};
constexpr const ExtentFacts& FactsOf(Extent extent) {
  return kExtents[static_cast<size_t>(extent)];
}

// What gives a tensor its place in a layer (nn/encoder_check.h).
enum class TensorPlace {
  kAlways,
  kFusedQkv,         // unless one of the three is given
  kApartQkv,         // if one of the three is given
  kQkNorm,           // qk_norm
  kBuckets,          // buckets
  kRelative,         // relative
  kRelativeNorm,     // relative, whose norm is not kNone
  kRelativeQueries,  // relative with own_projections and position_to_content
  kRelativeKeys,     // relative with own_projections and content_to_position
  kLayerScale,       // any placement but kBoth
  kNetwork,          // unless the layer has experts
  kFusedFirst,       // the same, unless gate_proj or up_proj is given
  kApartFirst,       // the same, gate_proj or up_proj is given, and the layer is gated
  kExperts,          // experts
  kLayerInput,       // layer_input
  kConvolution,      // convolution
  kNorm1,            // attention_norm
  kPostNorm,         // NormPlacement::kBoth
  kNever,            // the input scale of a matrix that shares another's
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

// A row of the table.
struct LayerPart {
  // What its tensors' names begin with, after "layers.N."; torch.nn.TransformerEncoderLayer's where
  // it has the part.
  std::string_view name;
  std::string_view alias;  // another beginning, or ""
  LayerMember member;
  // Of a linear layer: whose input_scale is that of its inputs, where this layer's file tells it.
  LinearWeights EncoderLayerWeights::*input_scale_of;
  Extent rows;     // of its weight, and elements of its bias
  Extent columns;  // of its weight
  TensorPlace place;
  // Of a linear layer: the product that it is packed into. Without one its weight is never int8.
  std::optional<LayerMatrix> matrix;
  bool in_torch;  // torch.nn.TransformerEncoderLayer has it
};

// A part that is packed into no product: a norm, a tensor by itself, or what makes tables.
constexpr LayerPart NoMatrix(std::string_view name, LayerMember member, Extent rows,
                             TensorPlace place, bool in_torch = false,
                             Extent columns = Extent::kOne) {
  return {name, "", member, nullptr, rows, columns, place, std::nullopt, in_torch};
}

inline constexpr std::array<LayerPart, 34> kLayerParts = [] {
  using W = EncoderLayerWeights;
  using E = Extent;
  using P = TensorPlace;
  using K = LayerMatrix;
  return std::array<LayerPart, 34>{{
      {"self_attn.in_proj_", "", &W::in_proj, &W::in_proj, E::kQkv, E::kModel, P::kFusedQkv,
       K::kQkv, true},
      {"self_attn.q_proj.", "", &W::q_proj, &W::in_proj, E::kQueries, E::kModel, P::kApartQkv,
       K::kQkv, false},
      {"self_attn.k_proj.", "", &W::k_proj, nullptr, E::kKeys, E::kModel, P::kApartQkv, K::kQkv,
       false},
      {"self_attn.v_proj.", "", &W::v_proj, nullptr, E::kKeys, E::kModel, P::kApartQkv, K::kQkv,
       false},
      NoMatrix("self_attn.q_norm.", &W::q_norm, E::kHead, P::kQkNorm),
      NoMatrix("self_attn.k_norm.", &W::k_norm, E::kHead, P::kQkNorm),
      NoMatrix("self_attn.position_bias", &W::position_bias, E::kBuckets, P::kBuckets, false,
               E::kHeads),
      NoMatrix("self_attn.relative_embeddings", &W::relative_embeddings, E::kRelative, P::kRelative,
               false, E::kModel),
      NoMatrix("self_attn.relative_norm.", &W::relative_norm, E::kModel, P::kRelativeNorm),
      NoMatrix("self_attn.pos_q_proj.", &W::pos_q_proj, E::kQueries, P::kRelativeQueries, false,
               E::kModel),
      NoMatrix("self_attn.pos_k_proj.", &W::pos_k_proj, E::kKeys, P::kRelativeKeys, false,
               E::kModel),
      {"self_attn.out_proj.", "", &W::out_proj, &W::out_proj, E::kModel, E::kQueries, P::kAlways,
       K::kOutProj, true},
      NoMatrix("layer_scale1", &W::layer_scale1, E::kModel, P::kLayerScale),
      NoMatrix("layer_scale2", &W::layer_scale2, E::kModel, P::kLayerScale),
      {"linear1.", "ff.0.", &W::linear1, &W::linear1, E::kFirst, E::kModel, P::kFusedFirst,
       K::kLinear1, true},
      {"gate_proj.", "", &W::gate_proj, &W::linear1, E::kInner, E::kModel, P::kApartFirst,
       K::kLinear1, false},
      {"up_proj.", "", &W::up_proj, nullptr, E::kInner, E::kModel, P::kApartFirst, K::kLinear1,
       false},
      {"linear2.", "ff.2.", &W::linear2, &W::linear2, E::kModel, E::kInner, P::kNetwork,
       K::kLinear2, true},
      NoMatrix("router", &W::router, E::kExperts, P::kExperts, false, E::kModel),
      NoMatrix("experts_first", &W::experts_first, E::kAllInner, P::kExperts, false, E::kModel),
      NoMatrix("experts_second", &W::experts_second, E::kAllInner, P::kExperts, false, E::kModel),
      NoMatrix("experts_bias", &W::experts_bias, E::kModel, P::kExperts),
      NoMatrix("input_proj.", &W::input_proj, E::kLayerInput, P::kLayerInput, false, E::kModel),
      NoMatrix("input_norm.", &W::input_norm, E::kLayerInput, P::kLayerInput),
      NoMatrix("input_gate.", &W::input_gate, E::kLayerInput, P::kLayerInput, false, E::kModel),
      NoMatrix("input_output.", &W::input_output, E::kModel, P::kLayerInput, false, E::kLayerInput),
      NoMatrix("post_input_norm.", &W::post_input_norm, E::kModel, P::kLayerInput),
      NoMatrix("layer_scalar", &W::layer_scalar, E::kOne, P::kLayerInput),
      NoMatrix("convolution.", &W::convolution, E::kModel, P::kConvolution, false, E::kNeighbours),
      NoMatrix("convolution_norm.", &W::convolution_norm, E::kModel, P::kConvolution),
      NoMatrix("norm1.", &W::norm1, E::kModel, P::kNorm1, true),
      NoMatrix("norm2.", &W::norm2, E::kModel, P::kAlways, true),
      NoMatrix("post_norm1.", &W::post_norm1, E::kModel, P::kPostNorm),
      NoMatrix("post_norm2.", &W::post_norm2, E::kModel, P::kPostNorm),
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

  constexpr Extent rows() const {
    return role == TensorRole::kInputScale ? part->columns : part->rows;
  }
  constexpr Extent columns() const {
    return role == TensorRole::kWeight ? part->columns : Extent::kOne;
  }
  constexpr TensorPlace place() const {
    if (role != TensorRole::kInputScale) return part->place;
    if (part->member.linear != part->input_scale_of) return TensorPlace::kNever;
    const bool network =
        part->matrix == LayerMatrix::kLinear1 || part->matrix == LayerMatrix::kLinear2;
    return network ? TensorPlace::kNetwork : TensorPlace::kAlways;
  }
  // Where it has a place. Biases, scales, and the weights of norms may be missing.
  constexpr bool required() const { return columns() != Extent::kOne; }
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
  const size_t rows = FactsOf(tensor.rows()).of(sizes, layer);
  if (tensor.columns() == Extent::kOne) return Shape(rows);
  return Shape(rows, FactsOf(tensor.columns()).of(sizes, layer));
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

#endif  // ENCORE_ENGINE_BASE_LAYER_TENSORS_H_
