// SPDX-License-Identifier: Apache-2.0
//
// Scales of input channels from weights and norms.

#include "engine/nn/smoothing.h"

#include <algorithm>
#include <cmath>

namespace encore::inline v0_1::internal {

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

namespace {

// c [k] becomes s; magnitude(i) is m_i.
template <typename M>
void ScalesFrom(const M& magnitude, size_t k, float* c) {
  constexpr float kLeast = 0x1p-10f;
  constexpr float kLeastScale = 0x1p-8f;
  float largest_m = 0;
  float largest_c = 0;
  for (size_t i = 0; i < k; ++i) {
    largest_c = std::max(largest_c, c[i]);
    largest_m = std::max(largest_m, magnitude(i));
  }
  if (!(largest_m > 0x1p-60f && largest_m < 0x1p60f && largest_c > 0x1p-60f &&
        largest_c < 0x1p60f)) {
    std::fill_n(c, k, 1.0f);
    return;
  }
  float largest = 0;
  for (size_t i = 0; i < k; ++i) {
    const float m = std::max(magnitude(i), kLeast * largest_m);
    c[i] = std::sqrt(m / std::max(c[i], kLeast * largest_c));
    largest = std::max(largest, c[i]);
  }
  for (size_t i = 0; i < k; ++i) c[i] = std::max(c[i] / largest, kLeastScale);
}

}  // namespace

void ScalesFromNorm(const PackedNorm* norm, size_t k, float* sums) {
  for (size_t i = 0; i < k; ++i) sums[i] = std::sqrt(sums[i]);
  ScalesFrom(
      [norm](size_t i) {
        if (norm == nullptr || !norm->given()) return 1.0f;
        const float gamma = norm->weight.data() == nullptr ? 1.0f : norm->weight.data()[i];
        const float beta = norm->bias.data() == nullptr ? 0.0f : norm->bias.data()[i];
        return std::fabs(gamma) + std::fabs(beta);
      },
      k, sums);
}

void ScalesFromMagnitudes(const float* m, size_t k, float* c) {
  ScalesFrom([m](size_t i) { return m[i]; }, k, c);
}

}  // namespace encore::internal
