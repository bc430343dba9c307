// SPDX-License-Identifier: Apache-2.0
//
// Maxima and means over the layers of a model.

#include "engine/nn/model_sizes.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {
ModelSizes::ModelSizes(const EncoderConfig& config, bool reduced)
    : d_model(config.d_model),
      makes_rows(reduced),
      num_layers_(static_cast<double>(config.layers.size())) {
  for (const LayerConfig& layer : config.layers) {
    const LayerSizes sizes(d_model, layer);
    heads = std::max(heads, sizes.heads);
    q_width = std::max(q_width, sizes.q_width());
    kv_width = std::max(kv_width, sizes.kv_width());
    qkv_width = std::max(qkv_width, sizes.qkv_width());
    head_size = std::max(head_size, sizes.head_size);
    d_ff = std::max(d_ff, sizes.d_ff);
    if (reduced || sizes.head_size % 16 != 0) {
      packed_value_bytes = std::max(packed_value_bytes,
                                    sizes.kv_heads * RoundUp(sizes.head_size, 16) * sizeof(float));
    }
    if (!layer.window) global_kv_width = std::max(global_kv_width, sizes.kv_width());
    const LayerCost cost(d_model, layer);
    const auto same = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const Kind& kind) { return kind.cost == cost; });
    if (same != kinds_.end()) {
      same->count += 1;
    } else {
      kinds_.push_back({cost, 1});
    }
  }
}

double ModelSizes::FlopsOfLayer(size_t tokens) const {
  double flops = 0;
  for (const Kind& kind : kinds_) flops += kind.count * kind.cost.Flops(tokens);
  return flops / num_layers_;
}

}  // namespace encore::internal
