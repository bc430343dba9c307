// SPDX-License-Identifier: Apache-2.0
//
// One step of the chain that every element of a matrix product is, for tests that want its very
// bits.

#ifndef ENCORE_TESTS_SUPPORT_FMA_CHAIN_H_
#define ENCORE_TESTS_SUPPORT_FMA_CHAIN_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace encore {

// a * b + c, rounded once on targets with FMA and twice on others.
inline float MulAdd(bool fma, float a, float b, float c) {
  if (fma) return std::fma(a, b, c);
  const float product = a * b;  // built with -ffp-contract=off
  return product + c;
}

// What a tile does to a sum at its end; without a scale or residual that is 1 and -0, which change
// nothing.
inline float FinishSum(float sum, float scale, float residual, bool relu) {
  const float scaled = sum * scale;
  const float y = scaled + residual;
  return relu && y < 0 ? 0.0f : y;
}

// Equal bits, or both NaN: which NaN comes out of two is a target's own business.
inline bool SameFloat(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_FMA_CHAIN_H_
