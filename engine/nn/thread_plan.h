// SPDX-License-Identifier: Apache-2.0
//
// How a batch's sequences, rows and columns become tasks for threads. Pure functions of sizes; no
// choice here changes a bit of a result.

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

// A model's sizes for plans: the largest of its layers, and a layer's mean cost.
struct ModelSizes {
  // The configuration is checked. Allocates. reduced: products take no floats (Precision).
  explicit ModelSizes(const EncoderConfig& config, bool reduced = false);

  // Floating point operations of a layer for a sequence of so many tokens, the mean of all layers.
  double FlopsOfLayer(size_t tokens) const;

  size_t d_model;
  // The largest of any layer.
  size_t heads = 0;
  size_t q_width = 0;
  size_t kv_width = 0;
  // The most of a key's packed values: all key heads, each padded to a multiple of 16 floats. 0 if
  // they are never packed (ShouldPackValues): products take floats, head sizes are multiples of 16.
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
  // Of position_tables.h; set by PreparedEncoder.
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
  // A task computes some whole sequences; no thread waits before the block's end.
  kSequences,
  // A task computes a block of rows; all threads meet once, when every key and value is there.
  kRows,
  // Few rows: each step is cut by columns (attention by heads), with a meeting after each.
  kColumns,
};
const char* ThreadPlanKindName(ThreadPlanKind kind);

struct ThreadPlan {
  ThreadPlanKind kind;
  size_t threads;  // how many are worth having, at most those there are

  // kSequences: task i has sequences [task_starts[order[i]], task_starts[order[i] + 1]), the most
  // expensive task first.
  size_t tasks;
  const size_t* task_starts;
  const size_t* order;  // kRows: of sequences, the longest first
  size_t max_task_rows;
  size_t max_task_sequences;

  // kRows: blocks of rows, at most kMaxMc each. attention_apart: attention is a stage of its own,
  // cut by heads and blocks of queries, as sequences differ in length or the keys of one exceed a
  // cache.
  EvenSplit row_blocks;
  bool attention_apart;
  const size_t* block_starts;  // [sequences + 1]: blocks of queries before the i-th of `order`
};

// Rows of a task of kSequences, and the most of a task of kRows: a panel of weights is then used
// often while it is in L2.
inline constexpr size_t kRowsOfTask = kMaxMc;

// The fewest rows of a task of kRows: shorter blocks cost more in tiles than waiting does.
inline constexpr size_t kMinRowsOfBlock = 32;

// Block sizes when a thread is slowed by other programs. Small blocks balance better but read the
// weights more often: 16 rows, or 32 if a layer's weights exceed a quarter of L3.
inline constexpr size_t kRowsOfSmallBlock = 16;
inline constexpr size_t kRowsOfSmallBlockOfLargeLayer = 32;
// With fewer tokens short blocks cost more than they gain.
inline constexpr size_t kMinTokensOfSmallBlocks = 96;

// The most rows of all threads' blocks together, in any plan for at most so many tokens and
// threads. A plan by sequences that needs more, because the shares are uneven, is not chosen.
constexpr size_t RowsOfAllBlocks(size_t tokens, size_t threads) {
  return std::min(threads * std::min(tokens, kRowsOfTask), tokens + tokens / 4);
}

// The room that ChooseThreadPlan needs.
constexpr size_t ThreadPlanWords(size_t sequences, size_t threads) {
  return 2 * sequences + 1 + threads;
}

// seq_starts as in Batch. The plan points into `words`, which has room for ThreadPlanWords.
// uneven: threads differ in speed, so plans by rows have small blocks, and replace plans by
// sequences with few tasks.
ThreadPlan ChooseThreadPlan(const ModelSizes& model, std::span<const size_t> seq_starts,
                            size_t threads, const CacheSizes& caches, size_t* words,
                            bool uneven = false);

// In a plan kColumns: whether one task computes the projection of a thread's heads and then their
// attention, without a barrier between. The projection's panels have `panel_cols` columns.
bool HeadsTogether(const LayerSizes& layer, size_t threads, size_t panel_cols);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_THREAD_PLAN_H_
