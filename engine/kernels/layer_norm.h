// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm of rows. Sums run over 16 virtual lanes (reduce-inl.h), so bits do not depend on the
// SIMD target. Not here: strides, threads, validation (engine/ops/layer_norm.cc).

#ifndef ENCORE_ENGINE_KERNELS_LAYER_NORM_H_
#define ENCORE_ENGINE_KERNELS_LAYER_NORM_H_

#include <cstddef>

namespace encore::internal {

struct LayerNormKernels {
  // y = (x - mean) / sqrt(variance + epsilon) * weight + bias, biased variance, centred twice so
  // that a mean far from 0 costs no accuracy. x [rows, ldx], y [rows, ldy] (may be x), weight and
  // bias [cols] or null for 1 and 0; cols > 0. epsilon is rounded to f32 in here, where the
  // rounding mode is the default one.
  void (*rows)(const float* x, size_t ldx, const float* weight, const float* bias, double epsilon,
               float* y, size_t ldy, size_t rows, size_t cols);
};

// Those of the active SIMD target.
const LayerNormKernels& GetLayerNormKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_LAYER_NORM_H_
