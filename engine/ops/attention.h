// SPDX-License-Identifier: Apache-2.0
//
// Attention of one head over one sequence, in tiles: blocks of queries walk the keys with an online
// softmax, so that no more than a tile of scores ever exists.
//
// Sizes of tiles are constants of the numeric contract. Query blocks are counted from the
// sequence's start, tiles of keys from the first key of a query block's walk: the bits of a row
// depend on them and on nothing else that could vary (threads, batch, SIMD target).

#ifndef ENCORE_ENGINE_OPS_ATTENTION_H_
#define ENCORE_ENGINE_OPS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "encore/ops.h"
#include "engine/kernels/relative.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/packed_matrix.h"

namespace encore::inline v0_1::internal {

// A block of queries walks the keys that its rows may see, under a causal mask up to its last row's
// and in a window from its first row's, rounded down to a multiple of kQueryBlock. First and last
// are those of the whole block, whichever of its queries are asked for. Tiles of keys are counted
// from the first of these keys.
inline constexpr size_t kQueryBlock = 64;
inline constexpr size_t kKeyTile = 512;

inline constexpr size_t kNoWindow = SIZE_MAX;

// The keys of one head as the right-hand side of Q K^T, [head_size, keys]: in panels of kQueryBlock
// or fewer keys.
inline PackedView KeyPanels(const GemmKernel& kernel, size_t keys, size_t head_size) {
  return {.kernel = &kernel,
          .k = head_size,
          .n = keys,
          .nv = ChooseAlignedPanelVectors(kernel, kQueryBlock),
          .panel_rows = head_size};
}
// The values of one head as the right-hand side of P V, [keys, value_size].
inline PackedView ValuePanels(const GemmKernel& kernel, size_t keys, size_t value_size) {
  return {.kernel = &kernel,
          .k = keys,
          .n = value_size,
          .nv = ChoosePanelVectors(kernel, value_size),
          .panel_rows = keys};
}

// Pack keys, or values, [begin, end) of rows of head_size or value_size into memory for
// packed_bytes(). Several threads may pack different keys of one head.
void PackKeys(const PackedView& keys, ConstRows k, size_t begin, size_t end, void* packed);
void PackValues(const PackedView& values, ConstRows v, size_t begin, size_t end, void* packed);

// From so many keys on, packing values whose size is no multiple of the vector takes less time than
// it saves: 729 keys of size 72 take 3 % less of attention's layer, of size 14 10 %; at 128 keys of
// size 8 they would take 2 % more, and at 10 keys 6 %. No bit depends on it.
inline constexpr size_t kPackedValueKeys = 256;
// Whether to pack values given as rows of floats: a kernel with groups reads only packed ones, and
// heads that are no whole vectors are spread across cache lines, which shows where many queries
// read them.
inline bool ShouldPackValues(const PackedView& values) {
  const GemmKernel& kernel = *values.kernel;
  return kernel.kr > 1 || (values.k >= kPackedValueKeys && values.n % kernel.lanes != 0);
}

// What relative embeddings add to the score of query i and key j before it is scaled: q_i k'_r +
// q'_r k_j, r = row[j - i].
struct RelativeTerms {
  // By distance, readable for all of a sequence and 15 behind; 0 or 1 more from each to the next.
  const int32_t* row;
  PackedView keys;    // k' [head_size, rows], of the kernel of the keys; without data no such term
  InputRows queries;  // q' [rows], rows of A of head_size; without data no such term
  const RelativeKernels* kernels;
};

// One head's work. Everything lives as long as the call.
struct AttentionHead {
  PackedView keys;
  PackedView values;  // without data v is read; needed where kr > 1
  const SoftmaxKernels* softmax;
  ConstRows q;  // [queries], of head_size
  ConstRows v;  // [keys], of value_size, readable to whole vectors
  Rows out;     // of value_size, the first one that of query out_query
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
  const RelativeTerms* relative = nullptr;  // or null
};

// Floats of scratch for Attend; a multiple of 16, monotone in every size. head_size: 0 if the
// kernel reads rows of floats as they are. relative: of heads with RelativeTerms.
size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked, size_t head_size = 0,
                              bool relative = false);

// Queries [begin, end): any range gives the same bits as a part of any other. `scratch` is aligned
// to 64 bytes.
void Attend(const AttentionHead& head, size_t begin, size_t end, float* scratch);

// True if the mask hides or adds anything but by causality. With one of its matrices,
// Attend's scratch has to be `masked`.
inline bool HasMatrix(const AttentionMask& mask) {
  return !mask.blocked.empty() || !mask.additive.empty();
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ATTENTION_H_
