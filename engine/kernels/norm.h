// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm and RMSNorm of rows. Sums run over 16 virtual lanes (reduce-inl.h), so bits do not
// depend on the SIMD target.

#ifndef ENCORE_ENGINE_KERNELS_NORM_H_
#define ENCORE_ENGINE_KERNELS_NORM_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// y = norm(x) * weight + bias, and then + residual.
struct NormArgs {
  const float* x;  // [rows, ldx]
  size_t ldx;
  const float* weight;    // [cols], or null for 1
  const float* bias;      // [cols], or null for 0
  double epsilon;         // rounded to f32 by the kernel, where the rounding mode is the default
  const float* residual;  // [rows, ld_residual], or null for none
  size_t ld_residual;
  float* y;  // [rows, ldy]; may be x or residual, with their leading dimension
  size_t ldy;
  size_t rows;
  size_t cols;  // > 0
};

struct NormKernels {
  // norm(x) = (x - mean) / sqrt(variance + epsilon), with the biased variance, centred twice so
  // that a mean far from 0 costs no accuracy (Ba, Kiros & Hinton 2016, arXiv:1607.06450).
  void (*layer_norm)(const NormArgs& args);
  // norm(x) = x * (1 / sqrt(mean of x^2 + epsilon)) (Zhang & Sennrich 2019, arXiv:1910.07467).
  void (*rms_norm)(const NormArgs& args);
};

// Those of the active SIMD target.
const NormKernels& GetNormKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_NORM_H_
