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

// Floats in the widest vector: rows of scratch are whole vectors for every target.
constexpr size_t kMaxLanes = 16;

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
  size_t rows;        // of scores at a time
  Rows scores;        // [rows]
  Rows sums;          // [kQueryBlock]: sum of p v so far; only with several tiles of keys
  Rows additive;      // [rows], only with a mask
  PackedLhs queries;  // [kQueryBlock], if the kernel does not read floats
  // These two only with relative embeddings.
  Rows relative;    // [kQueryBlock]: the term of keys
  float* products;  // of embeddings with queries or keys
};

// Keys whose products with embeddings are made at a time, as few as still suit a kernel's tile: 64
// queries have 95 distances to 32 keys, and each key is multiplied with an embedding of each. Of 64
// keys these would be 127. No bit depends on it.
constexpr size_t kRelativeKeys = 32;

// Distances from `queries` to `keys` neighbours.
constexpr size_t Distances(size_t queries, size_t keys) { return queries + keys - 1; }

// Floats in a row of products of queries and embeddings, for a tile of so many keys: there are no
// more embeddings than distances, and columns begin and end at whole vectors.
size_t RelativeRowFloats(size_t keys) {
  return RoundUp(Distances(kQueryBlock, std::clamp<size_t>(keys, 1, kKeyTile)), kMaxLanes) +
         2 * kMaxLanes;
}

// Floats of a row of A of so many elements, of any type: whole vectors.
size_t PackedLhsFloats(size_t elements) { return RoundUp(elements, kMaxLanes); }

// Rows of A in memory of so many floats each.
PackedLhs PackedIn(Rows memory) {
  return {reinterpret_cast<std::byte*>(memory.data), memory.ld * sizeof(float), nullptr};
}

