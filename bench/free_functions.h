// SPDX-License-Identifier: Apache-2.0
//
// The functions of a block as one would have them without encore's numeric contract, on Highway's
// own mathematics and with sums in any order, to measure what the contract costs. Not here:
// encore's (engine/kernels), the product (free_product.h).

#ifndef ENCORE_BENCH_FREE_FUNCTIONS_H_
#define ENCORE_BENCH_FREE_FUNCTIONS_H_

#include <cstddef>

namespace encore::bench {

// Null where there is none.
struct FreeFunctions {
  // n is a multiple of two vectors.
  using Unary = void (*)(const float* x, float* y, size_t n);
  // y = softmax of each row of x [rows, cols]; cols is a multiple of a vector, as below.
  using Softmax = void (*)(const float* x, float* y, size_t rows, size_t cols);
  // weight and bias [cols].
  using LayerNorm = void (*)(const float* x, const float* weight, const float* bias, float epsilon,
                             float* y, size_t rows, size_t cols);
  Unary exp = nullptr;
  Unary gelu = nullptr;
  Softmax softmax = nullptr;
  LayerNorm layer_norm = nullptr;
};

// Of the active SIMD target. exp is that of hwy/contrib/math/math-inl.h. It has no erf (1.2.0), so
// GELU takes formula 7.1.26 of Abramowitz & Stegun, whose absolute error is 1.5e-7, on its exp.
// Where those headers are not installed, only layer_norm is there.
const FreeFunctions& GetFreeFunctions();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_FREE_FUNCTIONS_H_
