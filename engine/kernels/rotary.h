// SPDX-License-Identifier: Apache-2.0
//
// Rotary positions (Su et al. 2021, arXiv:2104.09864): pairs of elements are turned, in place, by
// the sines and cosines of engine/ops/rotary_table.h.

#ifndef ENCORE_ENGINE_KERNELS_ROTARY_H_
#define ENCORE_ENGINE_KERNELS_ROTARY_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

struct RotaryArgs {
  float* x;  // [rows, ldx]
  size_t ldx;
  size_t rows;
  size_t size;       // even: the leading elements of each row that turn; others are not touched
  const float* cos;  // [rows, ld_table], of which size / 2
  const float* sin;  // the same
  size_t ld_table;
};

// (a, b) becomes (a cos - b sin, b cos + a sin): products and sums rounded one by one, so that
// targets without FMA give the same bits.
struct RotaryKernels {
  void (*half)(const RotaryArgs& args);         // pairs (x[i], x[i + size / 2])
  void (*interleaved)(const RotaryArgs& args);  // pairs (x[2 i], x[2 i + 1])
};

// Those of the active SIMD target.
const RotaryKernels& GetRotaryKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ROTARY_H_
