// SPDX-License-Identifier: Apache-2.0
//
// Softmax of rows in double precision.

#ifndef ENCORE_REFERENCE_SOFTMAX_H_
#define ENCORE_REFERENCE_SOFTMAX_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "reference/matmul.h"

namespace encore::reference {

// e^x for x <= 0 as softmax takes it: right to 3 + 0.05 |x| units u, and 0 below e^-87.
template <typename T>
T ExpNonPositive(T x) {
  const double v = Value(x);
  const double y = std::exp(v);
  const double flushed = v < -86.99 ? y : 0;
  return Apply(x, y, y, Rounded::kUnit * (3 + 0.05 * std::fabs(v)) * y + flushed);
}

// y_i = e^(x_i - max x) / sum_j e^(x_j - max x) of each row; zeros for a row of only -inf.
template <typename T>
Matrix<T> Softmax(Matrix<T> x) {
  constexpr double kMinusInf = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < x.rows; ++i) {
    double largest = kMinusInf;
    for (size_t c = 0; c < x.cols; ++c) largest = std::max(largest, Value(x(i, c)));
    T sum(0.0);
    for (size_t c = 0; c < x.cols; ++c) {
      T& p = x(i, c);
      p = Value(p) == kMinusInf ? T(0.0) : ExpNonPositive(p - T(largest));
      sum = sum + p;
    }
    if (Value(sum) == 0) continue;
    // By way of 1 / sum, which is rounded as well.
    for (size_t c = 0; c < x.cols; ++c) x(i, c) = x(i, c) * (T(1.0) / sum);
  }
  return x;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_SOFTMAX_H_
