// SPDX-License-Identifier: Apache-2.0
//
// e^x and ln x in double precision by IEEE 754 steps alone: the same bits on every machine, where C
// libraries differ in the last place.
//
// Error: kLn2High should be 0x1.62e42ep-1. As it stands, the two parts exceed ln 2 by 5.6e-8:
// PortableExp is off by that for each factor of 2 (relative), PortableLog by as much (absolute).
// In rotary frequencies one undoes most of the other: 4.5e-8 is left, an ulp of f32 at most.
// Correcting the constant changes 17 % of them by an ulp, and with them published bits.

#ifndef ENCORE_ENGINE_BASE_DOUBLE_MATH_H_
#define ENCORE_ENGINE_BASE_DOUBLE_MATH_H_

#include <cmath>

#include "engine/base/strict_math.h"

namespace encore::inline v0_1::internal {

inline constexpr double kLn2High = 0x1.62e42fep-1;  // 24 bits: its products with integers are exact
inline constexpr double kLn2Low = 0x1.efa39ef35793cp-25;

// x > 0, finite and normal.
inline double PortableLog(double x) {
  // x = 2^n m, m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
  int n = 0;
  double m = std::frexp(x, &n);
  if (m < 0.7071067811865476) {
    m *= 2;
    --n;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int i = 25; i >= 3; i -= 2) sum = (sum + 1.0 / i) * square;
  return n * kLn2High + (n * kLn2Low + 2 * (s + s * sum));
}

// 0 below -708, infinity above 709.
inline double PortableExp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709) return HUGE_VAL;
  if (x < -708) return 0;
  // x = n ln 2 + r, |r| <= ln 2 / 2; e^r by its series.
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 0;
  for (int i = 17; i >= 1; --i) sum = (sum + 1) * (r / i);
  return std::ldexp(1 + sum, static_cast<int>(n));
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_DOUBLE_MATH_H_
