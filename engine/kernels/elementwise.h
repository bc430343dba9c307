// SPDX-License-Identifier: Apache-2.0
//
// Vectorised elementwise functions over contiguous arrays: formulas and errors are those of
// encore/ops.h and vec_math-inl.h.

#ifndef ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_
#define ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// x and y: [n], unaligned is fine; y may be x. An element's bits do not depend on n or on its
// place.
struct ElementwiseKernels {
  using Unary = void (*)(const float* x, float* y, size_t n);
  Unary exp;
  Unary tanh;
  Unary relu;
  Unary gelu;
  Unary gelu_tanh;
  Unary silu;
  void (*add)(const float* a, const float* b, float* c, size_t n);  // c = a + b; c may be a or b
};

// Those of the active SIMD target.
const ElementwiseKernels& GetElementwiseKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_
