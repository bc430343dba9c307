// SPDX-License-Identifier: Apache-2.0
//
// Self-attention with every step kept: the numbers that `encore attend` shows. Computed by encore's
// public operations in f32.

#ifndef ENCORE_TOOLS_ENCORE_ATTENTION_EXAMPLE_H_
#define ENCORE_TOOLS_ENCORE_ATTENTION_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encore/tensor.h"
#include "tools/encore/numpy_random.h"

namespace encore::tool {

// T tokens (queries), S keys (T of them in self-attention), model width D, H heads. Tensors are
// f32; one that the example does not have is empty (no data).
struct AttentionExample {
  std::string title;                // the text, or the case and what it shows
  std::vector<std::string> tokens;  // [T] labels
  std::vector<std::string> keys;    // [S] labels
  size_t heads = 1;                 // divides D and V's width
  std::optional<uint32_t> seed;     // where matrices were drawn

  // Given: X and its weights, or Q, K, V.
  Tensor x;              // [T, D]
  Tensor w_q, w_k, w_v;  // [D, D]: Q = X W_q, not transposed as in torch.nn.Linear
  Tensor q, k, v;        // [T, D], [S, D], [S, Dv]

  // Computed.
  Tensor scores;   // [H, T, S]: Q K^T / sqrt(D / H)
  Tensor weights;  // [H, T, S]: softmax of each row of scores
  Tensor output;   // [T, Dv]: weights V, heads side by side; the context of each token

  bool has_x() const { return x.data() != nullptr; }
  size_t head_size() const { return q.shape()[1] / heads; }
};

// More than this is no walk-through any more; `encore run` takes any size.
inline constexpr size_t kMaxExampleTokens = 512;
inline constexpr size_t kMaxExampleDim = 4096;

// X, W_q, W_k and W_v drawn in this order from RandomState(seed).rand. tokens is not empty.
// Throws Failure, naming the options, for sizes out of range or heads that do not divide dim.
AttentionExample SeededExample(std::vector<std::string> tokens, size_t dim, size_t heads,
                               uint32_t seed);

// From what is given to the output. Shapes are right already.
void Compute(AttentionExample& example);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_ATTENTION_EXAMPLE_H_
