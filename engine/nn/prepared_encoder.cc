// SPDX-License-Identifier: Apache-2.0
//
// Layer after layer, from views to what is to be packed; defaults are filled in.

#include "engine/nn/prepared_encoder.h"

#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/double_math.h"
#include "engine/base/layer_sizes.h"
#include "engine/base/status_macros.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/encoder_packing.h"
#include "engine/nn/scratch_plan.h"
#include "engine/ops/view_check.h"
#include "engine/platform/fp_env.h"

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

// The checked configuration with every default that layer.h states, in arithmetic that is the same
// on every machine.
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

}  // namespace

Result<PreparedEncoder> PreparedEncoder::Create(const EncoderConfig& config,
                                                const EncoderWeights& weights,
                                                const EncoderOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckConfig(config));
  ENCORE_RETURN_IF_ERROR(CheckOptions(config, options));
  ENCORE_RETURN_IF_ERROR(CheckWeights(config, weights));
  const FpEnvScope modes;
  PreparedEncoder all(WithDefaults(config), options.precision != Precision::kF32);
  all.layers.reserve(config.num_layers());
  for (size_t i = 0; i < config.num_layers(); ++i) {
    const LayerConfig& layer = all.config.layers[i];
    PackedLayer& packed = all.layers.emplace_back(config.d_model, layer);
    ENCORE_RETURN_IF_ERROR(PrepareLayer(layer, weights.layers[i], KernelsOfLayer(options, i),
                                        i == 0 ? nullptr : &all.layers[i - 1].norm2, &packed,
                                        &all.matrices));
    all.matrices.back().ends_layer = true;
    all.tables.Add(layer, weights.layers[i], &packed);
  }
  ENCORE_RETURN_IF_ERROR(PackNorm(config.final_norm, weights.norm, &all.final_norm));
  all.sizes.floats_per_position = all.tables.floats_per_position();
  all.sizes.floats_beside = all.tables.floats_beside();
  all.sizes.input_row_bytes = LongestInputRow(all.matrices);
  return all;
}

Result<size_t> PreparedEncoder::PanelBytes() const { return internal::PanelBytes(matrices); }

Result<size_t> PreparedEncoder::WorkspaceBytes(const BatchLimits& limits, int threads) const {
  ENCORE_ASSIGN_OR_RETURN(const ScratchPlan plan,
                          ScratchPlan::Create(sizes, limits.tokens, limits.sequences, limits.tokens,
                                              static_cast<size_t>(threads)));
  return plan.bytes;
}

}  // namespace encore::internal
