// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LayerNorm in which the sum of a row runs over as many vectors as one likes. Where
// those are not 16 lanes together, the numeric contract is broken: they exist to measure what it
// costs. Not here: the kernels of the library (engine/kernels/softmax.h, norm.h).

#ifndef ENCORE_BENCH_CYCLES_FREE_ROWS_H_
#define ENCORE_BENCH_CYCLES_FREE_ROWS_H_

#include <cstddef>
#include <span>

#include "bench/cycles/functions.h"

namespace encore::bench {

// One order of sums: so many rows at a time, so many vectors of sums each. cols must be a multiple
// of all the vectors of a row.
struct FreeRows {
  size_t rows_at_once;
  size_t sums;
  Functions::Softmax softmax;
  Functions::LayerNorm layer_norm;
};

// All there are for the active SIMD target.
std::span<const FreeRows> AllFreeRows();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_FREE_ROWS_H_
