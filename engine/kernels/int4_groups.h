// SPDX-License-Identifier: Apache-2.0
//
// Weights in 4 bits: how 32 numbers become integers and a scale, and their layout in a panel of
// the int4 kernel (gemm_kernel.h).

#ifndef ENCORE_ENGINE_KERNELS_INT4_GROUPS_H_
#define ENCORE_ENGINE_KERNELS_INT4_GROUPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/gemm_kernel.h"

namespace encore::inline v0_1::internal {

struct Int4Group {
  float scale;                         // a bf16 number
  std::array<int8_t, kInt4Group> q{};  // -8 .. 7
};

struct Int4Kernels {
  // w is about scale * q. Of eight scales, which put the number of the largest magnitude at -8.75
  // to -7 steps, the one with the least squared error after its best fit, scale = sum of w q / sum
  // of q^2. Products and sums are rounded one by one, in the same order on every target. A group
  // whose numbers are all below 2^-100 is zeros. NaN as the scale where a number is not finite.
  Int4Group (*quantize)(const float* w /* [kInt4Group] */);
  // Packs the next group of a panel's columns: row r of in, [rows, kInt4Group], becomes column r;
  // zeros fill up the other columns up to nr. `out` has room for nr * kInt4GroupBytes. Adds to each
  // column's sum scale * (the sum of its integers). False if a number is not finite.
  bool (*pack)(const float* in, size_t rows, size_t nr, std::byte* out, float* sums);
};

// Those of the active SIMD target.
const Int4Kernels& GetInt4Kernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_INT4_GROUPS_H_
