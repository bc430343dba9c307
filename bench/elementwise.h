// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks of exp, activations, softmax and LayerNorm share: an array in, an array out,
// on one thread, and how many floating point operations an element counts for.

#ifndef ENCORE_BENCH_ELEMENTWISE_H_
#define ENCORE_BENCH_ELEMENTWISE_H_

#include <cstddef>
#include <string>

#include "bench/common.h"
#include "encore/ops.h"

namespace encore::bench {

// Floating point operations an element, as docs/benchmarks.md has them, counted from the formulas
// in engine/kernels as they are on targets with FMA: a multiply-add is 2; an addition,
// multiplication or division is 1; comparisons, selections, minima, table look-ups and integer
// steps are 0. So the share of the peak shows how much of the time goes into those and into memory.
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

using ElementwiseFn = Status (*)(ConstView x, MutableView y);

// name/f32/n:N or name/f32/rows:R/cols:C, on inputs in [-8, 8), where none of the functions has
// become a constant.
inline void RegisterElementwise(std::string name, ElementwiseFn fn, double flops,
                                const Shape& shape) {
  const bool rows = shape.rank() == 2;
  name += (rows ? "/f32/rows:" : "/f32/n:") + std::to_string(shape[0]);
  if (rows) name += "/cols:" + std::to_string(shape[1]);
  Register(name, [=](benchmark::State& state) {
    const Tensor x = RandomTensor(shape, -8.0f, 8.0f);
    Tensor y = ZeroTensor(shape);
    const double elements = static_cast<double>(shape[0] * (rows ? shape[1] : 1));
    const Work work{
        .flops = flops * elements, .elements = elements, .bytes = elements * 2 * sizeof(float)};
    Measure(state, 1, work, [&](size_t) { return fn(x.View<float>(), y.View<float>()); });
  });
}

// weight and bias [cols], for at most so many columns; the same in all calls.
inline constexpr size_t kMostNormColumns = 1024;
struct NormWeights {
  Tensor weight = RandomTensor(Shape(kMostNormColumns), 0.9f, 1.1f);
  Tensor bias = RandomTensor(Shape(kMostNormColumns));
};
inline const NormWeights& GetNormWeights() {
  static const NormWeights weights;
  return weights;
}
inline constexpr double kNormEpsilon = 1e-5;

inline Status LayerNormRows(ConstView x, MutableView y) {
  const NormWeights& norm = GetNormWeights();
  const Shape cols(x.dim(1));
  return LayerNorm(x, ConstView(norm.weight.View<float>().data(), cols),
                   ConstView(norm.bias.View<float>().data(), cols), kNormEpsilon, y);
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_ELEMENTWISE_H_
