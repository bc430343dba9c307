// SPDX-License-Identifier: Apache-2.0
//
// Maxima and means over the layers of a model.

#include "engine/nn/model_sizes.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::internal {
namespace {

bool CostTheSame(const LayerConfig& a, const LayerConfig& b) {
  return a.num_heads == b.num_heads && a.num_kv_heads == b.num_kv_heads &&
         a.head_size == b.head_size && a.d_ff == b.d_ff && a.causal == b.causal &&
         a.window == b.window && (a.gate == Gate::kNone) == (b.gate == Gate::kNone);
}

// What costs anything, without the rest.
LayerConfig CostOf(const LayerConfig& layer) {
  LayerConfig cost;
  cost.num_heads = layer.num_heads;
  cost.num_kv_heads = layer.num_kv_heads;
  cost.head_size = layer.head_size;
  cost.causal = layer.causal;
  cost.window = layer.window;
  cost.d_ff = layer.d_ff;
  cost.gate = layer.gate;
  return cost;
}

}  // namespace

ModelSizes::ModelSizes(const EncoderConfig& config)
    : d_model(config.d_model), layers_(static_cast<double>(config.layers.size())) {
  for (const LayerConfig& layer : config.layers) {
    const LayerSizes sizes(d_model, layer);
    q_width = std::max(q_width, sizes.q_width());
    kv_width = std::max(kv_width, sizes.kv_width());
    qkv_width = std::max(qkv_width, sizes.qkv_width());
    head_size = std::max(head_size, sizes.head_size);
    d_ff = std::max(d_ff, sizes.d_ff);
    if (sizes.head_size % 16 != 0) {
      packed_value_width =
          std::max(packed_value_width, sizes.kv_heads * RoundUp(sizes.head_size, 16));
    }
    if (!layer.window) global_kv_width = std::max(global_kv_width, sizes.kv_width());
    const auto same = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
      return CostTheSame(kind.layer, layer);
    });
    if (same != kinds_.end()) {
      same->count += 1;
    } else {
      kinds_.push_back({CostOf(layer), 1});
    }
  }
}

double ModelSizes::FlopsOfLayer(size_t tokens) const {
  double flops = 0;
  for (const Kind& kind : kinds_) flops += kind.count * LayerFlops(d_model, kind.layer, tokens);
  return flops / layers_;
}

}  // namespace encore::internal
