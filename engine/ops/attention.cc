// SPDX-License-Identifier: Apache-2.0
//
// A block of queries on its way along the keys of one head: products by the micro-kernels of
// gemm_kernel.h, exponentials by softmax.h, masks in plain C++.

#include "engine/ops/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/kernels/softmax.h"
#include "engine/ops/gemm.h"

namespace encore::internal {
namespace {

constexpr size_t kMaxLanes =
    16;  // floats in the widest vector: rows of scratch are whole vectors for every target
constexpr GemmBlocking kTileBlocking{kQueryBlock, kKeyTile};
static_assert(kQueryBlock <= kMaxMc);

// The parts of the scratch; sizes must agree with AttentionScratchFloats.
struct Scratch {
  size_t ld_scores;
  size_t ld_sums;
  float* scores;    // [kQueryBlock, ld_scores]
  float* additive;  // [kQueryBlock, ld_scores], only with a mask
  float* sums;      // [kQueryBlock, ld_sums]: sum of p v so far
  float* queries;   // [kQueryBlock, head_size], only where q's rows are not contiguous
};

Scratch LayOut(const AttentionHead& head, float* memory) {
  Scratch s{};
  s.ld_scores = RoundUp(std::min(head.packed.keys, kKeyTile), kMaxLanes);
  s.ld_sums = RoundUp(head.packed.value_size, kMaxLanes);
  s.scores = memory;
  s.sums = s.scores + kQueryBlock * s.ld_scores;
  s.queries = s.sums + kQueryBlock * s.ld_sums;
  s.additive = s.queries + kQueryBlock * RoundUp(head.packed.head_size, kMaxLanes);
  return s;
}

// One block of queries on its way along the keys.
class Block {
 public:
  Block(const AttentionHead& head, size_t first, float* memory)
      : head_(head),
        scratch_(LayOut(head, memory)),
        first_(first),
        rows_(std::min(kQueryBlock, head.q.dim(0) - first)),
        // Under a causal mask no query of the block sees a key past the block's last row.
        keys_(head.mask->causal ? std::min(head.packed.keys, first + kQueryBlock)
                                : head.packed.keys) {
    if (head.q.stride(1) == 1 && head.q.stride(0) >= 0) {
      queries_ = &head.q(first, 0);
      ld_queries_ = static_cast<size_t>(head.q.stride(0));
    } else {
      CopyQueries();
    }
    std::fill_n(m_, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(l_, rows_, 0.0f);
  }

  void Run() {
    for (size_t begin = 0; begin < keys_; begin += kKeyTile)
      Attend(begin, std::min(begin + kKeyTile, keys_));
    StoreOutput();
    if (!head_.weights.empty()) StoreWeights();
  }

 private:
  void CopyQueries() {
    const size_t size = head_.packed.head_size;
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < size; ++c) scratch_.queries[r * size + c] = head_.q(first_ + r, c);
    }
    queries_ = scratch_.queries;
    ld_queries_ = size;
  }

  // Scores of keys [begin, end), not scaled, with what hides some of them.
  ScoreTile Score(size_t begin, size_t end) {
    GemmArgs args{};
    args.a = queries_;
    args.lda = ld_queries_;
    args.b = head_.packed.keys_view(begin, end);
    args.c = scratch_.scores;
    args.ldc = scratch_.ld_scores;
    GemmBlock(args, kTileBlocking, 0, rows_, 0, args.b.panels());

    ScoreTile tile{};
    tile.scores = scratch_.scores;
    tile.ld_scores = scratch_.ld_scores;
    tile.rows = rows_;
    tile.cols = end - begin;
    tile.scale = head_.scale;
    if (HasMatrix(*head_.mask)) {
      GatherMask(begin, end);
      tile.additive = scratch_.additive;
      tile.ld_additive = scratch_.ld_scores;
    }
    if (head_.mask->causal) {
      for (size_t r = 0; r < rows_; ++r) {
        const size_t seen = first_ + r + 1;  // keys 0 .. seen - 1
        visible_[r] = seen <= begin ? 0 : std::min(seen, end) - begin;
      }
      tile.visible = visible_;
    }
    return tile;
  }

  void GatherMask(size_t begin, size_t end) {
    const AttentionMask& mask = *head_.mask;
    for (size_t r = 0; r < rows_; ++r) {
      const size_t query =
          head_.query_positions != nullptr ? head_.query_positions[first_ + r] : first_ + r;
      float* row = scratch_.additive + r * scratch_.ld_scores;
      for (size_t j = begin; j < end; ++j) {
        const size_t key = head_.key_positions != nullptr ? head_.key_positions[j] : j;
        float add = mask.additive.empty() ? 0.0f : mask.additive(query, key);
        if (!mask.blocked.empty() && mask.blocked(query, key))
          add = -std::numeric_limits<float>::infinity();
        row[j - begin] = add;
      }
    }
  }

