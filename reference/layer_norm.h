// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm in double precision, as torch.nn.LayerNorm.

#ifndef ENCORE_REFERENCE_LAYER_NORM_H_
#define ENCORE_REFERENCE_LAYER_NORM_H_

#include <cstddef>

#include "encore/ops.h"
#include "reference/matmul.h"

namespace encore::reference {

// (x - mean) / sqrt(variance + epsilon) * weight + bias of each row; weight and bias may be empty.
template <typename T>
Matrix<T> LayerNorm(Matrix<T> x, ConstView weight, ConstView bias, double epsilon) {
  const T count(static_cast<double>(x.cols));
  for (size_t i = 0; i < x.rows; ++i) {
    T sum(0.0);
    for (size_t c = 0; c < x.cols; ++c) sum = sum + x(i, c);
    const T mean = sum / count;
    T squares(0.0);
    for (size_t c = 0; c < x.cols; ++c) {
      x(i, c) = x(i, c) - mean;
      squares = squares + x(i, c) * x(i, c);
    }
    const T deviation = SquareRoot(squares / count + T(epsilon));
    for (size_t c = 0; c < x.cols; ++c) {
      x(i, c) = x(i, c) / deviation;
      if (!weight.empty()) x(i, c) = x(i, c) * T(static_cast<double>(weight(c)));
      if (!bias.empty()) x(i, c) = x(i, c) + T(static_cast<double>(bias(c)));
    }
  }
  return x;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_LAYER_NORM_H_
