// SPDX-License-Identifier: Apache-2.0
//
// A norm of a layer in double precision, as NormConfig describes it.

#ifndef ENCORE_REFERENCE_NORM_H_
#define ENCORE_REFERENCE_NORM_H_

#include <cstddef>
#include <utility>

#include "encore/layer.h"
#include "reference/layer_norm.h"
#include "reference/linear.h"
#include "reference/rms_norm.h"

namespace encore::reference {

// norm(x) * (weight + offset) + bias of each row; weight and bias may be empty: 1 and 0.
template <typename T>
Matrix<T> Norm(const NormConfig& norm, Matrix<T> x, const WeightView& weight,
               const WeightView& bias) {
  if (norm.type == NormType::kLayerNorm) x = LayerNorm(std::move(x), {}, {}, norm.epsilon);
  if (norm.type == NormType::kRmsNorm) x = RmsNorm(std::move(x), {}, {}, norm.epsilon);
  const Matrix<T> factors = weight.empty() ? Matrix<T>() : Numbers<T>(weight);
  const Matrix<T> shifts = bias.empty() ? Matrix<T>() : Numbers<T>(bias);
  for (size_t i = 0; i < x.rows; ++i) {
    for (size_t c = 0; c < x.cols; ++c) {
      if (!weight.empty()) x(i, c) = x(i, c) * (factors(0, c) + T(norm.weight_offset));
      if (!bias.empty()) x(i, c) = x(i, c) + shifts(0, c);
    }
  }
  return x;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_NORM_H_
