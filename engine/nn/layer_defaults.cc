// SPDX-License-Identifier: Apache-2.0
//
// The defaults that layer.h states, in arithmetic that is the same on every machine.

#include "engine/nn/layer_defaults.h"

#include <cmath>
#include <vector>

#include "engine/base/double_math.h"
#include "engine/base/layer_sizes.h"

namespace encore::inline v0_1::internal {
namespace {

std::vector<double> InverseFrequencies(const RotaryConfig& rotary) {
  const double log_theta = PortableLog(rotary.theta);
  std::vector<double> frequencies(rotary.size / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double share = static_cast<double>(2 * i) / static_cast<double>(rotary.size);
    frequencies[i] = PortableExp(-share * log_theta);
  }
  return frequencies;
}

// 2^(-8 (h + 1) / n), n a power of two, rounded to f32.
double PowerOfTwoSlope(size_t h, size_t n) {
  const double exponent = -8 * static_cast<double>(h + 1) / static_cast<double>(n);
  return static_cast<float>(PortableExp(exponent * PortableLog(2)));
}

std::vector<double> PaperSlopes(size_t heads) {
  size_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (size_t h = 0; h < power; ++h) slopes.push_back(PowerOfTwoSlope(h, power));
  for (size_t h = power; h < heads; ++h) {
    slopes.push_back(PowerOfTwoSlope(2 * (h - power), 2 * power));
  }
  return slopes;
}

}  // namespace

EncoderConfig WithDefaults(const EncoderConfig& config) {
  EncoderConfig filled = config;
  for (LayerConfig& layer : filled.layers) {
    const LayerSizes sizes(config.d_model, layer);
    layer.num_kv_heads = sizes.kv_heads;
    layer.head_size = sizes.head_size;
    if (layer.attention_scale == 0) {
      layer.attention_scale = 1.0 / std::sqrt(static_cast<double>(sizes.head_size));
    }
    if (layer.rotary) {
      if (layer.rotary->size == 0) layer.rotary->size = sizes.head_size;
      if (layer.rotary->inverse_frequencies.empty()) {
        layer.rotary->inverse_frequencies = InverseFrequencies(*layer.rotary);
      }
    }
    if (layer.alibi && layer.alibi->slopes.empty()) layer.alibi->slopes = PaperSlopes(sizes.heads);
  }
  return filled;
}

}  // namespace encore::internal
