// SPDX-License-Identifier: Apache-2.0
//
// Addresses of heads and sequences in a window, and the loops over them.

#include "engine/nn/attention_stage.h"

#include <algorithm>

namespace encore::inline v0_1::internal {
namespace {

// Of sequences of so many tokens.
bool ShouldPack(ValueLayout values, size_t tokens) {
  values.keys = tokens;
  return values.ShouldPack();
}

}  // namespace

AttentionStage::AttentionStage(const Pass& pass, const PackedLayer& layer, size_t index)
    : pass_(pass),
      layer_(layer),
      config_(pass.config->layers[index]),
      sizes_(layer.sizes),
      index_(index),
      key_layout_(*pass.kernels->gemm, 0, sizes_.head_size),
      value_layout_(*pass.kernels->gemm, 0, sizes_.head_size),
      by_heads_(sizes_.head_size % pass.kernels->gemm->lanes == 0),
      packs_values_(ShouldPack(value_layout_, pass.longest)) {}

QkvWindow AttentionStage::WholeBatch() const {
  return {.qkv = pass_.At(pass_.scratch_plan.qkv),
          .keys = pass_.At<std::byte>(pass_.scratch_plan.keys),
          .values = pass_.At<std::byte>(pass_.scratch_plan.values),
          .first_row = 0,
          .first_sequence = 0,
          .rows = pass_.tokens()};
}

QkvWindow AttentionStage::OfGroup(size_t group, int thread) const {
  const ThreadPlan& plan = pass_.thread_plan;
  const size_t sequence = plan.group_starts[group];
  const size_t row = pass_.starts()[sequence];
  // Rounded up, so that windows begin at multiples of a line; packed keys and values of a sequence
  // take at most 15 rows more than it has.
  const size_t rows = RoundUp(plan.max_group_rows, 16);
  const size_t packed_rows = rows + 16 * plan.max_group_sequences;
  if (plan.threads * rows > pass_.tokens() ||
      plan.threads * packed_rows > pass_.tokens() + 16 * pass_.sequences()) {
    return WholeBatch();  // where all rows have a place of their own
  }
  const size_t at = static_cast<size_t>(thread);
  QkvWindow window = WholeBatch();
  window.qkv += at * rows * pass_.scratch_plan.ld_qkv;
  window.keys += at * KeyBytes(packed_rows, sizes_.kv_heads);
  if (packs_values_) window.values += at * ValueBytes(packed_rows, sizes_.kv_heads);
  window.first_row = row;
  window.first_sequence = sequence;
  window.rows = rows;
  return window;
}

Rows AttentionStage::Head(const QkvWindow& window, size_t head, size_t row) const {
  const size_t size = sizes_.head_size;
  const size_t ld = by_heads_ ? size : pass_.scratch_plan.ld_qkv;
  const size_t before = head * size * (by_heads_ ? window.rows : 1);
  return {window.qkv + before + (row - window.first_row) * ld, ld};
}

KeyLayout AttentionStage::KeysOf(size_t sequence) const {
  KeyLayout layout = key_layout_;
  layout.keys = TokensOf(sequence);
  return layout;
}

ValueLayout AttentionStage::ValuesOf(size_t sequence) const {
  ValueLayout layout = value_layout_;
  layout.keys = TokensOf(sequence);
  return layout;
}

size_t AttentionStage::PackedRowsBefore(const QkvWindow& window, size_t sequence) const {
  const size_t row = pass_.starts()[sequence] - window.first_row;
  return (row / 16 + (sequence - window.first_sequence)) * 16;
}

std::byte* AttentionStage::Keys(const QkvWindow& window, size_t sequence, size_t kv_head) const {
  return window.keys + KeyBytes(PackedRowsBefore(window, sequence), sizes_.kv_heads) +
         KeyBytes(RoundUp(TokensOf(sequence), 16), kv_head);
}

std::byte* AttentionStage::Values(const QkvWindow& window, size_t sequence, size_t kv_head) const {
  return window.values + ValueBytes(PackedRowsBefore(window, sequence), sizes_.kv_heads) +
         ValueBytes(RoundUp(TokensOf(sequence), 16), kv_head);
}

void AttentionStage::SetOutput(const QkvWindow& window, size_t row, GemmArgs* args) const {
  args->c = Head(window, 0, row);
  if (by_heads_) args->groups = {sizes_.head_size, window.rows * sizes_.head_size};
}

void AttentionStage::PutQueries(const QkvWindow& window, size_t row, const float* q, size_t columns,
                                HeadRange heads) const {
  const size_t size = sizes_.head_size;
  for (size_t h = heads.begin; h < heads.end && h * size < columns; ++h) {
    std::copy_n(q + h * size, std::min(size, columns - h * size), Head(window, h, row).data);
  }
}

void AttentionStage::NormAndRotate(const QkvWindow& window, const PackedNorm& norm, size_t begin,
                                   size_t end, size_t head) const {
  if (norm.given()) {
    const Rows rows = Head(window, head, begin);
    norm.Run(rows.data, rows.ld, nullptr, 0, rows.data, rows.ld, end - begin, sizes_.head_size);
  }
  if (layer_.rotary == kNoTable) return;
  const PositionTables::Rotary table =
      pass_.tables->RotaryAt(layer_.rotary, pass_.longest, pass_.tables_memory());
  const auto rotate = config_.rotary->interleaved ? pass_.kernels->rotary->interleaved
                                                  : pass_.kernels->rotary->half;
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const Rows rows = Head(window, head, pass_.starts()[sequence] + first);
    rotate({.x = rows.data,
            .ldx = rows.ld,
            .rows = last - first,
            .size = 2 * table.pairs,
            .cos = table.cos + first * table.pairs,
            .sin = table.sin + first * table.pairs,
            .ld_table = table.pairs});
  });
}

