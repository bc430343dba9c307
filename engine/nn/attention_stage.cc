// SPDX-License-Identifier: Apache-2.0
//
// Addresses of heads and sequences in a window, and the loops over them.

#include "engine/nn/attention_stage.h"

#include <algorithm>
#include <cmath>

namespace encore::internal {

AttentionStage::AttentionStage(const Pass& pass, size_t index)
    : pass_(pass),
      index_(index),
      layout_(*pass.kernels->gemm, 0, pass.config->d_model / pass.config->num_heads),
      by_heads_(layout_.head_size % layout_.kernel->lanes == 0),
      value_nv_(ChoosePanelVectors(*layout_.kernel, layout_.head_size)),
      scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(layout_.head_size)))) {}

QkvWindow AttentionStage::WholeBatch() const {
  return {pass_.scratch + pass_.scratch_plan.qkv, pass_.scratch + pass_.scratch_plan.keys, 0, 0,
          pass_.tokens()};
}

QkvWindow AttentionStage::OfGroup(size_t group, int lane) const {
  const ThreadPlan& plan = pass_.thread_plan;
  const size_t sequence = plan.group_starts[group];
  const size_t row = pass_.starts()[sequence];
  // Rounded up, so that windows begin at multiples of a line; the keys of a sequence take at most
  // 15 rows more than it has.
  const size_t rows = RoundUp(plan.max_group_rows, 16);
  const size_t key_rows = rows + 16 * plan.max_group_sequences;
  if (plan.lanes * rows > pass_.tokens() ||
      plan.lanes * key_rows > pass_.tokens() + 16 * pass_.sequences()) {
    return WholeBatch();  // where all rows have a place of their own
  }
  const size_t at = static_cast<size_t>(lane);
  QkvWindow window = WholeBatch();
  window.qkv += at * rows * pass_.scratch_plan.ld_qkv;
  window.keys += at * key_rows * pass_.config->d_model;
  window.first_row = row;
  window.first_sequence = sequence;
  window.rows = rows;
  return window;
}

float* AttentionStage::Part(const QkvWindow& window, size_t part, size_t head, size_t row) const {
  const size_t size = layout_.head_size;
  const size_t r = row - window.first_row;
  if (by_heads_) {
    return window.qkv + ((part * pass_.config->num_heads + head) * window.rows + r) * size;
  }
  return window.qkv + r * pass_.scratch_plan.ld_qkv + part * pass_.config->d_model + head * size;
}

KeyLayout AttentionStage::LayoutOf(size_t sequence) const {
  KeyLayout layout = layout_;
  layout.keys = pass_.starts()[sequence + 1] - pass_.starts()[sequence];
  return layout;
}

float* AttentionStage::Keys(const QkvWindow& window, size_t sequence, size_t head) const {
  // Sequences begin at multiples of 16 keys, each with 16 more than those before it have, so that
  // none meet.
  const size_t row = pass_.starts()[sequence] - window.first_row;
  const size_t start = (row / 16 + (sequence - window.first_sequence)) * 16;
  const size_t keys = pass_.starts()[sequence + 1] - pass_.starts()[sequence];
  return window.keys + start * pass_.config->d_model + head * RoundUp(keys, 16) * layout_.head_size;
}

void AttentionStage::SetOutput(const QkvWindow& window, size_t row, GemmArgs* args) const {
  args->c = Part(window, 0, 0, row);
  args->ldc = ld();
  if (by_heads_) args->groups = {layout_.head_size, window.rows * layout_.head_size};
}

void AttentionStage::PackKeys(const QkvWindow& window, size_t begin, size_t end, size_t head,
                              size_t head_end) const {
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const KeyLayout layout = LayoutOf(sequence);
    const size_t start = pass_.starts()[sequence];
    for (size_t h = head; h < head_end; ++h) {
      layout.Pack(Part(window, 1, h, start), ld(), first, last, Keys(window, sequence, h));
    }
  });
}

void AttentionStage::Run(const QkvWindow& window, size_t begin, size_t end, size_t head,
                         size_t head_end, int lane, float* context, size_t ld_context) const {
  float* scratch = pass_.scratch + pass_.scratch_plan.attention +
                   static_cast<size_t>(lane) * pass_.scratch_plan.attention_floats;
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const size_t start = pass_.starts()[sequence];
    AttentionHead work{};
    work.layout = LayoutOf(sequence);
    work.softmax = pass_.kernels->softmax;
    work.ld_q = ld();
    work.ld_v = ld();
    work.value_size = layout_.head_size;
    work.value_nv = value_nv_;
    work.ld_out = ld_context;
    work.scale = scale_;
    work.mask = pass_.batch->mask;
    if (!pass_.batch->positions.empty()) {
      work.query_positions = pass_.batch->positions.data() + start;
      work.key_positions = work.query_positions;
    }
    const MutableView* tap = nullptr;
    if (!pass_.taps->attention.empty()) {
      tap = &pass_.taps->attention[index_ * pass_.sequences() + sequence];
      if (tap->empty()) tap = nullptr;
    }
    for (size_t h = head; h < head_end; ++h) {
      work.q = Part(window, 0, h, start);
      work.packed_keys = Keys(window, sequence, h);
      work.v = Part(window, 2, h, start);
      // Queries are counted from the sequence's start, the context's rows from `begin`.
      work.out = context + (start + first - begin) * ld_context + h * layout_.head_size;
      work.out_query = first;
      if (tap != nullptr) work.weights = (*tap)[h];
      Attend(work, first, last, scratch);
    }
  });
}

}  // namespace encore::internal
