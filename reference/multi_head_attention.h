// SPDX-License-Identifier: Apache-2.0
//
// Multi-head attention in double precision, as torch.nn.MultiheadAttention with batch_first, of one
// sequence.

#ifndef ENCORE_REFERENCE_MULTI_HEAD_ATTENTION_H_
#define ENCORE_REFERENCE_MULTI_HEAD_ATTENTION_H_

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "encore/ops.h"
#include "reference/attention.h"
#include "reference/linear.h"
#include "reference/matmul.h"

namespace encore::reference {

// query [Sq, d_model], key and value [Sk, d_model]; *weights becomes [head]: [Sq, Sk].
template <typename T>
Matrix<T> MultiHeadAttention(const Matrix<T>& query, const Matrix<T>& key, const Matrix<T>& value,
                             const MultiHeadAttentionWeights& w, double scale,
                             const AttentionMask& mask, std::span<const size_t> positions,
                             std::vector<Matrix<T>>* weights) {
  const size_t d = query.cols;
  const size_t size = d / w.num_heads;
  const auto project = [&](const Matrix<T>& x, size_t part) {
    // Of all three at once, which is wasteful and plain.
    return Columns(Linear(x, w.in_proj_weight, w.in_proj_bias), part * d, d);
  };
  const Matrix<T> q = project(query, 0);
  const Matrix<T> k = project(key, 1);
  const Matrix<T> v = project(value, 2);
  Matrix<T> context(query.rows, d);
  weights->resize(w.num_heads);
  for (size_t h = 0; h < w.num_heads; ++h) {
    const Matrix<T> head =
        Attention(Columns(q, h * size, size), Columns(k, h * size, size),
                  Columns(v, h * size, size), scale, mask, positions, &(*weights)[h]);
    SetColumns(context, h * size, head);
  }
  return Linear(context, w.out_proj_weight, w.out_proj_bias);
}

inline double DefaultScale(size_t head_size) {
  return 1 / std::sqrt(static_cast<double>(head_size));
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_MULTI_HEAD_ATTENTION_H_
