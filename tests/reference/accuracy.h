// SPDX-License-Identifier: Apache-2.0
//
// The promised largest errors of the elementwise functions, in one place for the test that samples
// and the tool that tries every float, and how an error in ulp is measured.

#ifndef ENCORE_TESTS_REFERENCE_ACCURACY_H_
#define ENCORE_TESTS_REFERENCE_ACCURACY_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "engine/kernels/elementwise.h"
#include "tests/reference/elementwise.h"

namespace encore::reference {

struct Accuracy {
  std::string_view name;
  internal::ElementwiseKernels::Unary internal::ElementwiseKernels::*kernel;
  double (*exact)(double);
  double ulps;         // the largest error on targets with FMA
  double ulps_no_fma;  // and without
};

// The figures of vec_math-inl.h and encore/ops.h.
inline constexpr Accuracy kAccuracies[] = {
    {"exp", &internal::ElementwiseKernels::exp, &Exp, 1.0, 1.25},
    {"tanh", &internal::ElementwiseKernels::tanh, &Tanh, 1.5, 1.5},
    {"relu", &internal::ElementwiseKernels::relu, &Relu, 0.0, 0.0},
    {"gelu", &internal::ElementwiseKernels::gelu, &Gelu, 2.0, 2.0},
    {"gelu_tanh", &internal::ElementwiseKernels::gelu_tanh, &GeluTanh, 2.0, 2.0},
    {"silu", &internal::ElementwiseKernels::silu, &Silu, 2.0, 2.0},
};

inline bool TargetHasFma(std::string_view target) {
  return !(target.starts_with("SSE") || target == "SSSE3" || target == "EMU128" ||
           target == "SCALAR");
}

// |y - exact| in units of the f32 spacing at `exact` (that of subnormals below 2^-126). Infinity
// where one is NaN and the other is not, or an infinite input's exact result is missed. A result of
// inf counts as 2^128, the next number if f32 had one.
inline double UlpError(float y, double exact) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : kInfinity;
  if (std::isinf(exact)) return static_cast<double>(y) == exact ? 0 : kInfinity;
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(exact) >> 52 & 0x7FF) - 1023;
  const int clamped = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
  const double spacing = std::bit_cast<double>(static_cast<uint64_t>(clamped - 23 + 1023) << 52);
  double value = y;
  if (std::isinf(y)) {
    if (std::fabs(exact) >= 0x1p128 && std::signbit(y) == std::signbit(exact)) return 0;
    value = std::copysign(0x1p128, value);
  }
  return std::fabs(value - exact) / spacing;
}

}  // namespace encore::reference

#endif  // ENCORE_TESTS_REFERENCE_ACCURACY_H_
