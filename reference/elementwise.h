// SPDX-License-Identifier: Apache-2.0
//
// What the elementwise functions of encore/ops.h are, in double precision, for f32 arguments. Each
// is written so that nothing cancels in its tails: its error is far below an f32 ulp everywhere.

#ifndef ENCORE_REFERENCE_ELEMENTWISE_H_
#define ENCORE_REFERENCE_ELEMENTWISE_H_

#include <cmath>
#include <limits>

namespace encore::reference {

inline double Exp(double x) { return std::exp(x); }

inline double Tanh(double x) { return std::tanh(x); }

inline double Relu(double x) { return x < 0 ? 0.0 : x; }

// x Phi(x), where Phi(x) = erfc(-x / sqrt 2) / 2. The limit at -inf is -0.
inline double Gelu(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;
  constexpr double kSqrtHalf = 0.70710678118654752440;
  return x * (0.5 * std::erfc(-x * kSqrtHalf));
}

// x / (1 + e^-y), for y that goes to +-inf with x.
inline double TimesSigmoid(double x, double y) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;
  return x / (1.0 + std::exp(-y));
}

// x / 2 (1 + tanh u) = x / (1 + e^(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3).
inline double GeluTanh(double x) {
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  return TimesSigmoid(x, 2.0 * kSqrtTwoOverPi * (x + 0.044715 * x * x * x));
}

inline double Silu(double x) { return TimesSigmoid(x, x); }

inline double QuickGelu(double x) { return TimesSigmoid(x, 1.702 * x); }

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_ELEMENTWISE_H_
