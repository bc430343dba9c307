// SPDX-License-Identifier: Apache-2.0
//
// The input file of `encore run`: a batch of sequences, how they are padded or packed, a mask. Read
// and validated whole. Not here: weights (torch_weights.h) and the forward pass (run_forward.h).

#ifndef ENCORE_TOOLS_ENCORE_RUN_INPUT_H_
#define ENCORE_TOOLS_ENCORE_RUN_INPUT_H_

#include <optional>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/tensor.h"

namespace encore::tool {

struct RunInput {
  Tensor x;                           // f32, [B, S, D], or [T, D] of packed sequences
  size_t batch = 0;                   // B
  size_t seq = 0;                     // S; of packed sequences the longest
  std::optional<PaddedBatch> padded;  // with x [B, S, D]
  std::vector<size_t> seq_starts;     // with x [T, D]: B + 1 entries
  Tensor blocked;                     // bool [S, S], or without data
  Tensor additive;                    // f32 [S, S], or without data

  size_t tokens() const { return padded ? padded->tokens() : seq_starts.back(); }
  size_t d_model() const { return x.shape()[x.shape().rank() - 1]; }
  // Views of this object; causal is added to its own mask.
  Batch MakeBatch(bool causal) const;
};

// The tensors x, seq_lengths, key_padding_mask and attn_mask as `encore run --help` describes them.
// Throws Failure, naming the tensor, what was found and what was wanted.
RunInput ReadRunInput(const SafetensorsFile& file, size_t d_model);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_RUN_INPUT_H_
