// SPDX-License-Identifier: Apache-2.0
//
// Everything of an encoder but its panels: what Encoder::Create packs, `encore convert` writes, and
// the bytes that both need are counted by.

#ifndef ENCORE_ENGINE_NN_PREPARED_ENCODER_H_
#define ENCORE_ENGINE_NN_PREPARED_ENCODER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/nn/model_sizes.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/position_tables.h"

namespace encore::inline v0_1::internal {

// Movable. Views the weights until they are packed.
struct PreparedEncoder {
  // Checks configuration, options and weights, and reads vectors: norms, biases, scales and tables.
  // The errors of Encoder::Create but those of numbers in matrices.
  static Result<PreparedEncoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                        const EncoderOptions& options);

  // Of the matrices' panels.
  Result<size_t> PanelBytes() const;
  // See Encoder::WorkspaceBytes.
  Result<size_t> WorkspaceBytes(const BatchLimits& limits, int threads) const;

  EncoderConfig config;  // with defaults
  std::vector<PackedLayer> layers;
  std::vector<MatrixToPack> matrices;  // four a layer; they point to the layers
  PackedNorm final_norm;
  PositionTables tables;
  ModelSizes sizes;

 private:
  PreparedEncoder(EncoderConfig with_defaults, bool reduced)
      : config(std::move(with_defaults)), sizes(config, reduced) {}
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PREPARED_ENCODER_H_
