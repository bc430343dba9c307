// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm in double precision, as torch.nn.RMSNorm.

#ifndef ENCORE_REFERENCE_RMS_NORM_H_
#define ENCORE_REFERENCE_RMS_NORM_H_

#include <cstddef>

#include "encore/ops.h"
#include "reference/matmul.h"

namespace encore::reference {

// x / sqrt(mean of x^2 + epsilon) * weight + bias of each row; weight and bias may be empty.
template <typename T>
Matrix<T> RmsNorm(Matrix<T> x, ConstView weight, ConstView bias, double epsilon) {
  for (size_t i = 0; i < x.rows; ++i) {
    T squares(0.0);
    for (size_t c = 0; c < x.cols; ++c) squares = squares + x(i, c) * x(i, c);
    const T root = SquareRoot(squares / T(static_cast<double>(x.cols)) + T(epsilon));
    for (size_t c = 0; c < x.cols; ++c) {
      x(i, c) = x(i, c) / root;
      if (!weight.empty()) x(i, c) = x(i, c) * T(static_cast<double>(weight(c)));
      if (!bias.empty()) x(i, c) = x(i, c) + T(static_cast<double>(bias(c)));
    }
  }
  return x;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_RMS_NORM_H_
