// SPDX-License-Identifier: Apache-2.0
//
// The encoder in double precision, compiled for the types of number that callers use.

#include "reference/encoder.h"

#include "reference/feed_forward.h"
#include "reference/norm.h"
#include "reference/number.h"
#include "reference/self_attention.h"

namespace encore::reference {
namespace {

template <typename T>
Matrix<T> Add(Matrix<T> a, const Matrix<T>& b) {
  for (size_t i = 0; i < a.data.size(); ++i) a.data[i] = a.data[i] + b.data[i];
  return a;
}

// The third sublayer of a layer with layer_input, on its output y; x0 is the encoder's input.
template <typename T>
Matrix<T> AddLayerInput(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& y,
                        const Matrix<T>& x0) {
  if (!c.layer_input) return y;
  Matrix<T> inner = Linear(y, w.input_gate.weight, w.input_gate.bias);
  const Matrix<T> input =
      Norm(c.layer_input->norm, Linear(x0, w.input_proj.weight, w.input_proj.bias),
           w.input_norm.weight, w.input_norm.bias);
  for (size_t i = 0; i < inner.data.size(); ++i) {
    inner.data[i] = Activate(c.activation, inner.data[i]) * input.data[i];
  }
  Matrix<T> sum = Add(y, Norm(c.norm, Linear(inner, w.input_output.weight, w.input_output.bias),
                              w.post_input_norm.weight, w.post_input_norm.bias));
  if (w.layer_scalar.empty()) return sum;
  const Matrix<T> scalar = Numbers<T>(w.layer_scalar);
  for (T& element : sum.data) element = element * scalar(0, 0);
  return sum;
}

// What follows in a layer with a convolution, on y of the sublayers before it.
template <typename T>
Matrix<T> AddConvolution(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& y,
                         const Matrix<T>& x0) {
  if (!c.convolution) return y;
  const size_t kernel = c.convolution->kernel;
  Matrix<T> joined(y.rows, y.cols * kernel);
  for (size_t i = 0; i < y.rows; ++i) {
    for (size_t t = 0; t < kernel; ++t) {
      const size_t from = i + t;  // of x0's rows, counted from kernel / 2 before the first
      if (from < kernel / 2 || from - kernel / 2 >= y.rows) continue;
      for (size_t k = 0; k < y.cols; ++k) joined(i, k * kernel + t) = x0(from - kernel / 2, k);
    }
  }
  Matrix<T> z = Linear(joined, w.convolution.weight, w.convolution.bias);
  for (T& element : z.data) element = Activate(c.convolution->activation, element);
  return Norm(c.norm, Add(y, z), w.convolution_norm.weight, w.convolution_norm.bias);
}

// x [S, d_model]; *weights becomes [head]: [S, S].
template <typename T>
Matrix<T> EncodeLayer(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& x,
                      const AttentionMask& mask, std::span<const size_t> positions,
                      std::vector<Matrix<T>>* weights) {
  const auto attention = [&](const Matrix<T>& in) {
    return SelfAttention(c, w, in, mask, positions, weights);
  };
  const auto feed_forward = [&](const Matrix<T>& in) { return FeedForward(c, w, in); };
  const auto norm1 = [&](const Matrix<T>& in) {
    return c.attention_norm ? Norm(c.norm, in, w.norm1.weight, w.norm1.bias) : in;
  };
  const auto norm2 = [&](const Matrix<T>& in) {
    return Norm(c.norm, in, w.norm2.weight, w.norm2.bias);
  };
  const auto post1 = [&](const Matrix<T>& in) {
    return Norm(c.norm, in, w.post_norm1.weight, w.post_norm1.bias);
  };
  const auto post2 = [&](const Matrix<T>& in) {
    return Norm(c.norm, in, w.post_norm2.weight, w.post_norm2.bias);
  };
  switch (c.norm_placement) {
    case NormPlacement::kPost: {
      const Matrix<T> h = norm1(Add(x, attention(x)));
      return norm2(Add(h, feed_forward(h)));
    }
    case NormPlacement::kPre: {
      const Matrix<T> h = Add(x, attention(norm1(x)));
      return Add(h, feed_forward(norm2(h)));
    }
    case NormPlacement::kBoth: {
      const Matrix<T> h = Add(x, post1(attention(norm1(x))));
      return Add(h, post2(feed_forward(norm2(h))));
    }
  }
  return x;
}

}  // namespace

template <typename T>
EncoderResult<T> Encode(const EncoderConfig& config, const EncoderWeights& weights, ConstView x,
                        const AttentionMask& mask, std::span<const size_t> positions) {
  EncoderResult<T> result;
  const Matrix<T> x0(x);
  Matrix<T> h = x0;
  for (size_t i = 0; i < config.num_layers(); ++i) {
    h = EncodeLayer(config.layers[i], weights.layers[i], h, mask, positions,
                    &result.attention.emplace_back());
    h = AddLayerInput(config.layers[i], weights.layers[i], h, x0);
    h = AddConvolution(config.layers[i], weights.layers[i], h, x0);
    result.hidden.push_back(h);
  }
  result.y = Norm(config.final_norm, h, weights.norm.weight, weights.norm.bias);
  return result;
}

template EncoderResult<double> Encode(const EncoderConfig&, const EncoderWeights&, ConstView,
                                      const AttentionMask&, std::span<const size_t>);
template EncoderResult<Rounded> Encode(const EncoderConfig&, const EncoderWeights&, ConstView,
                                       const AttentionMask&, std::span<const size_t>);

}  // namespace encore::reference
