// SPDX-License-Identifier: Apache-2.0
//
// Attention inside a block: the buffer of queries, keys and values, and attention over a part of
// it.

#ifndef ENCORE_ENGINE_NN_ATTENTION_STAGE_H_
#define ENCORE_ENGINE_NN_ATTENTION_STAGE_H_

#include <cstddef>

#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/ops/attention.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {

// The projections of rows [first_row, first_row + rows) of the batch, whole sequences. If head size
// is a multiple of the vector's lanes they are stored by heads, [heads + 2 kv_heads, rows, head
// size], so that every head's matrix is dense; else by rows, [rows, ld_qkv].
struct QkvBuffer {
  float* data;        // queries, keys and values
  std::byte* keys;    // packed
  std::byte* values;  // packed, those of sequences that ShouldPackValues names
  size_t first_row;
  size_t first_sequence;
  size_t rows;
};

// Some query heads [begin, end), or the key heads that these use.
struct HeadRange {
  size_t begin;
  size_t end;
};

class AttentionStage {
 public:
  // `index`: the layer's.
  AttentionStage(const Pass& pass, const PackedLayer& layer, size_t index);

  const Pass& pass() const { return pass_; }
  // The buffer of all rows.
  QkvBuffer WholeBatch() const;
  // The buffer of a task's sequences: the thread's own memory, if there is enough for all threads.
  QkvBuffer OfTask(size_t task, int thread) const;

  // Makes the projection of rows from `row` on write into the buffer.
  void SetOutput(const QkvBuffer& qkv, size_t row, GemmArgs* args) const;

  // Copies a row's queries of some heads from `q`, where all heads are side by side, into the
  // buffer. Those from column `columns` on are there already.
  void PutQueries(const QkvBuffer& qkv, size_t row, const float* q, size_t columns,
                  HeadRange heads) const;
  // Norm and rotation of rows [begin, end) of some query heads, in place.
  void PrepareQueries(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange heads) const;
  // The same for some key heads; then packs them, and their values where that pays.
  void PrepareKeys(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange kv_heads) const;

  // Attention of rows [begin, end) and some query heads, once their queries and their sequences'
  // keys are prepared. Row r goes to row r - begin of the context.
  void Run(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange heads, int thread,
           Rows context) const;

 private:
  // Rows of a head from row `row` of the batch on. Query heads are first, then key heads, then
  // value heads.
  Rows Head(const QkvBuffer& qkv, size_t head, size_t row) const;
  size_t KeyHead(size_t kv_head) const { return sizes_.heads + kv_head; }
  size_t ValueHead(size_t kv_head) const { return sizes_.heads + sizes_.kv_heads + kv_head; }
  size_t TokensOf(size_t sequence) const {
    return pass_.starts()[sequence + 1] - pass_.starts()[sequence];
  }
  PackedView KeysOf(size_t sequence) const {
    PackedView keys = keys_;
    keys.n = TokensOf(sequence);
    return keys;
  }
  PackedView ValuesOf(size_t sequence) const {
    PackedView values = values_;
    values.k = values.panel_rows = TokensOf(sequence);
    return values;
  }
  // The packed keys or values of a sequence: head h at first + h * bytes.
  struct PackedHeads {
    std::byte* first;
    size_t bytes;
    std::byte* Of(size_t kv_head) const { return first + kv_head * bytes; }
  };
  PackedHeads Keys(const QkvBuffer& qkv, size_t sequence) const;
  PackedHeads Values(const QkvBuffer& qkv, size_t sequence) const;
  // Rows of packed keys or values before a sequence's. Sequences begin at multiples of 16, with 16
  // rows of room each, so that none overlap.
  size_t PackedRowsBefore(const QkvBuffer& qkv, size_t sequence) const;
  // Bytes of `rows` packed rows, a multiple of 16, of `heads` heads.
  size_t KeyBytes(size_t rows, size_t heads) const { return heads * rows * keys_.column_bytes(); }
  size_t ValueBytes(size_t rows, size_t heads) const {
    const GemmKernel& kernel = *values_.kernel;
    return heads * kernel.GroupsOf(rows) * RoundUp(values_.n, kernel.lanes) * kernel.group_bytes();
  }
  // Norm and rotation of rows [begin, end) of one head.
  void NormAndRotate(const QkvBuffer& qkv, const PackedNorm& norm, size_t begin, size_t end,
                     size_t head) const;

  const Pass& pass_;
  const PackedLayer& layer_;
  const LayerConfig& config_;
  const LayerSizes& sizes_;
  const size_t index_;
  PackedView keys_;    // of no sequence: see KeysOf
  PackedView values_;  // of the longest one: see ValuesOf
  bool by_heads_;
  bool packs_values_;  // of some sequence
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ATTENTION_STAGE_H_
