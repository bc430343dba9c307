// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that reports overflow.

#ifndef ENCORE_ENGINE_BASE_INT_MATH_H_
#define ENCORE_ENGINE_BASE_INT_MATH_H_

#include <cstddef>
#include <limits>

namespace encore::inline v0_1::internal {

// *out = a + b, or false (and *out untouched) if that exceeds size_t.
[[nodiscard]] constexpr bool CheckedAdd(size_t a, size_t b, size_t* out) {
  if (b > std::numeric_limits<size_t>::max() - a) return false;
  *out = a + b;
  return true;
}

// *out = a * b, or false (and *out untouched) if that exceeds size_t.
[[nodiscard]] constexpr bool CheckedMul(size_t a, size_t b, size_t* out) {
  if (b != 0 && a > std::numeric_limits<size_t>::max() / b) return false;
  *out = a * b;
  return true;
}

// The number of pieces of size `divisor` (> 0) that cover `value`.
constexpr size_t DivCeil(size_t value, size_t divisor) {
  // A division is slower than everything else that small products do between tiles.
  if (value <= divisor) return value != 0 ? 1 : 0;
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

// The least multiple of `multiple` (> 0) that is not below `value`; the caller knows that it fits
// into size_t.
constexpr size_t RoundUp(size_t value, size_t multiple) {
  return DivCeil(value, multiple) * multiple;
}

// With a check: false (and *out untouched) if the multiple exceeds size_t.
[[nodiscard]] constexpr bool CheckedRoundUp(size_t value, size_t multiple, size_t* out) {
  return CheckedMul(DivCeil(value, multiple), multiple, out);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_INT_MATH_H_
