// SPDX-License-Identifier: Apache-2.0
//
// The encoder in double precision, one sequence at a time: blocks of multi-head attention and a
// feed-forward network with residuals and norms, as torch.nn.TransformerEncoder in evaluation mode.

#ifndef ENCORE_TESTS_REFERENCE_ENCODER_H_
#define ENCORE_TESTS_REFERENCE_ENCODER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "encore/encoder.h"
#include "tests/reference/activation.h"
#include "tests/reference/layer_norm.h"
#include "tests/reference/matmul.h"
#include "tests/reference/multi_head_attention.h"

namespace encore::reference {

template <typename T>
struct EncoderResult {
  Matrix<T> y;                                    // [S, d_model]
  std::vector<std::vector<Matrix<T>>> attention;  // [layer][head]: [S, S]
  std::vector<Matrix<T>> hidden;                  // [layer]: [S, d_model]
};

template <typename T>
Matrix<T> Add(Matrix<T> a, const Matrix<T>& b) {
  for (size_t i = 0; i < a.data.size(); ++i) a.data[i] = a.data[i] + b.data[i];
  return a;
}

// x [S, d_model]: one sequence.
template <typename T>
EncoderResult<T> Encode(const EncoderConfig& config, const EncoderWeights& weights, ConstView x,
                        const AttentionMask& mask = {}, std::span<const size_t> positions = {}) {
  const double eps = config.layer_norm_eps;
  EncoderResult<T> result;
  Matrix<T> h(x);
  for (const EncoderLayerWeights& w : weights.layers) {
    std::vector<Matrix<T>>& taps = result.attention.emplace_back();
    const auto attention = [&](const Matrix<T>& in) {
      const MultiHeadAttentionWeights projections = {
          config.num_heads, w.in_proj_weight, w.in_proj_bias, w.out_proj_weight, w.out_proj_bias};
      return MultiHeadAttention(in, in, in, projections,
                                DefaultScale(config.d_model / config.num_heads), mask, positions,
                                &taps);
    };
    const auto norm1 = [&](const Matrix<T>& in) {
      return LayerNorm(in, w.norm1_weight, w.norm1_bias, eps);
    };
    const auto norm2 = [&](const Matrix<T>& in) {
      return LayerNorm(in, w.norm2_weight, w.norm2_bias, eps);
    };
    const auto feed_forward = [&](const Matrix<T>& in) {
      Matrix<T> inner = Linear(in, w.linear1_weight, w.linear1_bias);
      for (T& v : inner.data) v = Activate(config.activation, v);
      return Linear(inner, w.linear2_weight, w.linear2_bias);
    };
    if (config.norm_first) {
      h = Add(h, attention(norm1(h)));
      h = Add(h, feed_forward(norm2(h)));
    } else {
      h = norm1(Add(h, attention(h)));
      h = norm2(Add(h, feed_forward(h)));
    }
    result.hidden.push_back(h);
  }
  result.y = config.final_norm ? LayerNorm(h, weights.norm_weight, weights.norm_bias, eps) : h;
  return result;
}

}  // namespace encore::reference

#endif  // ENCORE_TESTS_REFERENCE_ENCODER_H_
