// SPDX-License-Identifier: Apache-2.0
//
// The forward pass of `encore run`, from the input's tensors to the output file's. Not here: files.

#ifndef ENCORE_TOOLS_ENCORE_RUN_FORWARD_H_
#define ENCORE_TOOLS_ENCORE_RUN_FORWARD_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/tensor.h"
#include "tools/encore/run_input.h"

namespace encore::tool {

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

#endif  // ENCORE_TOOLS_ENCORE_RUN_FORWARD_H_
