// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions: over arrays, as encore/ops.h states them (vec_math-inl.h); and a layer's
// activations, cheaper forms in place on a tile that a matrix product has just written, or as gates
// (activation_math-inl.h).

#ifndef ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_
#define ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_

#include <cstddef>

#include "engine/base/activations.h"

namespace encore::inline v0_1::internal {

// Largest absolute errors over all floats, in f32 ulps of x (not of the result), last rounding
// included, and in brackets without FMA: relu 0 (0), gelu 0.891 (1.17), gelu_tanh 0.855 (1.13),
// silu 0.783 (1.07), quick_gelu 0.801 (1.08). Before the last rounding each error is below half an
// ulp of x on targets with FMA.
struct ActivationKernel {
  // c = f(c). c: [rows, cols] with ldc floats from row to row; unaligned is fine. An element's bits
  // do not depend on its place.
  using Tile = void (*)(float* c, size_t ldc, size_t rows, size_t cols);
  // c = f(gate) * c, one rounding more than f(gate); gate: [rows, cols] with ld_gate, may be c.
  using Gated = void (*)(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows,
                         size_t cols);
  Tile tile;
  Gated gated;
};

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
  ActivationKernel activation[kLayerActivations];                   // by Activation
};

// Those of the active SIMD target.
const ElementwiseKernels& GetElementwiseKernels();

inline const ActivationKernel& GetActivationKernel(Activation activation) {
  return GetElementwiseKernels().activation[static_cast<size_t>(activation)];
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ELEMENTWISE_H_
