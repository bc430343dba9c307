// SPDX-License-Identifier: Apache-2.0
//
// Where each intermediate of a forward pass lies in the workspace, and how rows are cut into
// blocks: pure functions of sizes. Not here: the pass itself (encoder_block.h).

#ifndef ENCORE_ENGINE_NN_SCRATCH_PLAN_H_
#define ENCORE_ENGINE_NN_SCRATCH_PLAN_H_

#include <cstddef>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/ops/gemm_blocking.h"

namespace encore::internal {

// How token rows become tasks. By rows: a task takes a block of rows through all steps that need no
// other rows, and nobody waits in between. Else (few rows for the lanes there are) each step is cut
// by rows and columns.
struct RowPlan {
  bool by_rows;
  EvenSplit blocks;  // of rows, at most kMaxMc each; only if by_rows
};
RowPlan ChooseRowPlan(size_t tokens, size_t lanes);

// Offsets are in floats from the start of the workspace and multiples of 16 (64 bytes). Keys and
// values have room for any lengths that the sequences may have.
struct ScratchPlan {
  size_t ld_model;  // strides of rows
  size_t ld_qkv;
  size_t ld_ff;

  size_t qkv;        // [tokens, ld_qkv]: q, k, v of all heads
  size_t keys;       // packed keys: [(tokens + 16 sequences) * d_model]
  size_t values;     // packed values: [tokens * heads * head size rounded up to 16]
  size_t context;    // [tokens, ld_model]: attention's output
  size_t mid;        // [ff_rows, ld_model]: a sum before its norm
  size_t normed;     // [ff_rows, ld_model]
  size_t hidden;     // [ff_rows, ld_ff]: the activations of the feed-forward network
  size_t attention;  // [lanes, attention_floats]: see AttentionScratchFloats
  size_t attention_floats;
  size_t block_starts;  // size_t [sequences + 1]: blocks of queries before each sequence

  size_t ff_rows;  // rows that mid, normed and hidden hold: of all lanes' blocks, or of all tokens
  size_t bytes;    // of everything

  // Monotone in tokens, sequences and lanes. kInvalidArgument if a size overflows.
  static Result<ScratchPlan> Create(const EncoderConfig& config, size_t tokens, size_t sequences,
                                    size_t lanes);
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_SCRATCH_PLAN_H_