// For a walk along so many keys.
Scratch LayOut(const AttentionHead& head, size_t keys, float* memory) {
  Scratch s{};
  s.scores = {memory, ScoreRowFloats(keys)};
  s.rows = ScoreRows(s.scores.ld);
  s.sums = {s.scores.row(s.rows), RoundUp(head.values.n, kMaxLanes)};
  s.additive = {s.sums.row(keys > kKeyTile ? kQueryBlock : 0), s.scores.ld};
  const size_t masks = HasMatrix(head.mask) ? RoundUp(s.rows * s.scores.ld, kMaxLanes) : 0;
  s.queries = PackedIn({s.additive.data + masks, PackedLhsFloats(head.keys.k)});
  if (head.relative == nullptr) return s;
  const bool packs_lhs = head.keys.kernel->pack_lhs != nullptr;
  float* const behind =
      s.additive.data + masks + (packs_lhs ? kQueryBlock * PackedLhsFloats(head.keys.k) : 0);
  s.relative = {behind, s.scores.ld};
  s.products = s.relative.row(kQueryBlock);
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
  KeyRange range{0, head.keys.n};
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

// How far positions (null for 0, 1, 2 ...) rise by one from each to the next, within [begin, end).
size_t EndOfRun(const size_t* positions, size_t begin, size_t end) {
  if (positions == nullptr || begin == end) return end;
  size_t i = begin + 1;
  while (i < end && positions[i] == positions[i - 1] + 1) ++i;
  return i;
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
    const ConstRows q = head.q.From(begin);
    if (head.keys.kernel->pack_lhs == nullptr) {
      q_ = InputRows::Of(q);
      return;
    }
    head.keys.kernel->pack_lhs({.in = q, .rows = rows_, .k = head.keys.k, .out = scratch_.queries});
    q_ = InputRows::Of(scratch_.queries);
  }

  void Run() {
    const EvenSplit groups{rows_, DivCeil(rows_, scratch_.rows)};
    for (size_t begin = keys_.begin; begin < keys_.end; begin += kKeyTile) {
      const size_t end = std::min(begin + kKeyTile, keys_.end);
      MultiplyRelativeQueries(begin, end);
      for (size_t g = 0; g < groups.parts; ++g) {
        Advance(groups.begin(g), groups.begin(g + 1), begin, end);
      }
    }
    for (size_t r = 0; r < rows_; ++r) {
      // A query that sees nothing; whatever the values were.
      if (l_[r] == 0.0f) std::fill_n(Out(r), head_.values.n, 0.0f);
    }
    if (head_.weights.empty()) return;
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t j = 0; j < keys_.begin; ++j) head_.weights(first_ + r, j) = 0.0f;
      for (size_t j = keys_.end; j < head_.keys.n; ++j) head_.weights(first_ + r, j) = 0.0f;
    }
    for (size_t begin = keys_.begin; begin < keys_.end; begin += kKeyTile) {
      const size_t end = std::min(begin + kKeyTile, keys_.end);
      MultiplyRelativeQueries(begin, end);
      for (size_t g = 0; g < groups.parts; ++g) {
        StoreWeights(groups.begin(g), groups.begin(g + 1), begin, end);
      }
    }
  }

 private:
  float* Out(size_t row) const { return head_.out.row(first_ + row - head_.out_query); }

  // Scores of rows [row, row_end) and keys [begin, end), not scaled, with what hides some of them.
  ScoreTile Score(size_t row, size_t row_end, size_t begin, size_t end) {
    const Rows scores = scratch_.scores;
    if (head_.relative != nullptr) AddRelative(row, row_end, begin, end);
    MultiplyColumns(head_.keys, q_.From(row), row_end - row, begin, end,
                    head_.relative != nullptr ? ConstRows(scores) : ConstRows{kZeroRow, 0}, scores);
    ScoreTile tile{};
    tile.scores = scratch_.scores.data;
    tile.ld_scores = scratch_.scores.ld;
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
    const size_t query_end = first_ + row_end;
    if (head_.distance_bias == nullptr && !blocked && mask.additive.stride(1) == 1 &&
        EndOfRun(head_.key_positions, begin, end) == end &&
        EndOfRun(head_.query_positions, first_ + row, query_end) == query_end) {
      tile->additive = &mask.additive(PositionOf(head_.query_positions, first_ + row),
                                      PositionOf(head_.key_positions, begin));
      tile->ld_additive = mask.additive.stride(0);
      return;
    }
    for (size_t r = row; r < row_end; ++r) {
      float* out = scratch_.additive.row(r - row);
      for (size_t key = begin, next; key < end; key = next) {
        next = EndOfRun(head_.key_positions, key, end);
        GatherRun(first_ + r, key, next - key, out + (key - begin));
      }
    }
    tile->additive = scratch_.additive.data;
    tile->ld_additive = static_cast<ptrdiff_t>(scratch_.additive.ld);
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
  void GatherRun(size_t query, size_t begin, size_t count, float* out) const {
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

  // Takes rows [row, row_end) past keys [begin, end): the sums of p v so far, or at the last key
  // the output.
  void Advance(size_t row, size_t row_end, size_t begin, size_t end) {
    const ScoreTile tile = Score(row, row_end, begin, end);
    head_.softmax->tile(tile, m_ + row, l_ + row, factor_);
    const bool last = end == keys_.end;
    if (last) {
      for (size_t r = row; r < row_end; ++r) inverse_[r - row] = 1.0f / l_[r];
    }
    InputRows weights = InputRows::Of(scratch_.scores);
    if (const auto pack_lhs = head_.keys.kernel->pack_lhs; pack_lhs != nullptr) {  // in place
      const PackedLhs lhs = PackedIn(scratch_.scores);
      pack_lhs({.in = scratch_.scores, .rows = row_end - row, .k = end - begin, .out = lhs});
      weights = InputRows::Of(lhs);
    }
    MultiplyValues(weights, row, row_end, begin, end, last);
  }

  // The row of relative embeddings that query first_ + r and the key have.
  int32_t RelativeRow(size_t r, size_t key) const {
    return head_.relative->row[Distance(first_ + r, key)];
  }

  // The term of keys and relative embeddings, of all queries and of keys [begin, end). A row of the
  // product belongs to an embedding, a column to a key.
  void MultiplyRelativeQueries(size_t begin, size_t end) {
    if (head_.relative == nullptr || head_.relative->queries.data == nullptr) return;
    const Rows products{scratch_.products, kRelativeKeys};
    for (size_t key = begin, next; key < end; key = next) {
      next = std::min(key + kRelativeKeys, end);
      const int32_t low = RelativeRow(rows_ - 1, key);
      const int32_t high = RelativeRow(0, next - 1);
      MultiplyColumns(head_.keys, head_.relative->queries.From(static_cast<size_t>(low)),
                      static_cast<size_t>(high - low) + 1, key, next, {kZeroRow, 0}, products);
      head_.relative->kernels->of_keys({.products = products.data,
                                        .ld_products = products.ld,
                                        .index = head_.relative->row + Distance(first_, key),
                                        .low = low,
                                        .add = nullptr,
                                        .ld_add = 0,
                                        .out = scratch_.relative.data + (key - begin),
                                        .ld_out = scratch_.relative.ld,
                                        .rows = rows_,
                                        .cols = next - key});
    }
  }

  // The scores of rows [row, row_end) and keys [begin, end) become what relative embeddings add:
  // the term of queries and embeddings, a row of whose product belongs to a query, and a column to
  // an embedding; and that of keys.
  void AddRelative(size_t row, size_t row_end, size_t begin, size_t end) {
    const RelativeTerms& terms = *head_.relative;
    const bool of_keys = terms.queries.data != nullptr;
    if (terms.keys.data == nullptr) {
      for (size_t r = row; r < row_end; ++r) {
        std::copy_n(scratch_.relative.row(r), end - begin, scratch_.scores.row(r - row));
      }
      return;
    }
    const Rows products{scratch_.products, RelativeRowFloats(keys_.end - keys_.begin)};
    const size_t lanes = terms.keys.kernel->lanes;
    const size_t first = static_cast<size_t>(RelativeRow(row_end - 1, begin)) / lanes * lanes;
    MultiplyColumns(terms.keys, q_.From(row), row_end - row, first,
                    static_cast<size_t>(RelativeRow(row, end - 1)) + 1, {kZeroRow, 0}, products);
    terms.kernels->of_queries({.products = products.data,
                               .ld_products = products.ld,
                               .index = terms.row + Distance(first_ + row, begin),
                               .low = static_cast<int32_t>(first),
                               .add = of_keys ? scratch_.relative.row(row) : nullptr,
                               .ld_add = scratch_.relative.ld,
                               .out = scratch_.scores.data,
                               .ld_out = scratch_.scores.ld,
                               .rows = row_end - row,
                               .cols = end - begin});
  }

  // The two products, in tiles of their own: heads of short sequences are so little work that
  // whatever else a general product does would show. This one: columns [begin, end) of init + a b,
  // the first one to c; begin is at a whole vector, and `init` may be c.
  static void MultiplyColumns(const PackedView& b, const InputRows& a, size_t rows, size_t begin,
                              size_t end, ConstRows init, Rows c) {
    const size_t lanes = b.kernel->lanes;
    const auto* const data = static_cast<const std::byte*>(b.data);
    GemmTile tile = PlainTile();
    tile.in.kc = b.groups();
    tile.in.ld_init = init.ld;
    tile.out.ldc = c.ld;
    size_t within = begin == 0 ? 0 : begin % b.nr();  // the panel at hand
    for (size_t col = begin; col < end;) {
      // Whole vectors: what is past the end is never read. A window may end within a panel.
      const size_t panel = col - within;
      const size_t panel_nv = b.VectorsOf(b.n - panel);
      const size_t panel_end = std::min(end, panel + panel_nv * lanes);
      const size_t nv = b.VectorsOf(panel_end - col);
      tile.in.a = a;
      tile.in.b = data + panel * b.column_bytes() + within * b.kernel->group_bytes();
      tile.in.ldb = panel_nv * lanes;
      tile.out.cols = nv * lanes;
      tile.in.init = init.ld == 0 ? init.data : init.data + (col - begin);
      for (size_t j = 0; j < nv; ++j) tile.out.c[j] = c.data + (col - begin) + j * lanes;
      b.kernel->run[nv](tile, rows);
      col += nv * lanes;
      within = 0;
    }
  }

  void MultiplyValues(const InputRows& weights, size_t row, size_t row_end, size_t begin,
                      size_t end, bool last) {
    const GemmKernel& kernel = *head_.keys.kernel;
    const PackedView& b = head_.values;
    const Rows sums = scratch_.sums.From(row);
    const Rows c = last ? Rows{Out(row), head_.out.ld} : sums;
    GemmTile tile = PlainTile();
    tile.in.kc = kernel.GroupsOf(end - begin);
    tile.out.ldc = c.ld;
    for (size_t p = 0, col = 0; col < b.n; ++p) {
      const size_t cols = b.panel_cols(p);
      const size_t nv = b.panel_nv(p);
      tile.in.a = weights;
      if (b.data != nullptr) {
        tile.in.ldb = nv * kernel.lanes;
        tile.in.b = b.panel(p) + kernel.GroupsOf(begin) * tile.in.ldb * kernel.group_bytes();
      } else {
        tile.in.b = head_.v.row(begin) + col;
        tile.in.ldb = head_.v.ld;
      }
      tile.out.cols = cols;
      tile.in.init = kZeroRow;
      if (begin != keys_.begin) {
        tile.in.init = sums.data + col;
        tile.in.ld_init = sums.ld;
        tile.in.init_scale = factor_;
      }
      tile.out.scale = last ? inverse_ : nullptr;
      for (size_t j = 0; j < nv; ++j) tile.out.c[j] = c.data + col + j * kernel.lanes;
      kernel.run[nv](tile, row_end - row);
      col += cols;
    }
  }

  // The scores once more, now that each row's final maximum and sum are known.
  void StoreWeights(size_t row, size_t row_end, size_t begin, size_t end) {
    head_.softmax->weights(Score(row, row_end, begin, end), m_ + row, l_ + row);
    for (size_t r = row; r < row_end; ++r) {
      const float* weights = scratch_.scores.row(r - row);
      for (size_t j = begin; j < end; ++j) head_.weights(first_ + r, j) = weights[j - begin];
    }
  }

  const AttentionHead& head_;
  const KeyRange keys_;
  const Scratch scratch_;
  const size_t first_;
  const size_t rows_;
  InputRows q_;           // of the block's first query
  float m_[kQueryBlock];  // the state of the online softmax: see softmax.h
  float l_[kQueryBlock];
  float factor_[kQueryBlock];  // these three of the rows at hand
  float inverse_[kQueryBlock];
  size_t visible_[kQueryBlock];
  size_t first_key_[kQueryBlock];
};

}  // namespace

