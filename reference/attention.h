// SPDX-License-Identifier: Apache-2.0
//
// Attention of one head over one sequence in double precision: softmax(q k^T * scale + mask) v,
// with a window and a bias by distance.

#ifndef ENCORE_REFERENCE_ATTENTION_H_
#define ENCORE_REFERENCE_ATTENTION_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

#include "encore/ops.h"
#include "reference/matmul.h"
#include "reference/softmax.h"

namespace encore::reference {

// What goes by the places of query i and key j in the sequence, whatever `positions` are.
struct ByDistance {
  std::optional<size_t> window = {};  // query i sees keys j with |i - j| <= window only
  const float* bias = nullptr;        // bias[j - i] is added to the score; null for none

  bool Sees(size_t i, size_t j) const { return !window || (i < j ? j - i : i - j) <= *window; }
  double Bias(size_t i, size_t j) const {
    return bias[static_cast<ptrdiff_t>(j) - static_cast<ptrdiff_t>(i)];
  }
};

// Whether query i may see key j, where the mask's row and column are those of positions[i] and
// positions[j], or i and j. `causal` goes by i and j themselves.
inline bool Sees(const AttentionMask& mask, std::span<const size_t> positions, size_t i, size_t j,
                 const ByDistance& distance = {}) {
  if ((mask.causal && j > i) || !distance.Sees(i, j)) return false;
  const size_t row = positions.empty() ? i : positions[i];
  const size_t col = positions.empty() ? j : positions[j];
  if (!mask.blocked.empty() && mask.blocked(row, col)) return false;
  return mask.additive.empty() ||
         mask.additive(row, col) != -std::numeric_limits<float>::infinity();
}

// What the mask adds to the score of query i and key j, which it lets be seen.
inline double Added(const AttentionMask& mask, std::span<const size_t> positions, size_t i,
                    size_t j) {
  const size_t row = positions.empty() ? i : positions[i];
  const size_t col = positions.empty() ? j : positions[j];
  return static_cast<double>(mask.additive(row, col));
}

// softmax(q k^T * scale + bias) v over the keys that a query sees. q [Sq, D], k [Sk, D], v [Sk,
// Dv]. sees(i, j) tells whether query i sees key j; add_bias(score, i, j) returns the score with
// all that is added to it. Returns [Sq, Dv]; *weights becomes [Sq, Sk]. The largest score is taken
// off before the exponential; whatever is taken off drops out of the result, so its error does too.
template <typename T, typename Sees, typename AddBias>
Matrix<T> AttentionOver(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, double scale,
                        const Sees& sees, const AddBias& add_bias, Matrix<T>* weights) {
  Matrix<T> out(q.rows, v.cols);
  *weights = Matrix<T>(q.rows, k.rows);
  for (size_t i = 0; i < q.rows; ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < k.rows; ++j) {
      if (!sees(i, j)) continue;
      T score(0.0);
      for (size_t d = 0; d < q.cols; ++d) score = score + q(i, d) * k(j, d);
      score = score * (T(scale) * T(1.0));  // the factor is rounded to f32
      (*weights)(i, j) = add_bias(score, i, j);
      largest = std::max(largest, Value((*weights)(i, j)));
    }
    T sum(0.0);
    for (size_t j = 0; j < k.rows; ++j) {
      if (!sees(i, j)) continue;
      T& p = (*weights)(i, j);
      p = ExpNonPositive(p - T(largest));
      sum = sum + p;
      for (size_t c = 0; c < v.cols; ++c) out(i, c) = out(i, c) + p * v(j, c);
    }
    if (Value(sum) == 0) continue;  // sees no key: zeros
    for (size_t j = 0; j < k.rows; ++j) (*weights)(i, j) = (*weights)(i, j) / sum;
    for (size_t c = 0; c < v.cols; ++c) out(i, c) = out(i, c) / sum;
  }
  return out;
}

// Under a mask whose row and column are those of positions[i] and positions[j], or i and j. T is
// double or Rounded.
template <typename T>
Matrix<T> Attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, double scale,
                    const AttentionMask& mask, std::span<const size_t> positions,
                    Matrix<T>* weights, const ByDistance& distance = {});

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_ATTENTION_H_
