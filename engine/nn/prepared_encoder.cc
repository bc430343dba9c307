// SPDX-License-Identifier: Apache-2.0
//
// Layer after layer, from views to what is to be packed.

#include "engine/nn/prepared_encoder.h"

#include <string>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/nn/encoder_check.h"
#include "engine/nn/encoder_packing.h"
#include "engine/nn/layer_defaults.h"
#include "engine/nn/scratch_plan.h"
#include "engine/ops/view_check.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {

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
  const Result<ScratchPlan> plan = ScratchPlan::Create(sizes, limits.tokens, limits.sequences,
                                                       limits.tokens, static_cast<size_t>(threads));
  if (!plan.ok()) return plan.status();
  return plan->bytes;
}

}  // namespace encore::internal
