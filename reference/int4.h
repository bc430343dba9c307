// SPDX-License-Identifier: Apache-2.0
//
// The definition of a product of Precision::kInt4: exact integers and f32 steps, in plain C++.

#ifndef ENCORE_REFERENCE_INT4_H_
#define ENCORE_REFERENCE_INT4_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace encore::reference {

inline constexpr size_t kInt4GroupSize = 32;

// a * b + c, rounded once, or twice on targets without FMA.
inline float Int4Step(bool fma, float a, float b, float c) {
  if (fma) return std::fma(a, b, c);
  const float product = a * b;  // built with -ffp-contract=off
  return product + c;
}

// start, and then for one group of 32 after another
//   sum = scale[group] * (sum of x[i] w[i] over the group, exact) + sum
// x: bytes of a row; w: integers -8 .. 7 of a column; both of scale.size() groups.
inline float Int4Sum(bool fma, std::span<const uint8_t> x, std::span<const int8_t> w,
                     std::span<const float> scale, float start) {
  float sum = start;
  for (size_t g = 0; g < scale.size(); ++g) {
    int32_t products = 0;
    for (size_t i = g * kInt4GroupSize; i < (g + 1) * kInt4GroupSize; ++i) products += x[i] * w[i];
    sum = Int4Step(fma, static_cast<float>(products), scale[g], sum);
  }
  return sum;
}

// The sum of scale * w over a column, one group after another.
inline float Int4ColumnSum(std::span<const int8_t> w, std::span<const float> scale) {
  float sum = 0;
  for (size_t g = 0; g < scale.size(); ++g) {
    int32_t of_group = 0;
    for (size_t i = g * kInt4GroupSize; i < (g + 1) * kInt4GroupSize; ++i) of_group += w[i];
    const float product = scale[g] * static_cast<float>(of_group);
    sum += product;
  }
  return sum;
}

// bias + row_scale * (sum - zero_point * column_sum).
inline float Int4Finish(bool fma, float sum, float row_scale, float zero_point, float column_sum,
                        float bias) {
  const float centred = Int4Step(fma, -zero_point, column_sum, sum);
  const float scaled = centred * row_scale;
  return scaled + bias;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_INT4_H_
