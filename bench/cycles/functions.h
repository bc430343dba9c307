// SPDX-License-Identifier: Apache-2.0
//
// The functions of a block as one would have them without encore, to compare with: on Highway's own
// mathematics, and in plain C++ on the C library's. Not here: encore's (engine/kernels).

#ifndef ENCORE_BENCH_CYCLES_FUNCTIONS_H_
#define ENCORE_BENCH_CYCLES_FUNCTIONS_H_

#include <cstddef>

namespace encore::bench {

// One set; null where there is none.
struct Functions {
  using Unary = void (*)(const float* x, float* y, size_t n);
  // y = softmax of each row of x [rows, cols].
  using Softmax = void (*)(const float* x, float* y, size_t rows, size_t cols);
  // weight and bias [cols].
  using LayerNorm = void (*)(const float* x, const float* weight, const float* bias, float epsilon,
                             float* y, size_t rows, size_t cols);
  Unary exp = nullptr;
  Unary tanh = nullptr;
  Unary gelu = nullptr;
  Unary gelu_tanh = nullptr;
  Unary silu = nullptr;
  Softmax softmax = nullptr;
  LayerNorm layer_norm = nullptr;
};

// Of the active SIMD target, on hwy/contrib/math/math-inl.h: exp and tanh are Highway's. It has no
// erf (1.2.0), so GELU takes formula 7.1.26 of Abramowitz & Stegun, whose absolute error is 1.5e-7,
// on its exp. Where those headers are not installed, only layer_norm is there.
const Functions& HighwayFunctions();

// Loops over expf, tanhf and erff, softmax and LayerNorm as three loops each, as the compiler makes
// them for any CPU of the architecture: on x86-64 with SSE2, and without vectors where there is a
// call or a sum.
const Functions& PlainFunctions();

// encore's exponential as softmax has it, y = e^x for x <= 0, of the active SIMD target.
Functions::Unary SoftmaxExp();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_FUNCTIONS_H_
