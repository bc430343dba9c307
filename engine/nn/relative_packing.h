// SPDX-License-Identifier: Apache-2.0
//
// Rows of a layer's table of relative embeddings are normed, projected as keys and as queries, and
// packed for each head, once, when an encoder is made.

#ifndef ENCORE_ENGINE_NN_RELATIVE_PACKING_H_
#define ENCORE_ENGINE_NN_RELATIVE_PACKING_H_

#include <cstddef>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/relative_rows.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// A layer's embeddings before packing. Views the weights.
struct RelativeToPack {
  PackedLayer* layer = nullptr;
  RelativeConfig config = {};
  WeightView embeddings = {};
  PackedNorm norm;  // of their rows; maybe none
  LinearWeights q_proj = {};
  LinearWeights k_proj = {};

  // When packed; a multiple of 64.
  size_t bytes() const;
};

// Lays out a layer's packed embeddings, in elements of attention's kernel. `config` is checked.
// kOutOfMemory.
Status PrepareRelative(const RelativeConfig& config, const EncoderLayerWeights& weights,
                       const RelativeRows& rows, const GemmKernel& attention, PackedLayer* layer,
                       RelativeToPack* relative);

// Packs them at `data`, which has room for bytes() and is aligned to 64 bytes. The layer's matrices
// are packed already; shared projections have the bits of the layer's products. kOutOfMemory.
Status PackRelative(const RelativeToPack& relative, const RelativeRows& rows,
                    const Executor& executor, std::byte* data);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_RELATIVE_PACKING_H_
