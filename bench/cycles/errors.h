// SPDX-License-Identifier: Apache-2.0
//
// The largest errors of functions over a sample of inputs, against double precision. Not here: all
// floats (tools/exhaustive).

#ifndef ENCORE_BENCH_CYCLES_ERRORS_H_
#define ENCORE_BENCH_CYCLES_ERRORS_H_

#include <cstddef>
#include <functional>

#include "encore/ops.h"

namespace encore::bench {

using UnaryCall = std::function<void(const float* x, float* y, size_t n)>;

// In f32 ulps of the result, or of x: what the activations of a block are held to.
enum class UlpOf { kResult, kArgument };

// Over every 8191st of all floats in [low, high].
double SampledError(const UnaryCall& call, double (*exact)(double), double low, double high,
                    UlpOf unit);

// Of softmax and layer_norm over rows x [rows, cols], whose results are in y. In ulps of the
// result, and of LayerNorm's in ulps of 1 where the result is smaller.
double SoftmaxError(ConstView x, const float* y);
double LayerNormError(ConstView x, ConstView weight, ConstView bias, float epsilon, const float* y);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_ERRORS_H_
