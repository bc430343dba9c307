// SPDX-License-Identifier: Apache-2.0
//
// Addresses of heads and sequences in a QkvBuffer, and loops over them.

#include "engine/nn/attention_stage.h"

#include <algorithm>

namespace encore::inline v0_1::internal {

AttentionStage::AttentionStage(const Pass& pass, const PackedLayer& layer, size_t index)
    : pass_(pass),
      layer_(layer),
      config_(pass.config->layers[index]),
      sizes_(layer.sizes),
      index_(index),
      keys_(KeyPanels(*pass.kernels->gemm, 0, sizes_.head_size)),
      values_(ValuePanels(*pass.kernels->gemm, pass.longest, sizes_.head_size)),
      by_heads_(sizes_.head_size % pass.kernels->gemm->lanes == 0),
      packs_values_(ShouldPackValues(values_)) {}

QkvBuffer AttentionStage::WholeBatch() const {
  return {.data = pass_.At(pass_.scratch_plan.qkv),
          .keys = pass_.At<std::byte>(pass_.scratch_plan.keys),
          .values = pass_.At<std::byte>(pass_.scratch_plan.values),
          .first_row = 0,
          .first_sequence = 0,
          .rows = pass_.tokens()};
}

QkvBuffer AttentionStage::OfTask(size_t task, int thread) const {
  const ThreadPlan& plan = pass_.thread_plan;
  const size_t sequence = plan.task_starts[task];
  const size_t row = pass_.starts()[sequence];
  // Rounded up, so that buffers begin at cache lines. A sequence's packed keys and values have at
  // most 15 rows more than the sequence.
  const size_t rows = RoundUp(plan.max_task_rows, 16);
  const size_t packed_rows = rows + 16 * plan.max_task_sequences;
  if (plan.threads * rows > pass_.tokens() ||
      plan.threads * packed_rows > pass_.tokens() + 16 * pass_.sequences()) {
    return WholeBatch();
  }
  const size_t at = static_cast<size_t>(thread);
  QkvBuffer qkv = WholeBatch();
  qkv.data += at * rows * pass_.scratch_plan.ld_qkv;
  qkv.keys += at * KeyBytes(packed_rows, sizes_.kv_heads);
  if (packs_values_) qkv.values += at * ValueBytes(packed_rows, sizes_.kv_heads);
  qkv.first_row = row;
  qkv.first_sequence = sequence;
  qkv.rows = rows;
  return qkv;
}

Rows AttentionStage::Head(const QkvBuffer& qkv, size_t head, size_t row) const {
  const size_t size = sizes_.head_size;
  const size_t ld = by_heads_ ? size : pass_.scratch_plan.ld_qkv;
  const size_t before = head * size * (by_heads_ ? qkv.rows : 1);
  return {qkv.data + before + (row - qkv.first_row) * ld, ld};
}

size_t AttentionStage::PackedRowsBefore(const QkvBuffer& qkv, size_t sequence) const {
  const size_t row = pass_.starts()[sequence] - qkv.first_row;
  return (row / 16 + (sequence - qkv.first_sequence)) * 16;
}

AttentionStage::PackedHeads AttentionStage::Keys(const QkvBuffer& qkv, size_t sequence) const {
  return {qkv.keys + KeyBytes(PackedRowsBefore(qkv, sequence), sizes_.kv_heads),
          KeyBytes(RoundUp(TokensOf(sequence), 16), 1)};
}

AttentionStage::PackedHeads AttentionStage::Values(const QkvBuffer& qkv, size_t sequence) const {
  return {qkv.values + ValueBytes(PackedRowsBefore(qkv, sequence), sizes_.kv_heads),
          ValueBytes(RoundUp(TokensOf(sequence), 16), 1)};
}

void AttentionStage::SetOutput(const QkvBuffer& qkv, size_t row, GemmArgs* args) const {
  args->c = Head(qkv, 0, row);
  if (by_heads_) args->blocks = {sizes_.head_size, qkv.rows * sizes_.head_size};
}

void AttentionStage::PutQueries(const QkvBuffer& qkv, size_t row, const float* q, size_t columns,
                                HeadRange heads) const {
  const size_t size = sizes_.head_size;
  for (size_t h = heads.begin; h < heads.end && h * size < columns; ++h) {
    std::copy_n(q + h * size, std::min(size, columns - h * size), Head(qkv, h, row).data);
  }
}

void AttentionStage::NormAndRotate(const QkvBuffer& qkv, const PackedNorm& norm, size_t begin,
                                   size_t end, size_t head) const {
  if (norm.given()) {
    const Rows rows = Head(qkv, head, begin);
    norm.Run(rows, {nullptr, 0}, rows, end - begin, sizes_.head_size);
  }
  if (layer_.rotary == kNoTable) return;
  const PositionTables::Rotary table =
      pass_.tables->RotaryAt(layer_.rotary, pass_.longest, pass_.tables_memory());
  const auto rotate = config_.rotary->interleaved ? pass_.kernels->rotary->interleaved
                                                  : pass_.kernels->rotary->half;
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const Rows rows = Head(qkv, head, pass_.starts()[sequence] + first);
    rotate({.x = rows.data,
            .ldx = rows.ld,
            .rows = last - first,
            .size = 2 * table.pairs,
            .cos = table.cos + first * table.pairs,
            .sin = table.sin + first * table.pairs,
            .ld_table = table.pairs});
  });
}

