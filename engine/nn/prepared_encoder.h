// SPDX-License-Identifier: Apache-2.0
//
// An encoder before its panels are packed: Encoder::Create packs it, `encore convert` writes it.
// And the kernels that an encoder's options select.

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

// Fills the input_scale() of a smoothed matrix: as given, or from its weights and norm.
void FindInputScale(Team& team, const MatrixToPack& m);

struct PanelRange {
  size_t begin;
  size_t end;
};

// Packs matrices one after another. begin(team, i) sets the input scales of matrix i, if it is
// smoothed, and returns which panels to pack. pack(i, source, panel, thread) packs one of them. The
// errors of RunTeam.
template <typename Begin, typename Pack>
Status PackMatrices(const EncoderOptions& options, const Executor& executor,
                    const std::vector<MatrixToPack>& matrices, const Begin& begin,
                    const Pack& pack) {
  return RunTeam(executor, [&](Team& team) {
    for (size_t i = 0; i < matrices.size(); ++i) {
      const PanelRange range = begin(team, i);
      WeightSource source = matrices[i].source;
      if (matrices[i].smoothed) source.column_factor = matrices[i].packed->input_scale();
      team.ForEach(range.end - range.begin,
                   [&](size_t p, int thread) { pack(i, source, range.begin + p, thread); });
      if (matrices[i].ends_layer && options.layer_packed) options.layer_packed();
    }
  });
}

// How many products a layer has: those of LayerMatrix, in its order, then the others.
inline size_t MatricesOf(const EncoderLayerWeights& weights) {
  const size_t network = weights.router.empty() ? 2 : 1 + 2 * weights.router.dim(0);
  return 2 + network + (weights.input_gate.weight.empty() ? 0 : 3);
}

// Movable. Views the weights until they are packed.
struct PreparedEncoder {
  // Checks configuration, options and weights, and reads vectors: norms, biases, scales and tables.
  // The errors of Encoder::Create, except those for numbers in matrices.
  static Result<PreparedEncoder> Create(const EncoderConfig& config, const EncoderWeights& weights,
                                        const EncoderOptions& options);

  // Panels of all matrices, and relative embeddings. kOutOfMemory if they cannot be addressed.
  Result<size_t> PanelBytes() const;
  // Packs all matrices into one piece of memory, in the order in which a pass reads them, zeros
  // between, then relative embeddings. kOutOfMemory; kInvalidArgument names a matrix with numbers
  // that integers cannot represent.
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
