// SPDX-License-Identifier: Apache-2.0
//
// A block's functions and product as one would have them without encore's numeric contract, to
// measure what it costs (bench_contract.cc): on Highway's own mathematics, with sums in any order.

#ifndef ENCORE_BENCH_FREE_H_
#define ENCORE_BENCH_FREE_H_

#include "encore/ops.h"
#include "engine/kernels/gemm_kernel.h"

namespace encore::bench {

// On the active SIMD target, of whole vectors: of each row, and two at once of x [n]. Exp is that
// of hwy/contrib/math/math-inl.h. It has no erf (1.2.0), so GELU takes formula 7.1.26 of Abramowitz
// & Stegun, whose absolute error is 1.5e-7, on its exp. Where those headers are not installed,
// there is only LayerNorm (by the weights of elementwise.h), and the others are kUnsupported.
Status FreeExp(ConstView x, MutableView y);
Status FreeGelu(ConstView x, MutableView y);
Status FreeSoftmax(ConstView x, MutableView y);
Status FreeLayerNorm(ConstView x, MutableView y);

// Micro-kernels in which an element of the product is the sum of so many chains, each over every
// second or fourth k. That hides the latency of a chain, and the bits depend on their number.
inline constexpr size_t kChainCounts[] = {2, 4};

// The active SIMD target's: for the library's own loops and packed panels of one or two vectors,
// with tiles as large as the registers allow so many chains an element. Of a tile's options only
// init is there, and cols must be the full width.
const internal::GemmKernel& FreeKernel(size_t chains);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_FREE_H_
