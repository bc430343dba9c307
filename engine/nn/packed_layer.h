// SPDX-License-Identifier: Apache-2.0
//
// A layer as a pass reads it: packed weights, norms and tables.

#ifndef ENCORE_ENGINE_NN_PACKED_LAYER_H_
#define ENCORE_ENGINE_NN_PACKED_LAYER_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/rows.h"
#include "engine/nn/layer_sizes.h"
#include "engine/ops/packed_matrix.h"

namespace encore::inline v0_1::internal {

struct PackedNorm {
  // y = norm(x) (+ residual) over rows of `cols`; y may be x or the residual.
  void Run(ConstRows x, ConstRows residual, Rows y, size_t rows, size_t cols) const {
    kernel({.x = x.data,
            .ldx = x.ld,
            .weight = weight.data(),
            .bias = bias.data(),
            .epsilon = epsilon,
            .residual = residual.data,
            .ld_residual = residual.ld,
            .y = y.data,
            .ldy = y.ld,
            .rows = rows,
            .cols = cols});
  }
  bool given() const { return kernel != nullptr; }

  void (*kernel)(const NormArgs& args) = nullptr;  // LayerNorm or RMSNorm of the target
  double epsilon = 0;
  AlignedBuffer<float> weight;  // or nothing for 1
  AlignedBuffer<float> bias;    // or nothing for 0
};

// The activation after linear1. Exactly one member is set: relu is fused into the GEMM, tile runs
// after it, gated multiplies gate and up.
struct BlockActivation {
  bool relu = false;
  ActivationKernel::Tile tile = nullptr;
  ActivationKernel::Gated gated = nullptr;
};

inline constexpr size_t kNoTable = static_cast<size_t>(-1);

// Relative embeddings as attention reads them (relative_rows.h).
struct PackedRelative {
  size_t table = kNoTable;  // in PositionTables
  size_t rows = 0;
  PackedView keys;                      // pk of a key head, without data
  const std::byte* key_data = nullptr;  // of all key heads; null without content_to_position
  PackedLhs queries = {};  // pq, [heads, rows]; without data without position_to_content

  size_t key_bytes() const { return RoundUp(keys.packed_bytes(), 64); }  // of a key head
};

// A mixture of experts: expert e goes through linear1[e] and linear2[e].
struct PackedExperts {
  size_t top_k;
  bool normalize_weights;
  PackedMatrix router;                // [d_model, experts], of f32 in every precision
  std::vector<PackedMatrix> linear1;  // [d_model, d_ff]
  std::vector<PackedMatrix> linear2;  // [d_ff, d_model]
  AlignedBuffer<float> bias;          // [d_model], or nothing for 0

  size_t count() const { return linear1.size(); }
};

// The third sublayer of a layer with layer_input.
struct PackedLayerInput {
  PackedMatrix proj;    // [d_model, width]
  PackedMatrix gate;    // [d_model, width]
  PackedMatrix output;  // [width, d_model]
  PackedNorm norm;      // maybe not given
  PackedNorm post_norm;
  BlockActivation activation;  // of the gate
  float scalar = 1;
};

// What follows the other sublayers of a layer with a convolution.
struct PackedConvolution {
  size_t kernel;
  PackedMatrix matrix;  // [d_model kernel, d_model]
  PackedNorm norm;
  BlockActivation activation;
};

struct PackedLayer {
  PackedLayer(size_t d_model, const LayerConfig& config) : sizes(d_model, config) {}

  LayerSizes sizes;
  PackedMatrix qkv;       // [d_model, q, k and v widths]
  PackedMatrix out_proj;  // [q width, d_model]
  PackedMatrix linear1;   // [d_model, d_ff], gated or not; not with experts
  PackedMatrix linear2;   // [d_ff, d_model]; likewise
  std::optional<PackedExperts> experts;
  std::optional<PackedLayerInput> layer_input;
  std::optional<PackedConvolution> convolution;
  PackedNorm norm1;  // not given without attention_norm
  PackedNorm norm2;
  PackedNorm post_norm1;  // these two with norms on both sides
  PackedNorm post_norm2;
  PackedNorm q_norm;  // these two with qk_norm
  PackedNorm k_norm;
  PackedNorm v_norm;  // with v_norm
  BlockActivation activation;
  size_t rotary = kNoTable;  // in PositionTables
  size_t distance_bias = kNoTable;
  PackedRelative relative;
};

// A matrix to pack, and where to.
struct MatrixToPack {
  WeightSource source = {};
  PackedMatrix* packed = nullptr;
  std::string_view name = {};  // "qkv", "out_proj" ...
  bool ends_layer = false;
  // Whether input channels are smoothed. For scales found from the weights (smoothing.h): the norm
  // that makes the input, or null if unknown, and the rows whose errors count.
  bool smoothed = false;
  const PackedNorm* norm = nullptr;
  size_t row_begin = 0;
  size_t row_end = 0;
};

// The kernels of a layer's matrices, by LayerMatrix.
using LayerKernels = std::array<const GemmKernel*, 4>;

// Prepares norms and kernels, and appends the matrices to be packed to `matrices`, in the order in
// which a pass reads them. `config` has its defaults filled in. kOutOfMemory.
// input_norm: the norm that made the layer's input, or null if unknown; it outlives the packing.
Status PrepareLayer(const LayerConfig& config, const EncoderLayerWeights& weights,
                    const LayerKernels& kernels, const PackedNorm* input_norm, PackedLayer* layer,
                    std::vector<MatrixToPack>* matrices);
Status PackNorm(const NormConfig& config, const NormWeights& weights, PackedNorm* packed);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PACKED_LAYER_H_
