// SPDX-License-Identifier: Apache-2.0
//
// Attention inside a block: where queries, keys and values of a run of rows lie between the first
// product and the second, and attention over any part of them. Not here: one head's arithmetic
// (engine/ops/attention.h), who does which part (encoder_block.cc).

#ifndef ENCORE_ENGINE_NN_ATTENTION_STAGE_H_
#define ENCORE_ENGINE_NN_ATTENTION_STAGE_H_

#include <cstddef>

#include "engine/nn/pass.h"
#include "engine/ops/attention.h"
#include "engine/ops/gemm.h"

namespace encore::internal {

// The projections of rows [first_row, first_row + rows) of the batch, whole sequences. If head size
// is a multiple of the vector's lanes they lie by heads, [3, heads, rows, head size], so that every
// head's matrix is dense; else by rows, [rows, ld_qkv].
struct QkvWindow {
  float* qkv;
  float* keys;  // packed
  size_t first_row;
  size_t first_sequence;
  size_t rows;
};

class AttentionStage {
 public:
  // Of layer `index`.
  AttentionStage(const Pass& pass, size_t index);

  // Where everything of all rows lies.
  QkvWindow WholeBatch() const;
  // Where a group of sequences lies that a lane takes through a block: in memory that stays the
  // lane's, if there is as much for every lane.
  QkvWindow OfGroup(size_t group, int lane) const;

  // Directs the first product's output for rows from `row` on into the window.
  void SetOutput(const QkvWindow& window, size_t row, GemmArgs* args) const;

  // Packs the keys of rows [begin, end) and heads [head, head_end).
  void PackKeys(const QkvWindow& window, size_t begin, size_t end, size_t head,
                size_t head_end) const;

  // Attention of rows [begin, end) and heads [head, head_end), whose sequences' keys have been
  // packed. Row r goes to context + (r - begin) * ld_context.
  void Run(const QkvWindow& window, size_t begin, size_t end, size_t head, size_t head_end,
           int lane, float* context, size_t ld_context) const;

 private:
  // Part 0 is q, 1 is k, 2 is v: [rows, ld()], from row `row` of the batch.
  float* Part(const QkvWindow& window, size_t part, size_t head, size_t row) const;
  size_t ld() const { return by_heads_ ? layout_.head_size : pass_.scratch_plan.ld_qkv; }
  KeyLayout LayoutOf(size_t sequence) const;
  float* Keys(const QkvWindow& window, size_t sequence, size_t head) const;

  const Pass& pass_;
  const size_t index_;
  KeyLayout layout_;  // without keys
  bool by_heads_;
  size_t value_nv_;
  float scale_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ATTENTION_STAGE_H_
