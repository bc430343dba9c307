// SPDX-License-Identifier: Apache-2.0
//
// The layout of the workspace of a forward pass: a pure function of sizes.

#ifndef ENCORE_ENGINE_NN_SCRATCH_PLAN_H_
#define ENCORE_ENGINE_NN_SCRATCH_PLAN_H_

#include <cstddef>

#include "encore/status.h"
#include "engine/nn/thread_plan.h"

namespace encore::inline v0_1::internal {

// Offsets in bytes from the start of the workspace, multiples of 64. There is room for any thread
// plan, any lengths of the sequences, and as many threads as the largest stage has tasks: further
// threads get none (Team::ForEach). Elements are f32 unless stated.
struct ScratchPlan {
  size_t ld_model;  // of rows, in floats
  size_t ld_context;
  size_t ld_qkv;
  size_t ld_ff;
  size_t ld_routes;
  size_t ld_per_layer_input;
  size_t lhs_stride;  // in bytes

  size_t qkv;      // [tokens, ld_qkv], or by heads: see QkvBuffer
  size_t keys;     // packed keys: [(tokens + 16 sequences) * kv_width]
  size_t values;   // packed values: [(tokens + 16 sequences) * packed_value_bytes], or nothing
                   // where products take floats and no sequence is long enough
  size_t context;  // attention's output: [tokens, ld_context] or [block_rows, ld_context]
  size_t mid;      // [block_rows, ld_model]: a sum before its norm
  size_t normed;   // [block_rows, ld_model]
  size_t hidden;   // [block_rows expert_rows, ld_ff]: the activations of the feed-forward network
  size_t lhs;      // [block_rows expert_rows, lhs_stride]: packed left-hand sides of products that
                   // take no floats
  size_t quants;   // [block_rows expert_rows] RowQuant, of int8 rows
  size_t per_layer_input;  // [block_rows, ld_per_layer_input], where layers have layer_input
  size_t encoder_input;    // [tokens, ld_model], where ModelSizes::keeps_encoder_input
  size_t routes;           // [block_rows, ld_routes], where layers have experts: see experts.h
  size_t expert;           // [block_rows expert_rows, ld_model], likewise
  size_t attention;        // [threads with attention to do, attention_floats]
  size_t attention_floats;
  size_t positions;  // the tables of position_tables.h, for the longest sequence
  size_t words;      // size_t [ThreadPlanWords]

  size_t block_rows;   // RowsOfAllBlocks: those of all threads; in a plan by columns all tokens
  size_t expert_rows;  // of ModelSizes
  size_t bytes;        // of everything

  // `longest`: tokens of the longest sequence, or a bound of it. Monotone in tokens, sequences,
  // longest and threads. kInvalidArgument if a size overflows.
  static Result<ScratchPlan> Create(const ModelSizes& model, size_t tokens, size_t sequences,
                                    size_t longest, size_t threads);
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_SCRATCH_PLAN_H_
