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

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "encore/ops.h"
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

  size_t key_bytes() const { return kernel->GroupsOf(head_size) * kernel->group_bytes(); }
  // Monotone in both sizes.
  size_t bytes() const { return RoundUp(keys, kernel->lanes) * key_bytes(); }
  // Packs keys [begin, end) of k, rows of head_size. Several threads may pack different keys of one
  // head.
  void Pack(ConstRows k, size_t begin, size_t end, void* packed) const;
  // Packs all of them, of any strides.
  void Pack(ConstView k, void* packed) const;
};

// From so many keys on, packing values whose size is no multiple of the vector takes less time than
// it saves: 729 keys of size 72 take 3 % less of attention's layer, of size 14 10 %; at 128 keys of
// size 8 they would take 2 % more, and at 10 keys 6 %. No bit depends on it.
inline constexpr size_t kPackedValueKeys = 256;

// The values of one head as the right-hand side of P V: panels of nv vectors of columns, each
// [groups of keys, nr, kr]; the last one as wide as whole vectors need, zeros past value_size and
// past the keys.
struct ValueLayout {
  ValueLayout() = default;
  ValueLayout(const GemmKernel& gemm, size_t num_keys, size_t size)
      : kernel(&gemm), keys(num_keys), value_size(size), nv(ChoosePanelVectors(gemm, size)) {
    const size_t vectors = DivCeil(size, gemm.lanes);
    last_nv = vectors % nv == 0 ? nv : vectors % nv;
  }

  const GemmKernel* kernel = nullptr;
  size_t keys = 0;
  size_t value_size = 0;
  size_t nv = 0;       // vectors of columns in a panel
  size_t last_nv = 0;  // and in the last one

  // Whether to pack values that lie in rows of floats: a kernel with groups can read no others, and
  // heads that are no whole vectors lie apart and across cache lines, which shows where many
  // queries read them.
  bool ShouldPack() const {
    return kernel->kr > 1 || (keys >= kPackedValueKeys && value_size % kernel->lanes != 0);
  }
  // A group of keys with all columns, in all panels together.
  size_t group_bytes() const { return RoundUp(value_size, kernel->lanes) * kernel->group_bytes(); }
  // Monotone in both sizes.
  size_t bytes() const { return kernel->GroupsOf(keys) * group_bytes(); }

  // Of the panel that begins at column `col`: its columns without padding, its vectors, and where
  // the groups from key `begin` on lie, a multiple of kr.
  size_t PanelCols(size_t col) const { return std::min(nv * kernel->lanes, value_size - col); }
  size_t PanelVectors(size_t col) const {
    return value_size - col > nv * kernel->lanes ? nv : last_nv;
  }
  size_t PanelOffset(size_t col, size_t begin) const {
    const size_t width = PanelVectors(col) * kernel->lanes;
    return (kernel->GroupsOf(keys) * col + kernel->GroupsOf(begin) * width) * kernel->group_bytes();
  }

  // Packs values of keys [begin, end) of v, rows of value_size. Several threads may pack different
  // keys of one head.
  void Pack(ConstRows v, size_t begin, size_t end, void* packed) const {
    PackRows(v.row(begin), static_cast<ptrdiff_t>(v.ld), 1, begin, end, packed);
  }
  // Packs all of them, of any strides.
  void Pack(ConstView v, void* packed) const {
    PackRows(v.data(), v.stride(0), v.stride(1), 0, keys, packed);
  }

 private:
  // `v` is the value of key `begin`.
  void PackRows(const float* v, ptrdiff_t stride_key, ptrdiff_t stride_col, size_t begin,
                size_t end, void* packed) const;
  // Whole groups, or up to the last key.
  void PackGroups(const float* v, ptrdiff_t stride_key, ptrdiff_t stride_col, size_t begin,
                  size_t end, void* packed) const;
  // One key of a bf16 pair, whose other one another thread may be packing.
  void PackOne(const float* v, ptrdiff_t stride_col, size_t key, void* packed) const;
};

// One head's work. Everything lives as long as the call.
struct AttentionHead {
  KeyLayout layout;
  const SoftmaxKernels* softmax;
  ConstRows q;  // [queries], of head_size
  const void* packed_keys;
  ValueLayout values;
  const void* packed_values;  // or null, then v is read; needed where kr > 1
  ConstRows v;                // [keys], of value_size, readable to whole vectors
  Rows out;                   // of value_size, the first one that of query out_query
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

// Floats of scratch for Attend; a multiple of 16, monotone in every size. head_size: 0 if the
// kernel takes rows of floats as they are.
size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked, size_t head_size = 0);

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