  void Attend(size_t begin, size_t end) {
    const ScoreTile tile = Score(begin, end);
    head_.softmax->tile(tile, m_, l_, factor_);
    GemmArgs args{};
    args.a = scratch_.scores;
    args.lda = scratch_.ld_scores;
    args.b = head_.packed.values_view(begin, end);
    args.c = scratch_.sums;
    args.ldc = scratch_.ld_sums;
    if (begin != 0) {
      RescaleSums();
      args.init = scratch_.sums;
      args.ld_init = scratch_.ld_sums;
    }
    GemmBlock(args, kTileBlocking, 0, rows_, 0, args.b.panels());
  }

  void RescaleSums() {
    for (size_t r = 0; r < rows_; ++r) {
      if (factor_[r] == 1.0f) continue;  // multiplying would change no bit
      float* sums = scratch_.sums + r * scratch_.ld_sums;
      for (size_t c = 0; c < head_.packed.value_size; ++c) sums[c] *= factor_[r];
    }
  }

  void StoreOutput() {
    for (size_t r = 0; r < rows_; ++r) {
      const float* sums = scratch_.sums + r * scratch_.ld_sums;
      const bool sees_nothing = l_[r] == 0.0f;
      const float inverse = sees_nothing ? 0.0f : 1.0f / l_[r];
      float* out = &head_.out(first_ + r, 0);
      const ptrdiff_t step = head_.out.stride(1);
      if (sees_nothing) {
        for (size_t c = 0; c < head_.packed.value_size; ++c)
          out[static_cast<ptrdiff_t>(c) * step] = 0.0f;
      } else if (step == 1) {
        for (size_t c = 0; c < head_.packed.value_size; ++c) out[c] = sums[c] * inverse;
      } else {
        for (size_t c = 0; c < head_.packed.value_size; ++c)
          out[static_cast<ptrdiff_t>(c) * step] = sums[c] * inverse;
      }
    }
  }

  // The scores once more, now that each row's final maximum and sum are known.
  void StoreWeights() {
    for (size_t begin = 0; begin < keys_; begin += kKeyTile) {
      const size_t end = std::min(begin + kKeyTile, keys_);
      head_.softmax->weights(Score(begin, end), m_, l_);
      for (size_t r = 0; r < rows_; ++r) {
        for (size_t j = begin; j < end; ++j) {
          head_.weights(first_ + r, j) = scratch_.scores[r * scratch_.ld_scores + (j - begin)];
        }
      }
    }
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t j = keys_; j < head_.packed.keys; ++j) head_.weights(first_ + r, j) = 0.0f;
    }
  }

  const AttentionHead& head_;
  const Scratch scratch_;
  const size_t first_;
  const size_t rows_;
  const size_t keys_;
  const float* queries_;
  size_t ld_queries_;
  float m_[kQueryBlock];       // the largest score so far
  float l_[kQueryBlock];       // sum of e^(score - m) so far
  float factor_[kQueryBlock];  // what m's last change makes of older sums
  size_t visible_[kQueryBlock];
};

}  // namespace

PackedView PackedHead::keys_view(size_t begin, size_t end) const {
  PackedView view;
  view.kernel = kernel;
  view.k = head_size;
  view.panel_rows = head_size;
  view.n = end - begin;
  view.nv = ChooseAlignedPanelVectors(*kernel, kQueryBlock);
  if (packed_keys != nullptr) view.data = packed_keys + begin * head_size;
  return view;
}

PackedView PackedHead::values_view(size_t begin, size_t end) const {
  PackedView view;
  view.kernel = kernel;
  view.k = end - begin;
  view.panel_rows = std::min(kKeyTile, keys - begin);
  view.n = value_size;
  view.nv = ChoosePanelVectors(*kernel, value_size);
  view.data = packed_values + begin * RoundUp(value_size, kernel->lanes);
  return view;
}

void PackHead(const PackedHead& head, ConstView keys, ConstView values, float* packed_keys,
              float* packed_values) {
  PackInto(head.keys_view(0, head.keys), keys.data(), keys.stride(1), keys.stride(0), packed_keys);
  for (size_t begin = 0; begin < head.keys; begin += kKeyTile) {
    const PackedView view = head.values_view(begin, std::min(begin + kKeyTile, head.keys));
    PackInto(view, &values(begin, 0), values.stride(0), values.stride(1),
             packed_values + (view.data - head.packed_values));
  }
}

size_t AttentionScratchFloats(size_t keys, size_t head_size, size_t value_size, bool masked) {
  const size_t scores = RoundUp(std::min(keys, kKeyTile), kMaxLanes);
  return kQueryBlock * (scores * (masked ? 2 : 1) + RoundUp(value_size, kMaxLanes) +
                        RoundUp(head_size, kMaxLanes));
}

void AttendBlock(const AttentionHead& head, size_t block, float* scratch) {
  Block(head, block * kQueryBlock, scratch).Run();
}

}  // namespace encore::internal
