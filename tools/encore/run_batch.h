// SPDX-License-Identifier: Apache-2.0
//
// The batch of `encore run`: sequences from the input file, how they are padded or packed, a mask,
// read and validated whole; and the forward pass, to the tensors of the output file.

#ifndef ENCORE_TOOLS_ENCORE_RUN_BATCH_H_
#define ENCORE_TOOLS_ENCORE_RUN_BATCH_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
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
  // x as [tokens, D], without padding; a view of `packed`, which is filled, or of this object.
  // There is at least one token. Throws Failure.
  ConstView Packed(Tensor* packed) const;
  // Views of this object; causal is added to its own mask.
  Batch MakeBatch(bool causal) const;
};

// The tensors x, seq_lengths, key_padding_mask and attn_mask as `encore run --help` describes them.
// Throws Failure, naming the tensor, what was found and what was wanted.
RunInput ReadRunInput(const SafetensorsFile& file, size_t d_model);

struct RunSettings {
  bool causal = false;
  bool attention_weights = false;
  bool hidden_states = false;
  Executor executor = {};
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct RunOutput {
  std::vector<NamedTensor> tensors;  // y, attention.N, hidden.N, all f32
  double seconds = 0;                // of the forward pass alone
};

// y and hidden.N have x's shape, attention.N is [B, H, S, S]; rows (and columns) of padding are
// zeros. Throws Failure.
RunOutput RunForward(const Encoder& encoder, const RunInput& input, const RunSettings& settings);

// Moves the top left n x n elements of a square matrix of this width, n = positions.size(), to rows
// and columns positions[0] < positions[1] ..., and makes the places that they leave 0.
void SpreadSquare(float* matrix, size_t width, std::span<const size_t> positions);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_RUN_BATCH_H_
