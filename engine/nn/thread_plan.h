// SPDX-License-Identifier: Apache-2.0
//
// Who does what in a forward pass: how a batch's sequences, rows and columns become tasks for the
// threads there are. Pure functions of sizes; no choice made here changes a bit of a result.

#ifndef ENCORE_ENGINE_NN_THREAD_PLAN_H_
#define ENCORE_ENGINE_NN_THREAD_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "engine/nn/layer_sizes.h"
#include "engine/ops/gemm_blocking.h"

namespace encore::inline v0_1::internal {

// What plans need to know of a whole model: the largest sizes of its layers, and what a layer costs
// on average.
struct ModelSizes {
  // Of a checked configuration. Allocates. reduced: products take no floats (Precision).
  explicit ModelSizes(const EncoderConfig& config, bool reduced = false);

  // Floating point operations of a layer for a sequence of so many tokens, the mean of all layers.
  double FlopsOfLayer(size_t tokens) const;

  size_t d_model;
  // The largest of any layer.
  size_t heads = 0;
  size_t q_width = 0;
  size_t kv_width = 0;
  // Of a key's packed values, at the most: all key heads, each padded to a multiple of 16 floats. 0
  // if no layer's are ever packed (ShouldPackValues): products take floats and head sizes
  // are multiples of 16.
  size_t packed_value_bytes = 0;
  bool packs_lhs = false;    // attention's products take no floats
  size_t lhs_row_bytes = 0;  // of the longest row that is made for a product; 0: none is
  size_t qkv_width = 0;
  size_t head_size = 0;
  size_t d_ff = 0;             // or what layer_input or a convolution keeps in its place, if larger
  size_t per_layer_input = 0;  // width
  bool keeps_encoder_input = false;  // some layer reads the encoder's input
  size_t experts = 0;                // num_experts
  size_t expert_rows = 1;            // rows of all experts for a row of the layer: top_k, or 1
  bool relative = false;             // some layer has relative embeddings
  size_t global_kv_width = 0;        // of the layers without a window; 0 if all have one
  // Of position_tables.h: 0 until somebody sets them.
  size_t floats_per_position = 0;
  size_t floats_beside = 0;

 private:
  // Layers that cost the same.
  struct Kind {
    LayerCost cost;
    double count;
  };
  std::vector<Kind> kinds_;
  double num_layers_;
};

enum class ThreadPlanKind {
  // A task takes some whole sequences through the whole block; nobody waits for anybody before its
  // end.
  kSequences,
  // A task takes a block of rows; all meet once, when every key and value is there.
  kRows,
  // Few rows: each step is cut by columns (attention by heads), and all meet after each.
  kColumns,
};
const char* ThreadPlanKindName(ThreadPlanKind kind);

struct ThreadPlan {
  ThreadPlanKind kind;
  size_t threads;  // how many are worth having, at most those there are

  // kSequences: task i takes sequences [task_starts[order[i]], task_starts[order[i] + 1]); the
  // most expensive come first.
  size_t tasks;
  const size_t* task_starts;
  const size_t* order;  // kRows: of sequences, the longest first
  size_t max_task_rows;
  size_t max_task_sequences;

  // kRows: blocks of rows, at most kMaxMc each. Where the keys of a sequence are more than a cache
  // holds, or sequences differ in length, attention is a stage of its own, cut by heads and blocks
  // of queries; else it is a part of the rows' task.
  EvenSplit row_blocks;
  bool attention_apart;
  const size_t* block_starts;  // [sequences + 1]: blocks of queries before the i-th of `order`
};

// Rows of a task of kSequences, and the most of one of kRows: enough for a panel of weights to be
// used often while it is in L2.
inline constexpr size_t kRowsOfTask = kMaxMc;

// The fewest of one of kRows: with less, tiles lose more to short blocks than stages lose to
// waiting.
inline constexpr size_t kMinRowsOfBlock = 32;

// Where threads are of unequal speed: with fewer rows each panel of weights is read for less work,
// with more the others wait longer for the last block. The latter where a layer's weights are more
// than a quarter of the last cache.
inline constexpr size_t kRowsOfSmallBlock = 16;
inline constexpr size_t kRowsOfSmallBlockOfLargeLayer = 32;
// Fewer tokens lose more to short blocks than they gain.
inline constexpr size_t kMinTokensOfSmallBlocks = 96;

// The rows that the blocks of all threads have together in any plan for so many tokens and threads
// or fewer: where there are less than kRowsOfTask for each, little more than the tokens. A plan by
// sequences that would need more, because the shares are uneven, is not chosen.
constexpr size_t RowsOfAllBlocks(size_t tokens, size_t threads) {
  return std::min(threads * std::min(tokens, kRowsOfTask), tokens + tokens / 4);
}

// Room that ChooseThreadPlan needs for so many sequences and threads.
constexpr size_t ThreadPlanWords(size_t sequences, size_t threads) {
  return 2 * sequences + 1 + threads;
}

// seq_starts as in Batch. `words`: room for ThreadPlanWords, to which the plan then points.
// uneven: threads are of unequal speed, so that plans by rows have small blocks, and come in the
// place of those by sequences with few tasks.
ThreadPlan ChooseThreadPlan(const ModelSizes& model, std::span<const size_t> seq_starts,
                            size_t threads, const CacheSizes& caches, size_t* words,
                            bool uneven = false);

// In a plan kColumns: whether the heads' columns of a layer's first product, whose panels have
// `panel_cols` columns, and their attention are one task. Else all meet in between.
bool HeadsTogether(const LayerSizes& layer, size_t threads, size_t panel_cols);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_THREAD_PLAN_H_
