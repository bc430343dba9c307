// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows that keep the numeric contract and hide the latency of its chains all the
// same: several packed panels side by side in one loop over k. They show how much of what is lost
// with few rows is the contract's own doing. Not here: the library's kernels, which take a panel
// after the other (engine/kernels/gemm_kernel.h).

#ifndef ENCORE_BENCH_CYCLES_WIDE_PRODUCT_H_
#define ENCORE_BENCH_CYCLES_WIDE_PRODUCT_H_

#include <cstddef>
#include <span>

#include "engine/ops/packed_matrix.h"

namespace encore::bench {

struct WideProduct {
  size_t rows;
  size_t nv;      // the panels' width
  size_t panels;  // side by side
  // y = x b for x [rows, K] and y [rows, N], panels [begin, end): a multiple of so many.
  void (*run)(const float* x, const internal::PackedView& b, float* y, size_t begin, size_t end);
};

// All there are for the active SIMD target.
std::span<const WideProduct> WideProducts();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_WIDE_PRODUCT_H_
