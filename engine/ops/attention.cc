// SPDX-License-Identifier: Apache-2.0
//
// A block of queries on its way along the keys of one head: products by the micro-kernels of
// gemm_kernel.h, exponentials by softmax.h, masks in plain C++.

#include "engine/ops/attention.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "engine/base/check.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

constexpr size_t kMaxLanes =
    16;  // floats in the widest vector: rows of scratch are whole vectors for every target

// Rows of scores at a time: their tile is written once and read three times, by softmax and the
// second product, and should stay in L1 beside a panel of keys. A multiple of twelve suits the
// tiles of every target (12, 6, 4 rows). No bit depends on it.
constexpr size_t kScoreFloats = 6144;  // half of 48 KiB, the most of 32 KiB
constexpr size_t kRowGroup = 12;

// A row of scores of so many keys in memory. Long rows are not a multiple of a page apart.
size_t ScoreRowFloats(size_t keys) {
  const size_t tile = RoundUp(std::clamp<size_t>(keys, 1, kKeyTile), kMaxLanes);
  return tile >= 128 ? tile + kMaxLanes : tile;
}

size_t ScoreRows(size_t row_floats) {
  if (row_floats * kQueryBlock <= kScoreFloats) return kQueryBlock;
  return std::clamp(kScoreFloats / row_floats / kRowGroup * kRowGroup, kRowGroup, kQueryBlock);
}

// The parts of the scratch; sizes must agree with AttentionScratchFloats.
struct Scratch {
  size_t ld_scores;
  size_t ld_sums;
  size_t rows;      // of scores at a time
  float* scores;    // [rows, ld_scores]
  float* sums;      // [kQueryBlock, ld_sums]: sum of p v so far; only with several tiles of keys
  float* additive;  // [rows, ld_scores], only with a mask
  void* queries;    // [kQueryBlock, ld_queries] of the kernel's A, if it does not take floats
  size_t ld_queries;
};

// What rows of A of so many elements take for each, whatever the element: whole vectors.
size_t MadeRowFloats(size_t elements) { return RoundUp(elements, kMaxLanes); }

// For a walk along so many keys.
Scratch LayOut(const AttentionHead& head, size_t keys, float* memory) {
  Scratch s{};
  s.ld_scores = ScoreRowFloats(keys);
  s.ld_sums = RoundUp(head.values.value_size, kMaxLanes);
  s.rows = ScoreRows(s.ld_scores);
  s.scores = memory;
  s.sums = s.scores + s.rows * s.ld_scores;
  s.additive = s.sums + (keys > kKeyTile ? kQueryBlock * s.ld_sums : 0);
  const size_t masks = HasMatrix(head.mask) ? RoundUp(s.rows * s.ld_scores, kMaxLanes) : 0;
  s.queries = s.additive + masks;
  const GemmKernel& kernel = *head.layout.kernel;
  s.ld_queries = MadeRowFloats(head.layout.head_size) * sizeof(float) / kernel.a_bytes;
  return s;
}

// The keys that some query of the block that begins with query `block` may see: all between these
// two, of which the first is a multiple of kQueryBlock.
struct KeyRange {
  size_t begin;
  size_t end;
};

KeyRange KeysOfBlock(const AttentionHead& head, size_t block) {
  const size_t next = block + kQueryBlock;
  KeyRange range{0, head.layout.keys};
  if (head.mask.causal) range.end = std::min(range.end, next);
  if (head.window != kNoWindow) {
    if (block > head.window) {
      range.begin = (block - head.window) / kQueryBlock * kQueryBlock;
    }
    if (head.window < range.end) range.end = std::min(range.end, next + head.window);
    range.begin = std::min(range.begin, range.end);
  }
  return range;
}

// Whether positions (null for 0, 1, 2 ...) rise by one from each of [begin, end) to the next.
bool AreConsecutive(const size_t* positions, size_t begin, size_t end) {
  if (positions == nullptr) return true;
  for (size_t i = begin + 1; i < end; ++i) {
    if (positions[i] != positions[i - 1] + 1) return false;
  }
  return true;
}

