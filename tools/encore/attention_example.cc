// SPDX-License-Identifier: Apache-2.0
//
// Draws an example and computes its steps.

#include "tools/encore/attention_example.h"

#include <cmath>
#include <utility>

#include "encore/ops.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

Tensor Product(const Tensor& a, const Tensor& b) {
  Tensor c = NewTensor({a.shape()[0], b.shape()[1]});
  Check(MatMul(a.View<float>(), b.View<float>(), c.View<float>()));
  return c;
}

// [T, D] seen as [H, T, D / H]: head h owns a band of columns.
template <typename T>
TensorView<T> ByHeads(TensorView<T> matrix, size_t heads) {
  const size_t head_size = matrix.dim(1) / heads;
  return TensorView<T>(matrix.data(), Shape(heads, matrix.dim(0), head_size),
                       {static_cast<ptrdiff_t>(head_size), matrix.stride(0), matrix.stride(1)});
}

}  // namespace

AttentionExample SeededExample(std::vector<std::string> tokens, size_t dim, size_t heads,
                               uint32_t seed) {
  if (tokens.empty()) throw Failure("the text has no words: at least one is wanted");
  if (tokens.size() > kMaxExampleTokens) {
    throw Failure("the text has " + std::to_string(tokens.size()) +
                  " words, and `attend` shows at most " + std::to_string(kMaxExampleTokens) +
                  "; `encore run` takes sequences of any length");
  }
  if (dim == 0 || dim > kMaxExampleDim) {
    throw Failure("the dimension is " + std::to_string(dim) + ", wanted 1 to " +
                  std::to_string(kMaxExampleDim));
  }
  if (heads == 0 || dim % heads != 0) {
    throw Failure("the dimension " + std::to_string(dim) + " cannot be divided among " +
                  std::to_string(heads) + " heads");
  }
  AttentionExample example;
  example.tokens = std::move(tokens);
  example.keys = example.tokens;
  example.heads = heads;
  example.seed = seed;
  NumpyRandom random(seed);
  example.x = random.Rand({example.tokens.size(), dim});
  example.w_q = random.Rand({dim, dim});
  example.w_k = random.Rand({dim, dim});
  example.w_v = random.Rand({dim, dim});
  return example;
}

void Compute(AttentionExample& example) {
  if (example.has_x()) {
    example.q = Product(example.x, example.w_q);
    example.k = Product(example.x, example.w_k);
    example.v = Product(example.x, example.w_v);
  }
  const size_t queries = example.q.shape()[0];
  const size_t keys = example.k.shape()[0];
  const ConstView q = ByHeads(std::as_const(example.q).View<float>(), example.heads);
  const ConstView k = ByHeads(std::as_const(example.k).View<float>(), example.heads);
  const ConstView v = ByHeads(std::as_const(example.v).View<float>(), example.heads);

  example.scores = NewTensor({example.heads, queries, keys});
  for (size_t head = 0; head < example.heads; ++head) {
    Check(MatMul(q[head], k[head], example.scores.View<float>()[head],
                 {.transpose_b = Transpose::kYes}));
  }
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(example.head_size())));
  float* scores = static_cast<float*>(example.scores.data());
  for (size_t i = 0; i < example.heads * queries * keys; ++i) scores[i] *= scale;

  example.weights = NewTensor({example.heads, queries, keys});
  example.output = NewTensor({queries, example.v.shape()[1]});
  Check(Attention(q, k, v, ByHeads(example.output.View<float>(), example.heads),
                  {.weights = example.weights.View<float>()}));
}

}  // namespace encore::tool