void AttentionStage::PrepareQueries(const QkvWindow& window, size_t begin, size_t end,
                                    HeadRange heads) const {
  if (begin == end) return;
  for (size_t h = heads.begin; h < heads.end; ++h) {
    NormAndRotate(window, layer_.q_norm, begin, end, h);
  }
}

void AttentionStage::PrepareKeys(const QkvWindow& window, size_t begin, size_t end,
                                 HeadRange kv_heads) const {
  if (begin == end) return;
  for (size_t h = kv_heads.begin; h < kv_heads.end; ++h) {
    NormAndRotate(window, layer_.k_norm, begin, end, KeyHead(h));
  }
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const KeyLayout keys = KeysOf(sequence);
    const ValueLayout values = ValuesOf(sequence);
    const bool packs_values = values.ShouldPack();
    const size_t start = pass_.starts()[sequence];
    for (size_t h = kv_heads.begin; h < kv_heads.end; ++h) {
      keys.Pack(Head(window, KeyHead(h), start), first, last, Keys(window, sequence, h));
      if (!packs_values) continue;
      values.Pack(Head(window, ValueHead(h), start), first, last, Values(window, sequence, h));
    }
  });
}

void AttentionStage::Run(const QkvWindow& window, size_t begin, size_t end, HeadRange heads,
                         int thread, Rows context) const {
  float* scratch = pass_.At(pass_.scratch_plan.attention) +
                   static_cast<size_t>(thread) * pass_.scratch_plan.attention_floats;
  // What all sequences and heads share, once: it shows beside heads of short sequences.
  AttentionHead work{};
  work.softmax = pass_.kernels->softmax;
  work.scale = static_cast<float>(config_.attention_scale);
  work.window = config_.window.value_or(kNoWindow);
  work.mask = pass_.batch->mask;
  work.mask.causal = work.mask.causal || config_.causal;
  const ConstView& additive = pass_.batch->mask.additive;
  const bool mask_by_heads = additive.rank() == 3;
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const size_t start = pass_.starts()[sequence];
    work.layout = KeysOf(sequence);
    work.values = ValuesOf(sequence);
    const bool packs_values = work.values.ShouldPack();
    if (!pass_.batch->positions.empty()) {
      work.query_positions = pass_.batch->positions.data() + start;
      work.key_positions = work.query_positions;
    }
    const MutableView* tap = nullptr;
    if (!pass_.taps->attention.empty()) {
      tap = &pass_.taps->attention[index_ * pass_.sequences() + sequence];
      if (tap->empty()) tap = nullptr;
    }
    for (size_t h = heads.begin; h < heads.end; ++h) {
      const size_t kv_head = h / sizes_.group();
      work.q = Head(window, h, start);
      work.packed_keys = Keys(window, sequence, kv_head);
      if (packs_values) {
        work.packed_values = Values(window, sequence, kv_head);
      } else {
        work.packed_values = nullptr;
        work.v = Head(window, ValueHead(kv_head), start);
      }
      if (mask_by_heads) work.mask.additive = additive[h];
      if (layer_.distance_bias != kNoTable) {
        work.distance_bias =
            pass_.tables->BiasAt(layer_.distance_bias, h, pass_.longest, pass_.tables_memory());
      }
      // Queries are counted from the sequence's start, the context's rows from `begin`.
      work.out = context.From(start + first - begin);
      work.out.data += h * sizes_.head_size;
      work.out_query = first;
      if (tap != nullptr) {
        work.weights = (*tap)[h];
      } else if (!work.weights.empty()) {
        work.weights = {};
      }
      Attend(work, first, last, scratch);
    }
  });
}

}  // namespace encore::internal
