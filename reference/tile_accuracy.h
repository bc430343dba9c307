// SPDX-License-Identifier: Apache-2.0
//
// The largest errors of the cheaper forms inside a block: its activations
// (engine/kernels/elementwise.h), absolute, in ulps of x; and softmax's exponential
// (engine/kernels/softmax_exp-inl.h). In one place for the tests that sample and the tools that try
// every float.

#ifndef ENCORE_REFERENCE_TILE_ACCURACY_H_
#define ENCORE_REFERENCE_TILE_ACCURACY_H_

#include <cmath>
#include <limits>
#include <string_view>

#include "encore/layer.h"
#include "reference/accuracy.h"
#include "reference/elementwise.h"

namespace encore::reference {

struct TileAccuracy {
  std::string_view name;
  Activation activation;
  double (*exact)(double);
  double ulps;         // the largest error on targets with FMA, last rounding included
  double early_ulps;   // what of it can come from before the last rounding
  double ulps_no_fma;  // on targets without FMA
  float rises_from;    // as in Accuracy; order is not promised here
};

// The figures of activation_math-inl.h.
inline constexpr TileAccuracy kTileAccuracies[] = {
    {"tile_relu", Activation::kRelu, &Relu, 0.0, 0.0, 0.0, -kInfinity},
    {"tile_gelu", Activation::kGelu, &Gelu, 0.9, 0.5, 1.2, -0.75179163f},
    {"tile_gelu_tanh", Activation::kGeluTanh, &GeluTanh, 0.9, 0.5, 1.2, -0.75246144f},
    {"tile_silu", Activation::kSilu, &Silu, 0.8, 0.5, 1.1, -1.27846454f},
    {"tile_quick_gelu", Activation::kQuickGelu, &QuickGelu, 0.85, 0.5, 1.15, -0.75115426f},
};

// The f32 spacing at x, which is finite.
inline double SpacingAt(double x) {
  const double least = std::fmax(std::fabs(x), 0x1p-126);
  return std::ldexp(1.0, std::ilogb(least) - 23);
}

// |y - exact| in ulps of x, and what is left of it after half an ulp of y. Infinity where a NaN, an
// infinity or a zero is not met.
struct TileError {
  double ulps;
  double early_ulps;
};
inline TileError TileErrorOf(float x, float y, double exact) {
  if (std::isnan(x) || std::isinf(x) || x == 0) {
    const bool met = std::isnan(x) ? std::isnan(y) : static_cast<double>(y) == exact;
    const double error = met ? 0.0 : std::numeric_limits<double>::infinity();
    return {error, error};
  }
  if (!std::isfinite(y)) return {HUGE_VAL, HUGE_VAL};
  const double error = std::fabs(static_cast<double>(y) - exact);
  const double early = std::fmax(error - SpacingAt(static_cast<double>(y)) / 2, 0.0);
  const double spacing = SpacingAt(static_cast<double>(x));
  return {error / spacing, early / spacing};
}

// e^(scale x) for x <= 0 as softmax has it is right to kSoftmaxExpUlps + slope |scale x| of itself,
// and exactly 0 below kSoftmaxExpLowest; the last bits of scale x decide next to it.
inline constexpr double kSoftmaxExpUlps = 1.2;
inline constexpr double kSoftmaxExpLowest = -87.0;
inline constexpr double kSoftmaxExpBlur = 87.0 * 0x1p-22;

inline double SoftmaxExpSlope(float scale) {
  int exponent = 0;
  const bool power_of_two = std::frexp(scale, &exponent) == 0.5f;
  return power_of_two ? 3e-9 : 6.3e-8;
}

// What is left of the error, in ulps of the result, after slope |scale x| of it. x <= 0 or NaN.
inline double SoftmaxExpError(float scale, float x, float y) {
  if (std::isnan(x)) return std::isnan(y) ? 0.0 : std::numeric_limits<double>::infinity();
  const double exponent = static_cast<double>(scale) * static_cast<double>(x);
  if (exponent < kSoftmaxExpLowest + kSoftmaxExpBlur && y == 0) return 0;
  if (exponent < kSoftmaxExpLowest - kSoftmaxExpBlur) return HUGE_VAL;
  const double exact = Exp(exponent);
  const double allowed = SoftmaxExpSlope(scale) * -exponent * exact / SpacingAt(exact);
  return std::fmax(UlpError(y, exact) - allowed, 0.0);
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_TILE_ACCURACY_H_
