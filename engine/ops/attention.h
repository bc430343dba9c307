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
#include <cstdint>

#include "encore/ops.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/packed_matrix.h"

namespace encore::internal {

// A block of queries walks the keys that its rows may see, under a causal mask up to its last row's
// and in a window from its first row's, rounded down to a multiple of kQueryBlock. First and last
// are those of the whole block, whichever of its queries are asked for. Tiles of keys are counted
// from the first of these keys.
inline constexpr size_t kQueryBlock = 64;
inline constexpr size_t kKeyTile = 512;

inline constexpr size_t kNoWindow = SIZE_MAX;

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
  AttentionMask mask;                       // its matrices are this head's: [S, S]
  const size_t* query_positions = nullptr;  // [queries]: rows of the mask; null for 0, 1, 2 ...
  const size_t* key_positions = nullptr;    // [keys]: columns of the mask; null for 0, 1, 2 ...
  size_t window = kNoWindow;  // query i sees keys j with |i - j| <= window only, whatever positions
  // The score of query i and key j gets distance_bias[j - i], whatever positions; null for none.
  // Readable for all distances from a query to a key of the sequence, windows or not. Where there
  // is an additive mask too, the sum of both is rounded before it is added.
  const float* distance_bias = nullptr;
};

// Floats of scratch for Attend; a multiple of 16, monotone in every size.
size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked);

// Queries [begin, end): any range gives the same bits as a part of any other. `scratch` is aligned
// to 64 bytes.
void Attend(const AttentionHead& head, size_t begin, size_t end, float* scratch);

// True if the mask hides or adds anything but by causality. With one of its matrices or a distance
// bias, Attend's scratch has to be `masked`.
inline bool HasMatrix(const AttentionMask& mask) {
  return !mask.blocked.empty() || !mask.additive.empty();
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ATTENTION_H_