size_t PositionOf(const size_t* positions, size_t i) {
  return positions != nullptr ? positions[i] : i;
}

// Some queries of one block of kQueryBlock on their way along the keys.
class Block {
 public:
  Block(const AttentionHead& head, size_t begin, size_t end, float* memory)
      : head_(head),
        keys_(KeysOfBlock(head, begin / kQueryBlock * kQueryBlock)),
        scratch_(LayOut(head, keys_.end - keys_.begin, memory)),
        first_(begin),
        rows_(end - begin) {
    std::fill_n(m_, rows_, kMinusInf);
    std::fill_n(l_, rows_, 0.0f);
    const GemmKernel& kernel = *head.layout.kernel;
    const float* q = head.q + begin * head.ld_q;
    if (kernel.make_rows == nullptr) {
      q_ = q;
      ld_q_ = head.ld_q;
      return;
    }
    kernel.make_rows({.in = q,
                      .ld_in = head.ld_q,
                      .rows = rows_,
                      .k = head.layout.head_size,
                      .out = scratch_.queries,
                      .ld_out = scratch_.ld_queries});
    q_ = scratch_.queries;
    ld_q_ = scratch_.ld_queries;
  }

  void Run() {
    const EvenSplit groups{rows_, DivCeil(rows_, scratch_.rows)};
    for (size_t begin = keys_.begin; begin < keys_.end; begin += kKeyTile) {
      const size_t end = std::min(begin + kKeyTile, keys_.end);
      for (size_t g = 0; g < groups.parts; ++g) {
        Advance(groups.begin(g), groups.begin(g + 1), begin, end);
      }
    }
    for (size_t r = 0; r < rows_; ++r) {
      // A query that sees nothing; whatever the values were.
      if (l_[r] == 0.0f) std::fill_n(Out(r), head_.values.value_size, 0.0f);
    }
    if (head_.weights.empty()) return;
    for (size_t g = 0; g < groups.parts; ++g) StoreWeights(groups.begin(g), groups.begin(g + 1));
  }

 private:
  float* Out(size_t row) const {
    return head_.out + (first_ + row - head_.out_query) * head_.ld_out;
  }

  // Scores of rows [row, row_end) and keys [begin, end), not scaled, with what hides some of them.
  ScoreTile Score(size_t row, size_t row_end, size_t begin, size_t end) {
    MultiplyKeys(row, row_end, begin, end);
    ScoreTile tile{};
    tile.scores = scratch_.scores;
    tile.ld_scores = scratch_.ld_scores;
    tile.rows = row_end - row;
    tile.cols = end - begin;
    tile.whole_vectors = true;
    tile.scale = head_.scale;
    AddMask(row, row_end, begin, end, &tile);
    LimitKeys(row, row_end, begin, end, &tile);
    return tile;
  }

  // What each query sees of keys [begin, end), by its place alone.
  void LimitKeys(size_t row, size_t row_end, size_t begin, size_t end, ScoreTile* tile) {
    const size_t window = head_.window;
    if (!head_.mask.causal && window == kNoWindow) return;
    for (size_t r = row; r < row_end; ++r) {
      const size_t query = first_ + r;
      // Keys first .. last, counted from the sequence's start.
      const size_t first = query > window ? query - window : 0;
      size_t seen = query + 1;  // the last one and one more
      if (!head_.mask.causal) seen = window < end ? seen + window : end;
      first_key_[r - row] = first <= begin ? 0 : std::min(first, end) - begin;
      visible_[r - row] = seen <= begin ? 0 : std::min(seen, end) - begin;
    }
    tile->visible = visible_;
    if (window != kNoWindow) tile->first = first_key_;
  }

