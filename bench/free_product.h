// SPDX-License-Identifier: Apache-2.0
//
// Micro-kernels that do not keep the numeric contract: an element of the product is the sum of two
// or four chains, each over every second or fourth k. That hides the latency of a
// chain with fewer elements, and its bits depend on the number of chains. They exist to measure
// what the contract costs. Not here: the kernels of the library (engine/kernels/gemm_kernel.h).

#ifndef ENCORE_BENCH_FREE_PRODUCT_H_
#define ENCORE_BENCH_FREE_PRODUCT_H_

#include "engine/kernels/gemm_kernel.h"

namespace encore::bench {

inline constexpr size_t kChainCounts[] = {2, 4};

// Of the active SIMD target: for the library's own loops and packed panels, with tiles as large as
// the registers allow so many chains an element. Of a tile's options only init is there, and cols
// must be the full width.
const internal::GemmKernel& FreeKernel(size_t chains);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_FREE_PRODUCT_H_
