// SPDX-License-Identifier: Apache-2.0
//
// The feed-forward network of an encoder layer in double precision, plain, gated or of experts.

#ifndef ENCORE_REFERENCE_FEED_FORWARD_H_
#define ENCORE_REFERENCE_FEED_FORWARD_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "reference/activation.h"
#include "reference/linear.h"
#include "reference/softmax.h"

namespace encore::reference {

// An expert is taken where fewer than top_k others have a larger p, or the same and come first.
template <typename T>
bool IsTaken(const Matrix<T>& p, size_t row, size_t expert, size_t top_k) {
  size_t before = 0;
  for (size_t e = 0; e < p.cols; ++e) {
    const double difference = Value(p(row, e)) - Value(p(row, expert));
    if (difference > 0 || (difference == 0 && e < expert)) ++before;
  }
  return before < top_k;
}

// bias + the sum of p linear2(activation(linear1 x)) over each token's experts.
template <typename T>
Matrix<T> Experts(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& x) {
  const Matrix<T> p = Softmax(Linear(x, w.router, {}));
  const Matrix<T> first = Numbers<T>(w.experts_first);
  const Matrix<T> second = Numbers<T>(w.experts_second);
  const Matrix<T> bias = w.experts_bias.empty() ? Matrix<T>(1, x.cols) : Numbers<T>(w.experts_bias);
  const Matrix<T> scale = w.layer_scale2.empty() ? Matrix<T>() : Numbers<T>(w.layer_scale2);
  Matrix<T> y(x.rows, x.cols);
  for (size_t i = 0; i < x.rows; ++i) {
    T taken(0.0);
    for (size_t e = 0; e < p.cols; ++e) {
      if (IsTaken(p, i, e, c.experts->top_k)) taken = taken + p(i, e);
    }
    for (size_t n = 0; n < y.cols; ++n) {
      y(i, n) = scale.data.empty() ? bias(0, n) : bias(0, n) * scale(0, n);
    }
    for (size_t e = 0; e < p.cols; ++e) {
      if (!IsTaken(p, i, e, c.experts->top_k)) continue;
      const T weight = c.experts->normalize_weights ? p(i, e) / taken : p(i, e);
      std::vector<T> inner(c.d_ff);
      for (size_t f = 0; f < c.d_ff; ++f) {
        T sum(0.0);
        for (size_t k = 0; k < x.cols; ++k) sum = sum + x(i, k) * first(e * c.d_ff + f, k);
        inner[f] = Activate(c.activation, sum);
      }
      for (size_t n = 0; n < y.cols; ++n) {
        T sum(0.0);
        for (size_t f = 0; f < c.d_ff; ++f) {
          const T number = second(e * c.d_ff + f, n);
          sum = sum + inner[f] * (scale.data.empty() ? number : number * scale(0, n));
        }
        y(i, n) = y(i, n) + weight * sum;
      }
    }
  }
  return y;
}

// linear2(activation(linear1 x)), or linear2(activation(gate x) * up x).
template <typename T>
Matrix<T> FeedForward(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& x) {
  if (c.experts) return Experts(c, w, x);
  Matrix<T> gate, up;
  if (c.gate == Gate::kNone) {
    gate = Linear(x, w.linear1.weight, w.linear1.bias);
  } else if (w.linear1.weight.empty()) {
    gate = Linear(x, w.gate_proj.weight, w.gate_proj.bias);
    up = Linear(x, w.up_proj.weight, w.up_proj.bias);
  } else {
    const Matrix<T> both = Linear(x, w.linear1.weight, w.linear1.bias);
    const bool first = c.gate == Gate::kFirstHalf;
    gate = Columns(both, first ? 0 : c.d_ff, c.d_ff);
    up = Columns(both, first ? c.d_ff : 0, c.d_ff);
  }
  for (size_t i = 0; i < gate.data.size(); ++i) {
    T& inner = gate.data[i];
    inner = Activate(c.activation, inner);
    if (c.gate != Gate::kNone) inner = inner * up.data[i];
  }
  return Linear(gate, w.linear2.weight, w.linear2.bias, w.layer_scale2);
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_FEED_FORWARD_H_