  // Names what is added to the scores: the caller's memory as it is, if it can be walked along.
  void AddMask(size_t row, size_t row_end, size_t begin, size_t end, ScoreTile* tile) {
    const AttentionMask& mask = head_.mask;
    const bool additive = !mask.additive.empty();
    const bool blocked = !mask.blocked.empty();
    if (head_.distance_bias != nullptr && !additive && !blocked) {
      tile->additive = head_.distance_bias + Distance(first_ + row, begin);
      tile->ld_additive = -1;
      return;
    }
    if (!additive && !blocked) return;
    const bool consecutive_keys = AreConsecutive(head_.key_positions, begin, end);
    if (head_.distance_bias == nullptr && !blocked && consecutive_keys &&
        mask.additive.stride(1) == 1 &&
        AreConsecutive(head_.query_positions, first_ + row, first_ + row_end)) {
      tile->additive = &mask.additive(PositionOf(head_.query_positions, first_ + row),
                                      PositionOf(head_.key_positions, begin));
      tile->ld_additive = mask.additive.stride(0);
      return;
    }
    for (size_t r = row; r < row_end; ++r) {
      float* out = scratch_.additive + (r - row) * scratch_.ld_scores;
      if (consecutive_keys) {
        GatherRow(first_ + r, begin, end - begin, out);
      } else {
        GatherPositions(first_ + r, begin, end - begin, out);
      }
    }
    tile->additive = scratch_.additive;
    tile->ld_additive = static_cast<ptrdiff_t>(scratch_.ld_scores);
  }

  static ptrdiff_t Distance(size_t query, size_t key) {
    return static_cast<ptrdiff_t>(key) - static_cast<ptrdiff_t>(query);
  }

  // out = -inf where hidden. By bits, because g++ 12 makes no vectors of a selection by a bool, and
  // takes five times as long.
  static void HideKeys(const bool* hidden, size_t count, float* out) {
    constexpr uint32_t kMinusInfBits = std::bit_cast<uint32_t>(kMinusInf);
    const uint8_t* flags = reinterpret_cast<const uint8_t*>(hidden);
    for (size_t j = 0; j < count; ++j) {
      const uint32_t mask = 0u - uint32_t{flags[j]};
      const uint32_t kept = std::bit_cast<uint32_t>(out[j]) & ~mask;
      out[j] = std::bit_cast<float>(kept | (kMinusInfBits & mask));
    }
  }

  // What is added to the scores of a query and `count` keys from `begin` on, whose columns of the
  // mask follow each other. Loops of their own where rows are dense, which compilers make vectors
  // of.
  void GatherRow(size_t query, size_t begin, size_t count, float* out) const {
    const AttentionMask& mask = head_.mask;
    const size_t mask_row = PositionOf(head_.query_positions, query);
    const size_t column = PositionOf(head_.key_positions, begin);
    if (mask.additive.empty()) {
      std::fill_n(out, count, 0.0f);
    } else {
      const float* from = &mask.additive(mask_row, column);
      const ptrdiff_t stride = mask.additive.stride(1);
      if (stride == 1) {
        std::copy_n(from, count, out);
      } else {
        for (size_t j = 0; j < count; ++j) out[j] = from[static_cast<ptrdiff_t>(j) * stride];
      }
    }
    if (head_.distance_bias != nullptr) {
      const float* bias = head_.distance_bias + Distance(query, begin);
      for (size_t j = 0; j < count; ++j) out[j] += bias[j];
    }
    if (!mask.blocked.empty()) {
      const bool* hidden = &mask.blocked(mask_row, column);
      const ptrdiff_t stride = mask.blocked.stride(1);
      if (stride == 1) {
        HideKeys(hidden, count, out);
      } else {
        for (size_t j = 0; j < count; ++j) {
          if (hidden[static_cast<ptrdiff_t>(j) * stride]) out[j] = kMinusInf;
        }
      }
    }
  }