void AttentionStage::PrepareQueries(const QkvBuffer& qkv, size_t begin, size_t end,
                                    HeadRange heads) const {
  if (begin == end) return;
  for (size_t h = heads.begin; h < heads.end; ++h) {
    NormAndRotate(qkv, layer_.q_norm, begin, end, h);
  }
}

void AttentionStage::PrepareKeys(const QkvBuffer& qkv, size_t begin, size_t end,
                                 HeadRange kv_heads) const {
  if (begin == end) return;
  for (size_t h = kv_heads.begin; h < kv_heads.end; ++h) {
    NormAndRotate(qkv, layer_.k_norm, begin, end, KeyHead(h));
    if (!layer_.v_norm.given()) continue;
    const Rows values = Head(qkv, ValueHead(h), begin);
    layer_.v_norm.Run(values, {nullptr, 0}, values, end - begin, sizes_.head_size);
  }
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const PackedView keys = KeysOf(sequence);
    const PackedView values = ValuesOf(sequence);
    const bool packs_values = ShouldPackValues(values);
    const PackedHeads packed_keys = Keys(qkv, sequence);
    const PackedHeads packed_values = packs_values ? Values(qkv, sequence) : PackedHeads{};
    const size_t start = pass_.starts()[sequence];
    for (size_t h = kv_heads.begin; h < kv_heads.end; ++h) {
      PackKeys(keys, Head(qkv, KeyHead(h), start), first, last, packed_keys.Of(h));
      if (!packs_values) continue;
      PackValues(values, Head(qkv, ValueHead(h), start), first, last, packed_values.Of(h));
    }
  });
}

void AttentionStage::Run(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange heads,
                         int thread, Rows context) const {
  float* scratch = pass_.At(pass_.scratch_plan.attention) +
                   static_cast<size_t>(thread) * pass_.scratch_plan.attention_floats;
  // What all sequences and heads share is set once: it costs time beside short sequences.
  AttentionHead work{};
  work.softmax = pass_.kernels->softmax;
  work.scale = static_cast<float>(config_.attention_scale);
  work.window = config_.window.value_or(kNoWindow);
  work.mask = pass_.batch->mask;
  work.mask.causal = work.mask.causal || config_.causal;
  RelativeTerms relative{};
  const PackedRelative& embeddings = layer_.relative;
  if (embeddings.table != kNoTable) {
    relative.row = pass_.tables->RelativeAt(embeddings.table, pass_.longest, pass_.tables_memory());
    relative.keys = embeddings.keys;
    relative.kernels = pass_.kernels->relative;
    work.relative = &relative;
  }
  const ConstView& additive = pass_.batch->mask.additive;
  const bool mask_by_heads = additive.rank() == 3;
  const size_t group = sizes_.group();
  pass_.ForSequences(begin, end, [&](size_t sequence, size_t first, size_t last) {
    const size_t start = pass_.starts()[sequence];
    work.keys = KeysOf(sequence);
    work.values = ValuesOf(sequence);
    const bool packs_values = ShouldPackValues(work.values);
    const PackedHeads packed_keys = Keys(qkv, sequence);
    const PackedHeads packed_values = packs_values ? Values(qkv, sequence) : PackedHeads{};
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
      const size_t kv_head = group == 1 ? h : h / group;
      work.q = Head(qkv, h, start);
      work.keys.data = packed_keys.Of(kv_head);
      if (packs_values) {
        work.values.data = packed_values.Of(kv_head);
      } else {
        work.v = Head(qkv, ValueHead(kv_head), start);
      }
      if (mask_by_heads) work.mask.additive = additive[h];
      if (layer_.distance_bias != kNoTable) {
        work.distance_bias =
            pass_.tables->BiasAt(layer_.distance_bias, h, pass_.longest, pass_.tables_memory());
      }
      if (embeddings.key_data != nullptr) {
        relative.keys.data = embeddings.key_data + kv_head * embeddings.key_bytes();
      }
      if (embeddings.queries.data != nullptr) {
        relative.queries = InputRows::Of(embeddings.queries.From(h * embeddings.rows));
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
