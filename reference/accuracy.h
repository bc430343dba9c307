// SPDX-License-Identifier: Apache-2.0
//
// What the elementwise functions promise, in one place for the tests that sample and the tools that
// try every float: largest errors, special values, order; and how an error in ulp is measured.
// For the activations of a block and softmax's exponential: tile_accuracy.h.

#ifndef ENCORE_REFERENCE_ACCURACY_H_
#define ENCORE_REFERENCE_ACCURACY_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "engine/kernels/elementwise.h"
#include "reference/elementwise.h"

namespace encore::reference {

// Results at 0, -0, inf and -inf, to the bit.
struct SpecialValues {
  float at_zero, at_minus_zero, at_inf, at_minus_inf;
};
inline constexpr float kSpecialArguments[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                                              -std::numeric_limits<float>::infinity()};

struct Accuracy {
  std::string_view name;
  internal::ElementwiseKernels::Unary internal::ElementwiseKernels::*kernel;
  double (*exact)(double);
  double ulps;         // the largest error on targets with FMA
  double ulps_no_fma;  // and without
  SpecialValues special;
  // From here on the function rises: exp, tanh and relu everywhere, the others right of their
  // minimum.
  float rises_from;
  bool monotone;  // on every target, f(x) <= f(next x) for all x >= rises_from
};

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The figures of vec_math-inl.h and encore/ops.h.
inline constexpr Accuracy kAccuracies[] = {
    {"exp",
     &internal::ElementwiseKernels::exp,
     &Exp,
     1.0,
     1.25,
     {1, 1, kInfinity, 0},
     -kInfinity,
     true},
    {"tanh",
     &internal::ElementwiseKernels::tanh,
     &Tanh,
     1.5,
     1.5,
     {0, -0.0f, 1, -1},
     -kInfinity,
     true},
    {"relu",
     &internal::ElementwiseKernels::relu,
     &Relu,
     0.0,
     0.0,
     {0, -0.0f, kInfinity, 0},
     -kInfinity,
     true},
    {"gelu",
     &internal::ElementwiseKernels::gelu,
     &Gelu,
     2.0,
     2.0,
     {0, -0.0f, kInfinity, -0.0f},
     -0.75179163f,
     false},
    {"gelu_tanh",
     &internal::ElementwiseKernels::gelu_tanh,
     &GeluTanh,
     2.0,
     2.0,
     {0, -0.0f, kInfinity, -0.0f},
     -0.75246144f,
     false},
    {"silu",
     &internal::ElementwiseKernels::silu,
     &Silu,
     2.0,
     2.0,
     {0, -0.0f, kInfinity, -0.0f},
     -1.27846454f,
     false},
};

inline bool TargetHasFma(std::string_view target) {
  return !(target.starts_with("SSE") || target.starts_with("WASM") || target == "SSSE3" ||
           target == "EMU128" || target == "SCALAR");
}

// |y - exact| in units of the f32 spacing at `exact` (that of subnormals below 2^-126). Infinity
// where one is NaN and the other is not, or an infinite input's exact result is missed. A result of
// inf counts as 2^128, the next number if f32 had one.
inline double UlpError(float y, double exact) {
  constexpr double kMissed = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : kMissed;
  if (std::isinf(exact)) return static_cast<double>(y) == exact ? 0 : kMissed;
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

#endif  // ENCORE_REFERENCE_ACCURACY_H_
