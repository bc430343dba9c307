// SPDX-License-Identifier: Apache-2.0
//
// Scales of input channels from weights and norms.

#include "engine/nn/smoothing.h"

#include <algorithm>
#include <cmath>

namespace encore::internal {

void SumSquares(const WeightSource& source, size_t begin, size_t end, size_t first, size_t last,
                float* sums) {
  constexpr size_t kPiece = 256;
  float piece[kPiece];
  for (size_t k = first; k < last; k += kPiece) {
    const size_t count = std::min(kPiece, last - k);
    std::fill_n(sums + k, count, 0.0f);
    for (size_t row = begin; row < end; ++row) {
      ReadRows(source, row, 1, k, count, piece, kPiece);
      for (size_t i = 0; i < count; ++i) sums[k + i] += piece[i] * piece[i];
    }
  }
}

void ScalesFromNorm(const PackedNorm* norm, size_t k, float* sums) {
  constexpr float kLeast = 0x1p-10f;
  constexpr float kLeastScale = 0x1p-8f;
  const auto magnitude = [norm](size_t i) {
    if (norm == nullptr || !norm->given()) return 1.0f;
    const float gamma = norm->weight.data() == nullptr ? 1.0f : norm->weight.data()[i];
    const float beta = norm->bias.data() == nullptr ? 0.0f : norm->bias.data()[i];
    return std::fabs(gamma) + std::fabs(beta);
  };
  float largest_m = 0;
  float largest_c = 0;
  for (size_t i = 0; i < k; ++i) {
    sums[i] = std::sqrt(sums[i]);
    largest_c = std::max(largest_c, sums[i]);
    largest_m = std::max(largest_m, magnitude(i));
  }
  if (!(largest_m > 0x1p-60f && largest_m < 0x1p60f && largest_c > 0x1p-60f &&
        largest_c < 0x1p60f)) {
    std::fill_n(sums, k, 1.0f);  // nothing to go by
    return;
  }
  float largest = 0;
  for (size_t i = 0; i < k; ++i) {
    const float m = std::max(magnitude(i), kLeast * largest_m);
    const float c = std::max(sums[i], kLeast * largest_c);
    sums[i] = std::sqrt(m / c);
    largest = std::max(largest, sums[i]);
  }
  for (size_t i = 0; i < k; ++i) sums[i] = std::max(sums[i] / largest, kLeastScale);
}

}  // namespace encore::internal
