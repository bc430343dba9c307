// SPDX-License-Identifier: Apache-2.0
//
// Attention inside a block: where queries, keys and values of a run of rows lie between the first
// product and the second, and attention over any part of them.

#ifndef ENCORE_ENGINE_NN_ATTENTION_STAGE_H_
#define ENCORE_ENGINE_NN_ATTENTION_STAGE_H_

#include <cstddef>

#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/ops/attention.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {

// The projections of rows [first_row, first_row + rows) of the batch, whole sequences. If head size
// is a multiple of the vector's lanes they lie by heads, [heads + 2 kv_heads, rows, head size], so
// that every head's matrix is dense; else by rows, [rows, ld_qkv].
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
  // Of layer `index`.
  AttentionStage(const Pass& pass, const PackedLayer& layer, size_t index);

  const Pass& pass() const { return pass_; }
  // Where everything of all rows lies.
  QkvBuffer WholeBatch() const;
  // Where the sequences of a task lie that a thread takes through a block: in memory that stays the
  // thread's, if there is as much for every thread.
  QkvBuffer OfTask(size_t task, int thread) const;

  // Directs the first product's output for rows from `row` on into the buffer.
  void SetOutput(const QkvBuffer& qkv, size_t row, GemmArgs* args) const;

  // Puts the queries of a row into the buffer, of some heads: columns of `q`, where all heads lie
  // side by side. Those from column `columns` on are there already.
  void PutQueries(const QkvBuffer& qkv, size_t row, const float* q, size_t columns,
                  HeadRange heads) const;
  // Rows [begin, end) of some query heads: norm and rotation, in place.
  void PrepareQueries(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange heads) const;
  // The same of some key heads, which are then packed, and their values where that pays.
  void PrepareKeys(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange kv_heads) const;

  // Attention of rows [begin, end) and some query heads, whose queries and whose sequences' keys
  // have been prepared. Row r goes to row r - begin of the context.
  void Run(const QkvBuffer& qkv, size_t begin, size_t end, HeadRange heads, int thread,
           Rows context) const;

 private:
  // Of q, k or v: from row `row` of the batch on. Query heads come first, then key heads, then
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
  // Where those of a sequence's heads are packed: head h at first + h * bytes.
  struct PackedHeads {
    std::byte* first;
    size_t bytes;
    std::byte* Of(size_t kv_head) const { return first + kv_head * bytes; }
  };
  PackedHeads Keys(const QkvBuffer& qkv, size_t sequence) const;
  PackedHeads Values(const QkvBuffer& qkv, size_t sequence) const;
  // Rows of packed keys or values before a sequence's: sequences begin at multiples of 16, each
  // with 16 more than those before it have, so that none meet.
  size_t PackedRowsBefore(const QkvBuffer& qkv, size_t sequence) const;
  // Bytes of so many packed rows, a multiple of 16, of so many heads.
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
