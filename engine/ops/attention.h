// SPDX-License-Identifier: Apache-2.0
//
// Attention of one head over one sequence, in tiles: blocks of queries walk the keys with an online
// softmax, so that no more than a tile of scores ever exists. Not here: which heads and sequences
// there are (attention_op.cc, encoder).
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

inline constexpr size_t kQueryBlock = 64;
inline constexpr size_t kKeyTile = 512;

// The keys and values of one head, packed. Keys are one matrix [head_size, keys]; values are a
// matrix [keys of a tile, value_size] for each tile of keys.
struct PackedHead {
  const GemmKernel* kernel;
  size_t keys;
  size_t head_size;
  size_t value_size;
  const float* packed_keys;
  const float* packed_values;

  // Floats that each takes; `keys` etc. must be set. Both are monotone in every size.
  size_t packed_keys_floats() const { return keys_view(0, keys).packed_floats(); }
  size_t packed_values_floats() const { return keys * RoundUp(value_size, kernel->lanes); }

  // Keys [begin, end) as the right-hand side of Q K^T. begin is a multiple of kKeyTile, end one of
  // kQueryBlock or keys.
  PackedView keys_view(size_t begin, size_t end) const;
  // Values [begin, end) as the right-hand side of P V: a tile or the beginning of one.
  PackedView values_view(size_t begin, size_t end) const;
};

// Packs keys [keys, head_size] and values [keys, value_size] into the head's two buffers, given as
// non-const.
void PackHead(const PackedHead& head, ConstView keys, ConstView values, float* packed_keys,
              float* packed_values);

// One head's work. Everything lives as long as the call.
struct AttentionHead {
  ConstView q;  // [queries, head_size]
  PackedHead packed;
  const SoftmaxKernels* softmax;
  MutableView out;      // [queries, value_size]
  MutableView weights;  // [queries, keys], or empty
  float scale;
  const AttentionMask* mask;
  const size_t* query_positions = nullptr;  // [queries]: rows of the mask; null for 0, 1, 2 ...
  const size_t* key_positions = nullptr;    // [keys]: columns of the mask; null for 0, 1, 2 ...
};

// Floats of scratch for AttendBlock; a multiple of 16, monotone in every size.
size_t AttentionScratchFloats(size_t keys, size_t head_size, size_t value_size, bool masked);

// Queries [block * kQueryBlock, (block + 1) * kQueryBlock), as far as there are any. `scratch` is
// aligned to 64 bytes.
void AttendBlock(const AttentionHead& head, size_t block, float* scratch);

// True if the mask hides or adds anything but by causality.
inline bool HasMatrix(const AttentionMask& mask) {
  return !mask.blocked.empty() || !mask.additive.empty();
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ATTENTION_H_
