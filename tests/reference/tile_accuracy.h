// SPDX-License-Identifier: Apache-2.0
//
// The largest errors of a block's activations (engine/kernels/activation.h), in one place for the
// test that samples and the tool that tries every float. They are absolute: in ulps of x.

#ifndef ENCORE_TESTS_REFERENCE_TILE_ACCURACY_H_
#define ENCORE_TESTS_REFERENCE_TILE_ACCURACY_H_

#include <cmath>
#include <limits>
#include <string_view>

#include "engine/kernels/activation.h"
#include "tests/reference/elementwise.h"

namespace encore::reference {

struct TileAccuracy {
  std::string_view name;
  internal::ActivationKernels::Tile internal::ActivationKernels::*kernel;
  double (*exact)(double);
  double ulps;         // the largest error on targets with FMA, last rounding included
  double early_ulps;   // what of it can come from before the last rounding
  double ulps_no_fma;  // on targets without FMA
};

// The figures of activation_math-inl.h.
inline constexpr TileAccuracy kTileAccuracies[] = {
    {"tile_relu", &internal::ActivationKernels::relu, &Relu, 0.0, 0.0, 0.0},
    {"tile_gelu", &internal::ActivationKernels::gelu, &Gelu, 0.9, 0.5, 1.2},
    {"tile_gelu_tanh", &internal::ActivationKernels::gelu_tanh, &GeluTanh, 0.9, 0.5, 1.2},
    {"tile_silu", &internal::ActivationKernels::silu, &Silu, 0.8, 0.5, 1.1},
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

}  // namespace encore::reference

#endif  // ENCORE_TESTS_REFERENCE_TILE_ACCURACY_H_