size_t AttentionScratchFloats(size_t keys, size_t value_size, bool masked, size_t head_size,
                              bool relative) {
  const size_t row = ScoreRowFloats(keys);
  // The most that ScoreRows times a row can be for so many keys or fewer.
  const size_t scores = std::min(kQueryBlock * row, std::max(kScoreFloats, kRowGroup * row));
  const size_t sums = keys > kKeyTile ? kQueryBlock * RoundUp(value_size, kMaxLanes) : 0;
  // A row of products of queries has that of scores and at most kBeside floats. That is room for
  // those of keys too, [Distances(kQueryBlock, kRelativeKeys), kRelativeKeys].
  constexpr size_t kBeside = kQueryBlock + 3 * kMaxLanes;
  static_assert(kQueryBlock * (kMaxLanes + kBeside) >=
                Distances(kQueryBlock, kRelativeKeys) * kRelativeKeys);
  const size_t terms =
      relative ? kQueryBlock * row + RoundUp(scores, kMaxLanes) + kQueryBlock * kBeside : 0;
  return RoundUp(scores, kMaxLanes) * (masked ? 2 : 1) + sums +
         kQueryBlock * PackedLhsFloats(head_size) + terms;
}

void Attend(const AttentionHead& head, size_t begin, size_t end, float* scratch) {
  ENCORE_DCHECK(head.values.data != nullptr || head.values.kernel->kr == 1);
  while (begin < end) {
    const size_t next = std::min(end, begin / kQueryBlock * kQueryBlock + kQueryBlock);
    Block(head, begin, next, scratch).Run();
    begin = next;
  }
}

}  // namespace encore::internal
