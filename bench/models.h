// SPDX-License-Identifier: Apache-2.0
//
// Sizes that the benchmarks measure with: encoder blocks of models in use, and batches for them.
// Not here: data.

#ifndef ENCORE_BENCH_MODELS_H_
#define ENCORE_BENCH_MODELS_H_

#include <cstddef>

#include "encore/encoder.h"

namespace encore::bench {

struct Model {
  const char* name;
  size_t d_model;
  size_t heads;
  size_t d_ff;
  Activation activation;
};

// The worked example of the README; all-MiniLM-L6; BERT base; BERT large.
inline constexpr Model kExample = {"example", 64, 4, 256, Activation::kRelu};
inline constexpr Model kMiniLm = {"minilm", 384, 12, 1536, Activation::kGelu};
inline constexpr Model kBase = {"base", 768, 12, 3072, Activation::kGelu};
inline constexpr Model kLarge = {"large", 1024, 16, 4096, Activation::kGelu};

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
