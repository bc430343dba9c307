// SPDX-License-Identifier: Apache-2.0
//
// Makes the views of all taps, and gathers a sequence's parts of them.

#include "reference/all_taps.h"

#include "reference/sequences.h"

namespace encore {

AllTaps::AllTaps(const EncoderConfig& config, std::span<const size_t> starts)
    : d_model_(config.d_model), starts_(starts.begin(), starts.end()) {
  for (const LayerConfig& layer : config.layers) {
    hidden_.emplace_back(starts_.back() * d_model_);
    hidden_views_.emplace_back(hidden_.back().data(), Shape(starts_.back(), d_model_));
    for (size_t b = 0; b + 1 < starts_.size(); ++b) {
      const size_t length = starts_[b + 1] - starts_[b];
      const Shape square(layer.num_heads, length, length);
      attention_.emplace_back(*square.NumElements());
      attention_views_.emplace_back(attention_.back().data(), square);
    }
  }
}

std::vector<std::vector<float>> AllTaps::Parts(std::span<const float> y) const {
  std::vector<std::vector<float>> parts = Split(y, starts_, d_model_);
  for (size_t b = 0; b < parts.size(); ++b) {
    const auto add = [&](std::span<const float> values) {
      parts[b].insert(parts[b].end(), values.begin(), values.end());
    };
    for (size_t l = 0; l < hidden_.size(); ++l) {
      add(RowsOf(hidden_[l], starts_, d_model_, b));
      add(attention_[l * parts.size() + b]);
    }
  }
  return parts;
}

}  // namespace encore