  // The same for columns in any order.
  void GatherPositions(size_t query, size_t begin, size_t count, float* out) const {
    const AttentionMask& mask = head_.mask;
    const size_t mask_row = PositionOf(head_.query_positions, query);
    const size_t* columns = head_.key_positions + begin;
    for (size_t j = 0; j < count; ++j) {
      float add = mask.additive.empty() ? 0.0f : mask.additive(mask_row, columns[j]);
      if (head_.distance_bias != nullptr) add += head_.distance_bias[Distance(query, begin + j)];
      if (!mask.blocked.empty() && mask.blocked(mask_row, columns[j])) add = kMinusInf;
      out[j] = add;
    }
  }

  // Takes rows [row, row_end) past keys [begin, end): the sums of p v so far, or at the last key
  // the output.
  void Advance(size_t row, size_t row_end, size_t begin, size_t end) {
    const ScoreTile tile = Score(row, row_end, begin, end);
    head_.softmax->tile(tile, m_ + row, l_ + row, factor_);
    const bool last = end == keys_.end;
    if (last) {
      for (size_t r = row; r < row_end; ++r) inverse_[r - row] = 1.0f / l_[r];
    }
    const GemmKernel& kernel = *head_.layout.kernel;
    if (kernel.make_rows != nullptr) {  // in place
      kernel.make_rows({.in = scratch_.scores,
                        .ld_in = scratch_.ld_scores,
                        .rows = row_end - row,
                        .k = end - begin,
                        .out = scratch_.scores,
                        .ld_out = ld_weights()});
    }
    MultiplyValues(row, row_end, begin, end, last);
  }

  // Elements of A from one row of scores to the next.
  size_t ld_weights() const {
    return scratch_.ld_scores * sizeof(float) / head_.layout.kernel->a_bytes;
  }

  // The two products, in tiles of their own: heads of short sequences are so little work that
  // whatever else a general product does would show.
  void MultiplyKeys(size_t row, size_t row_end, size_t begin, size_t end) {
    const KeyLayout& layout = head_.layout;
    const size_t lanes = layout.kernel->lanes;
    const size_t key_bytes = layout.key_bytes();
    const std::byte* keys = static_cast<const std::byte*>(head_.packed_keys) + begin * key_bytes;
    GemmTile tile = EmptyTile();
    tile.lda = ld_q_;
    tile.kc = layout.kernel->GroupsOf(layout.head_size);
    tile.ldc = scratch_.ld_scores;
    for (size_t col = 0; col < end - begin;) {
      // Whole vectors: what lies past the end is never looked at. A window may end within a panel.
      const size_t panel_nv = std::min(layout.nv, DivCeil(layout.keys - begin - col, lanes));
      const size_t nv = std::min(panel_nv, DivCeil(end - begin - col, lanes));
      tile.a = static_cast<const std::byte*>(q_) + row * ld_q_ * layout.kernel->a_bytes;
      tile.b = keys + col * key_bytes;
      tile.ldb = panel_nv * lanes;
      tile.cols = nv * lanes;
      tile.init = kZeroRow;
      for (size_t j = 0; j < nv; ++j) tile.c[j] = scratch_.scores + col + j * lanes;
      RunTiles(*layout.kernel, nv, row_end - row, tile);
      col += nv * lanes;
    }
  }

