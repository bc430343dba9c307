// SPDX-License-Identifier: Apache-2.0
//
// Rectangles that the benchmarks of single operations measure with. Not here: the models and the
// workloads of whole blocks (measure/models.h).

#ifndef ENCORE_BENCH_MODELS_H_
#define ENCORE_BENCH_MODELS_H_

#include <cstddef>

#include "bench/measure/models.h"

namespace encore::bench {

// `batch` sequences of `seq` tokens each.
struct Workload {
  Model model;
  size_t batch;
  size_t seq;
};

inline constexpr Workload kWorkloads[] = {
    {kExample, 32, 10}, {kMiniLm, 1, 16}, {kMiniLm, 1, 128}, {kMiniLm, 8, 128}, {kBase, 1, 16},
    {kBase, 1, 128},    {kBase, 8, 128},  {kBase, 1, 512},   {kLarge, 1, 128},
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MODELS_H_
