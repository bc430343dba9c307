// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm of [tokens, d_model] of models in use. Not here: accuracy (tests/).

#include <string>

#include "bench/elementwise.h"
#include "bench/models.h"

namespace encore::bench {
namespace {

void Rows(benchmark::State& state, size_t rows, size_t cols) {
  const Tensor x = RandomTensor(Shape(rows, cols));
  const Tensor weight = RandomTensor(Shape(cols), 0.9f, 1.1f);
  const Tensor bias = RandomTensor(Shape(cols));
  Tensor y = ZeroTensor(Shape(rows, cols));
  Measure(state, 1, ElementwiseWork(rows * cols, kLayerNormFlops), [&](size_t) {
    return LayerNorm(x.View<float>(), weight.View<float>(), bias.View<float>(), 1e-5,
                     y.View<float>());
  });
}

}  // namespace

void RegisterBenchmarks() {
  for (const Workload& load :
       {Workload{kExample, 32, 10}, Workload{kMiniLm, 1, 128}, Workload{kBase, 1, 16},
        Workload{kBase, 1, 128}, Workload{kBase, 8, 128}, Workload{kLarge, 1, 128}}) {
    const size_t rows = load.batch * load.seq;
    Register(
        "layer_norm/rows:" + std::to_string(rows) + "/cols:" + std::to_string(load.model.d_model),
        [=](benchmark::State& state) { Rows(state, rows, load.model.d_model); });
  }
}

}  // namespace encore::bench
