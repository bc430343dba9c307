// SPDX-License-Identifier: Apache-2.0
//
// Softmax of rows, as many and as long as the scores of models in use. Not here: accuracy (tests/),
// the softmax in tiles that attention does (bench_attention.cc).

#include <string>

#include "bench/elementwise.h"

namespace encore::bench {
namespace {

void Rows(benchmark::State& state, size_t rows, size_t cols) {
  const Tensor x = RandomTensor(Shape(rows, cols), -8.0f, 8.0f);
  Tensor y = ZeroTensor(Shape(rows, cols));
  Measure(state, 1, ElementwiseWork(rows * cols, kSoftmaxFlops),
          [&](size_t) { return Softmax(x.View<float>(), y.View<float>()); });
}

}  // namespace

void RegisterBenchmarks() {
  struct Size {
    size_t rows;
    size_t cols;
  };
  // The worked example; BERT base with 16, 128 and 512 tokens; rows of a long text.
  for (const Size size : {Size{32 * 4 * 10, 10}, Size{12 * 16, 16}, Size{12 * 128, 128},
                          Size{12 * 512, 512}, Size{16, 16384}}) {
    Register("softmax/rows:" + std::to_string(size.rows) + "/cols:" + std::to_string(size.cols),
             [=](benchmark::State& state) { Rows(state, size.rows, size.cols); });
  }
}

}  // namespace encore::bench
