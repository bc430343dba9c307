// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks of exp, activations, softmax and LayerNorm share: an array in, an array out,
// on one thread, and how many floating point operations an element counts for. Not here: timing
// (common.h).

#ifndef ENCORE_BENCH_ELEMENTWISE_H_
#define ENCORE_BENCH_ELEMENTWISE_H_

#include <cstddef>
#include <string>

#include "bench/common.h"
#include "encore/ops.h"

namespace encore::bench {

// Floating point operations an element, counted from the formulas in engine/kernels as they are on
// targets with FMA: a multiply-add is 2; an addition, multiplication or division is 1; comparisons,
// selections, minima, table look-ups and integer steps are 0. So the share of the peak tells how
// much of the time goes into those and into memory.
inline constexpr double kExpFlops = 17;
inline constexpr double kTanhFlops = 13;
inline constexpr double kReluFlops = 1;  // the comparison, for want of anything else
inline constexpr double kGeluFlops = 42;
inline constexpr double kGeluTanhFlops = 40;
inline constexpr double kSiluFlops = 26;
// The difference from the maximum, an exp for x <= 0 (12), the sum, the product with 1 / sum.
inline constexpr double kSoftmaxFlops = 15;
// The sum of differences from an element; those from the mean, their sum and that of their squares;
// centring, scaling, weight and bias.
inline constexpr double kLayerNormFlops = 11;

// Of one pass over n elements in and out.
inline Work ElementwiseWork(size_t n, double flops) {
  const double elements = static_cast<double>(n);
  return Work{.flops = flops * elements,
              .elements = elements,
              .bytes = elements * 2 * sizeof(float),
              .tokens = 0};
}

using ElementwiseFn = Status (*)(ConstView x, MutableView y);

// name/n:N, on inputs in [-8, 8), where none of the functions has become a constant.
inline void RegisterElementwise(const std::string& name, ElementwiseFn fn, double flops, size_t n) {
  Register(name + "/n:" + std::to_string(n), [=](benchmark::State& state) {
    const Tensor x = RandomTensor(Shape(n), -8.0f, 8.0f);
    Tensor y = ZeroTensor(Shape(n));
    Measure(state, 1, ElementwiseWork(n, flops),
            [&](size_t) { return fn(x.View<float>(), y.View<float>()); });
  });
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_ELEMENTWISE_H_