  void MultiplyValues(size_t row, size_t row_end, size_t begin, size_t end, bool last) {
    const GemmKernel& kernel = *head_.layout.kernel;
    const ValueLayout& layout = head_.values;
    const std::byte* packed = static_cast<const std::byte*>(head_.packed_values);
    float* c = last ? Out(row) : scratch_.sums + row * scratch_.ld_sums;
    GemmTile tile = EmptyTile();
    tile.lda = ld_weights();
    tile.kc = kernel.GroupsOf(end - begin);
    tile.ldc = last ? head_.ld_out : scratch_.ld_sums;
    for (size_t col = 0; col < layout.value_size;) {
      const size_t cols = layout.PanelCols(col);
      const size_t nv = layout.PanelVectors(col);
      tile.a = scratch_.scores;
      if (packed != nullptr) {
        tile.b = packed + layout.PanelOffset(col, begin);
        tile.ldb = nv * kernel.lanes;
      } else {
        tile.b = head_.v + begin * head_.ld_v + col;
        tile.ldb = head_.ld_v;
      }
      tile.cols = cols;
      tile.init = kZeroRow;
      if (begin != keys_.begin) {
        tile.init = scratch_.sums + row * scratch_.ld_sums + col;
        tile.ld_init = scratch_.ld_sums;
        tile.init_scale = factor_;
      }
      tile.scale = last ? inverse_ : nullptr;
      for (size_t j = 0; j < nv; ++j) tile.c[j] = c + col + j * kernel.lanes;
      RunTiles(kernel, nv, row_end - row, tile);
      col += cols;
    }
  }

  static GemmTile EmptyTile() {
    GemmTile tile;
    tile.ld_init = 0;
    tile.row_quant = nullptr;
    tile.col_scale = nullptr;
    tile.init_scale = nullptr;
    tile.scale = nullptr;
    tile.residual = nullptr;
    tile.ld_residual = 0;
    tile.relu = false;
    tile.prefetch = reinterpret_cast<const char*>(kZeroRow);
    tile.prefetch_step = 0;
    return tile;
  }

  // The scores once more, now that each row's final maximum and sum are known.
  void StoreWeights(size_t row, size_t row_end) {
    for (size_t begin = keys_.begin; begin < keys_.end; begin += kKeyTile) {
      const size_t end = std::min(begin + kKeyTile, keys_.end);
      head_.softmax->weights(Score(row, row_end, begin, end), m_ + row, l_ + row);
      for (size_t r = row; r < row_end; ++r) {
        const float* weights = scratch_.scores + (r - row) * scratch_.ld_scores;
        for (size_t j = begin; j < end; ++j) head_.weights(first_ + r, j) = weights[j - begin];
      }
    }
    for (size_t r = row; r < row_end; ++r) {
      for (size_t j = 0; j < keys_.begin; ++j) head_.weights(first_ + r, j) = 0.0f;
      for (size_t j = keys_.end; j < head_.layout.keys; ++j) head_.weights(first_ + r, j) = 0.0f;
    }
  }

  const AttentionHead& head_;
  const KeyRange keys_;
  const Scratch scratch_;
  const size_t first_;
  const size_t rows_;
  const void* q_;  // of the block's first query, elements of the kernel's A
  size_t ld_q_;
  float m_[kQueryBlock];  // the state of the online softmax: see softmax.h
  float l_[kQueryBlock];
  float factor_[kQueryBlock];  // these three of the rows at hand
  float inverse_[kQueryBlock];
  size_t visible_[kQueryBlock];
  size_t first_key_[kQueryBlock];
};

}  // namespace

size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked, size_t head_size) {
  const size_t row = ScoreRowFloats(keys);
  // The most that ScoreRows times a row can be for so many keys or fewer.
  const size_t scores = std::min(kQueryBlock * row, std::max(kScoreFloats, kRowGroup * row));
  const size_t sums = keys > kKeyTile ? kQueryBlock * RoundUp(value_size, kMaxLanes) : 0;
  return RoundUp(scores, kMaxLanes) * (masked ? 2 : 1) + sums +
         kQueryBlock * MadeRowFloats(head_size);
}

void Attend(const AttentionHead& head, size_t begin, size_t end, float* scratch) {
  ENCORE_DCHECK(head.packed_values != nullptr || head.values.kernel->kr == 1);
  while (begin < end) {
    const size_t next = std::min(end, begin / kQueryBlock * kQueryBlock + kQueryBlock);
    Block(head, begin, next, scratch).Run();
    begin = next;
  }
}

}  // namespace encore::internal
