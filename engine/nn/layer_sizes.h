// SPDX-License-Identifier: Apache-2.0
//
// The sizes of one layer and its number of operations: pure functions of a LayerConfig.

#ifndef ENCORE_ENGINE_NN_LAYER_SIZES_H_
#define ENCORE_ENGINE_NN_LAYER_SIZES_H_

#include <algorithm>
#include <cstddef>
#include <optional>

#include "encore/encoder.h"

namespace encore::inline v0_1::internal {

// Limits beyond any model: of ExpertsConfig and of ConvolutionConfig.
inline constexpr size_t kMaxExperts = 4096;
inline constexpr size_t kMaxConvolution = 63;

// Half of the rows of a table of relative embeddings.
inline size_t RelativeSpan(const RelativeConfig& relative) {
  return relative.buckets != 0 ? relative.buckets : relative.max_distance;
}

// With defaults filled in. Widths count columns of one token's row. 0: the layer has no such thing.
struct LayerSizes {
  LayerSizes(size_t width, const LayerConfig& layer)
      : d_model(width),
        heads(layer.num_heads),
        kv_heads(layer.num_kv_heads != 0 ? layer.num_kv_heads : layer.num_heads),
        head_size(layer.head_size != 0 ? layer.head_size : width / layer.num_heads),
        d_ff(layer.d_ff),
        linear1(layer.gate == Gate::kNone ? d_ff : 2 * d_ff),
        experts(layer.experts ? layer.experts->num_experts : 0),
        per_layer_input(layer.layer_input ? layer.layer_input->width : 0),
        patch(layer.convolution ? width * layer.convolution->kernel : 0),
        buckets(layer.buckets ? layer.buckets->num_buckets : 0),
        relative(layer.relative ? 2 * RelativeSpan(*layer.relative) : 0) {}

  size_t d_model;
  size_t heads;
  size_t kv_heads;
  size_t head_size;
  size_t d_ff;
  size_t linear1;          // outputs: d_ff, twice where gated
  size_t experts;          // num_experts
  size_t per_layer_input;  // width
  size_t patch;            // of a convolution: rows under its kernel, side by side
  size_t buckets;
  size_t relative;  // rows of the table

  size_t group() const { return heads / kv_heads; }  // query heads of one key head
  size_t q_width() const { return heads * head_size; }
  size_t kv_width() const { return kv_heads * head_size; }
  size_t qkv_width() const { return q_width() + 2 * kv_width(); }
};

// Pairs of a query and a key that it sees, over a sequence of so many tokens.
inline double VisiblePairs(bool causal, const std::optional<size_t>& window, size_t tokens) {
  const double s = static_cast<double>(tokens);
  // A window |i - j| <= w hides (s - w) (s - w - 1) pairs.
  const double past = window && *window < tokens ? s - static_cast<double>(*window) : 0;
  const double both_sides = s * s - std::max(0.0, past * (past - 1));
  return causal ? (both_sides + s) / 2 : both_sides;
}

// What the time of a layer depends on.
struct LayerCost {
  LayerCost(size_t d_model, const LayerConfig& layer) : causal(layer.causal), window(layer.window) {
    const LayerSizes sizes(d_model, layer);
    const double attention = static_cast<double>(sizes.qkv_width() + sizes.q_width());
    double d_ff = static_cast<double>(sizes.linear1 + sizes.d_ff);
    if (layer.experts) {
      d_ff = d_ff * static_cast<double>(layer.experts->top_k) + static_cast<double>(sizes.experts);
    }
    const double more = static_cast<double>(3 * sizes.per_layer_input + sizes.patch);
    flops_per_token = 2 * static_cast<double>(d_model) * (attention + d_ff + more);
    flops_per_pair = 4 * static_cast<double>(sizes.q_width());
  }
  // Matrix products and attention of one sequence: 2 S (d_model (q + k + v widths + q width) +
  // d_model d_ff (2, or 3 where gated)) + 4 q width for each visible pair. With experts, d_ff
  // counts top_k times, and the router adds d_model num_experts. layer_input adds 3 d_model width,
  // a convolution d_model^2 kernel. Softmax, norms, positions and activations are not counted.
  double Flops(size_t tokens) const {
    return flops_per_token * static_cast<double>(tokens) +
           flops_per_pair * VisiblePairs(causal, window, tokens);
  }
  bool operator==(const LayerCost&) const = default;

  double flops_per_token;
  double flops_per_pair;
  bool causal;
  std::optional<size_t> window;
};

// Floating point operations of a layer for one sequence of so many tokens.
inline double LayerFlops(size_t d_model, const LayerConfig& layer, size_t tokens) {
  return LayerCost(d_model, layer).Flops(tokens);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_LAYER_SIZES_H_
