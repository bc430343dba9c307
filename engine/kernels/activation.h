// SPDX-License-Identifier: Apache-2.0
//
// The activations of a block's feed-forward network, in place on a tile that a matrix product has
// just written, and as gates: the cheaper forms of activation_math-inl.h.

#ifndef ENCORE_ENGINE_KERNELS_ACTIVATION_H_
#define ENCORE_ENGINE_KERNELS_ACTIVATION_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// Largest absolute errors in f32 ulps of x (not of the result), last rounding included, over all
// floats: relu 0, gelu 0.891, gelu_tanh 0.855, silu 0.783, quick_gelu 0.801; without FMA 1.17,
// 1.13, 1.07, 1.08. What goes in before the last rounding is below half an ulp of x, but for
// targets without FMA.
struct ActivationKernels {
  // c = f(c). c: [rows, cols] with ldc floats from row to row; unaligned is fine. An element's bits
  // do not depend on its place.
  using Tile = void (*)(float* c, size_t ldc, size_t rows, size_t cols);
  // c = f(gate) * c, one rounding more than f(gate); gate: [rows, cols] with ld_gate, may be c.
  using Gated = void (*)(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows,
                         size_t cols);
  struct Function {
    Tile tile;
    Gated gated;
  };
  Function relu;
  Function gelu;
  Function gelu_tanh;
  Function silu;
  Function quick_gelu;  // x / (1 + e^-(1.702 x))
};

// Those of the active SIMD target.
const ActivationKernels& GetActivationKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ACTIVATION_H_
