// SPDX-License-Identifier: Apache-2.0
//
// Everything of an encoder but its panels: what Encoder::Create packs, `encore convert` writes, and
// the bytes that both need are counted by. And the kernels that an encoder's options mean.

#ifndef ENCORE_ENGINE_NN_PREPARED_ENCODER_H_
#define ENCORE_ENGINE_NN_PREPARED_ENCODER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/position_tables.h"
#include "engine/nn/relative_packing.h"
#include "engine/nn/thread_plan.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Those of the active SIMD target.
const GemmKernel& KernelOf(Precision precision);
const GemmKernel& KernelOfAttention(const EncoderOptions& options);

// Fills the input_scale() of a smoothed matrix with what was given, or with its own.
void FindInputScale(Team& team, const MatrixToPack& m);

// How many products a layer has. Those of LayerMatrix come first, in its order.
inline size_t MatricesOf(const EncoderLayerWeights& weights) {
  const size_t network = weights.router.empty() ? 2 : 1 + 2 * weights.router.dim(0);
  return 2 + network + (weights.input_gate.weight.empty() ? 0 : 3);
}

// Movable. Views the weights until they are packed.
struct PreparedEncoder {
  // Checks configuration, options and weights, and reads vectors: norms, biases, scales and tables.
  // The errors of Encoder::Create but those of numbers in matrices.
  static Result<PreparedEncoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                        const EncoderOptions& options);

  // Of all matrices' panels and of relative embeddings. kOutOfMemory if they exceed what can be
  // addressed.
  Result<size_t> PanelBytes() const;
  // Packs all matrices one after another into one piece of memory, in the order in which a pass
  // reads them, zeros between, and relative embeddings behind them. kOutOfMemory; kInvalidArgument
  // names a matrix with numbers that int8 cannot have.
  Status Pack(const EncoderOptions& options, AlignedBuffer<std::byte>* panels);
  // See Encoder::WorkspaceBytes.
  Result<size_t> WorkspaceBytes(const BatchLimits& limits, int threads) const;

  EncoderConfig config;  // with defaults
  std::vector<PackedLayer> layers;
  std::vector<MatrixToPack> matrices;    // MatricesOf each layer; they point to the layers
  std::vector<RelativeToPack> relative;  // likewise, of layers that have relative embeddings
  PackedNorm final_norm;
  PositionTables tables;
  ModelSizes sizes;

 private:
  PreparedEncoder(EncoderConfig with_defaults, bool reduced)
      : config(std::move(with_defaults)), sizes(config, reduced) {}
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PREPARED_ENCODER_H_
