// SPDX-License-Identifier: Apache-2.0
//
// One encoder block over a batch: the recipe, its packed weights, and what a pass carries along.
// Not here: validation and the stack of blocks (encoder.cc), where intermediates lie
// (scratch_plan.h).

#ifndef ENCORE_ENGINE_NN_ENCODER_BLOCK_H_
#define ENCORE_ENGINE_NN_ENCODER_BLOCK_H_

#include <cstddef>

#include "encore/encoder.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/layer_norm.h"
#include "engine/kernels/softmax.h"
#include "engine/nn/scratch_plan.h"
#include "engine/ops/gemm.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::internal {

struct PackedLayerNorm {
  AlignedBuffer<float> weight;  // [d_model]
  AlignedBuffer<float> bias;    // [d_model], or nothing for 0
};

struct PackedLayer {
  PackedMatrix qkv;       // [d_model, 3 d_model]
  PackedMatrix out_proj;  // [d_model, d_model]
  PackedMatrix linear1;   // [d_model, d_ff]
  PackedMatrix linear2;   // [d_ff, d_model]
  PackedLayerNorm norm1;
  PackedLayerNorm norm2;
};

// The kernels of the target that the weights were packed for.
struct BlockKernels {
  const GemmKernel* gemm;
  const ElementwiseKernels* elementwise;
  const SoftmaxKernels* softmax;
  const LayerNormKernels* layer_norm;
  ElementwiseKernels::Unary activation;
};

// What all blocks of one forward pass share. Immutable while the team runs.
struct Pass {
  const EncoderConfig* config;
  const BlockKernels* kernels;
  const Batch* batch;
  const Taps* taps;
  ScratchPlan plan;
  float* scratch;              // the workspace
  const size_t* block_starts;  // [sequences + 1]: blocks of queries before each sequence

  size_t tokens() const { return batch->seq_starts.back(); }
  size_t sequences() const { return batch->seq_starts.size() - 1; }
};

// Rows of tokens: [tokens, ld], in memory of the caller's.
struct ConstRows {
  const float* data;
  size_t ld;
};
struct Rows {
  float* data;
  size_t ld;
};

// starts[b] = the number of query blocks before sequence b; starts has an entry a sequence, plus
// the end.
void CountQueryBlocks(const Batch& batch, size_t* starts);

// y = block(x), and what the taps want of layer `index`. y may be x.
void EncoderBlock(Team& team, const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
                  Rows y);

// y = LayerNorm(y), shared among the lanes.
void NormRows(Team& team, const Pass& pass, const PackedLayerNorm& norm, Rows y);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ENCODER_BLOCK_H_
