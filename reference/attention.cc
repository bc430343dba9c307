// SPDX-License-Identifier: Apache-2.0
//
// Attention of one head, compiled for the types of number that callers use.

#include "reference/attention.h"

#include "reference/number.h"

namespace encore::reference {

template <typename T>
Matrix<T> Attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, double scale,
                    const AttentionMask& mask, std::span<const size_t> positions,
                    Matrix<T>* weights, const ByDistance& distance) {
  return AttentionOver(
      q, k, v, scale, [&](size_t i, size_t j) { return Sees(mask, positions, i, j, distance); },
      [&](T score, size_t i, size_t j) {
        if (mask.additive.empty() && distance.bias == nullptr) return score;
        T add(mask.additive.empty() ? distance.Bias(i, j) : Added(mask, positions, i, j));
        if (!mask.additive.empty() && distance.bias != nullptr) add = add + T(distance.Bias(i, j));
        return score + add;
      },
      weights);
}

template Matrix<double> Attention(const Matrix<double>&, const Matrix<double>&,
                                  const Matrix<double>&, double, const AttentionMask&,
                                  std::span<const size_t>, Matrix<double>*, const ByDistance&);
template Matrix<Rounded> Attention(const Matrix<Rounded>&, const Matrix<Rounded>&,
                                   const Matrix<Rounded>&, double, const AttentionMask&,
                                   std::span<const size_t>, Matrix<Rounded>*, const ByDistance&);

}  // namespace encore::reference
