// SPDX-License-Identifier: Apache-2.0
//
// Attention of one head over one sequence, in tiles: blocks of queries walk the keys with an online
// softmax, so that no more than a tile of scores ever exists. Not here: which heads and sequences
// there are (attention_op.cc, nn/attention_stage.h).
//
// Sizes of tiles are constants of the numeric contract, counted from the sequence's start: the bits
// of a row depend on them and on nothing else that could vary (threads, batch, SIMD target).

#ifndef ENCORE_ENGINE_OPS_ATTENTION_H_
#define ENCORE_ENGINE_OPS_ATTENTION_H_

#include <cstddef>

#include "encore/ops.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/packed_matrix.h"

namespace encore::internal {

// A block of queries under a causal mask walks the keys as far as its last row may see.
inline constexpr size_t kQueryBlock = 64;
inline constexpr size_t kKeyTile = 512;

// The keys of one head as the right-hand side of Q K^T: transposed, in panels of kQueryBlock or
// fewer keys, each [head_size, keys of the panel]; the last one as wide as whole vectors need.
struct KeyLayout {
  KeyLayout() = default;
  KeyLayout(const GemmKernel& gemm, size_t num_keys, size_t size)
      : kernel(&gemm),
        keys(num_keys),
        head_size(size),
        nv(ChooseAlignedPanelVectors(gemm, kQueryBlock)) {}

  const GemmKernel* kernel = nullptr;
  size_t keys = 0;
  size_t head_size = 0;
  size_t nv = 0;  // vectors of keys in a panel

  // Monotone in both sizes.
  size_t floats() const { return RoundUp(keys, kernel->lanes) * head_size; }
  // Keys [begin, end): begin is a multiple of kKeyTile, end one of kQueryBlock or all keys.
  PackedView View(const float* packed, size_t begin, size_t end) const;
  // Packs keys [begin, end) of k [keys, ld_k], contiguous rows of head_size. Several threads may
  // pack different keys of one head.
  void Pack(const float* k, size_t ld_k, size_t begin, size_t end, float* packed) const;
  // Packs all of them, of any strides.
  void Pack(ConstView k, float* packed) const;
};

// One head's work. Everything lives as long as the call.
struct AttentionHead {
  KeyLayout layout;
  const SoftmaxKernels* softmax;
  const float* q;  // [queries, ld_q], contiguous rows of head_size
  size_t ld_q;
  const float* packed_keys;
  const float* v;  // [keys, ld_v], contiguous rows of value_size, readable to whole vectors
  size_t ld_v;
  size_t value_size;
  size_t value_nv;  // ChoosePanelVectors of it
  float* out;       // contiguous rows of value_size, the first one that of query out_query
  size_t ld_out;
  size_t out_query;
  MutableView weights;  // [queries, keys], or empty
  float scale;
  const AttentionMask* mask;
  const size_t* query_positions = nullptr;  // [queries]: rows of the mask; null for 0, 1, 2 ...
  const size_t* key_positions = nullptr;    // [keys]: columns of the mask; null for 0, 1, 2 ...
};

// Floats of scratch for Attend; a multiple of 16, monotone in every size.
size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked);

// Queries [begin, end): any range gives the same bits as a part of any other. `scratch` is aligned
// to 64 bytes.
void Attend(const AttentionHead& head, size_t begin, size_t end, float* scratch);

// True if the mask hides or adds anything but by causality.
inline bool HasMatrix(const AttentionMask& mask) {
  return !mask.blocked.empty() || !mask.additive.empty();
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ATTENTION_H_
