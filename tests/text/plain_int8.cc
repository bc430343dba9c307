// SPDX-License-Identifier: Apache-2.0
//
// The layer, step by step.

#include "tests/text/plain_int8.h"

#include <algorithm>
#include <cmath>

namespace encore {
namespace {

using Doubles = std::vector<double>;

// To -127 .. 127 steps of the largest magnitude / 127.
void RoundWeights(double* row, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(row[i]));
  const double scale = largest / 127;
  for (size_t i = 0; i < count; ++i) row[i] = std::round(row[i] / scale) * scale;
}

// To 0 .. 255 steps from the least to the largest, 0 among them.
void RoundToken(double* row, size_t count) {
  const double low = std::min(0.0, *std::min_element(row, row + count));
  const double high = std::max(0.0, *std::max_element(row, row + count));
  const double scale = (high - low) / 255;
  const double zero = std::round(-low / scale);
  for (size_t i = 0; i < count; ++i) {
    row[i] = (std::clamp(std::round(row[i] / scale) + zero, 0.0, 255.0) - zero) * scale;
  }
}

Doubles Linear(const WeightAndBias& w, Doubles x, size_t inputs, Plain plain) {
  Doubles weight(w.weight.begin(), w.weight.end());
  const size_t outputs = w.bias.size();
  const size_t tokens = x.size() / inputs;
  if (plain == Plain::kInt8) {
    for (size_t n = 0; n < outputs; ++n) RoundWeights(&weight[n * inputs], inputs);
    for (size_t t = 0; t < tokens; ++t) RoundToken(&x[t * inputs], inputs);
  }
  Doubles y(tokens * outputs);
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t n = 0; n < outputs; ++n) {
      double sum = static_cast<double>(w.bias[n]);
      for (size_t k = 0; k < inputs; ++k) sum += x[t * inputs + k] * weight[n * inputs + k];
      y[t * outputs + n] = sum;
    }
  }
  return y;
}

// Rows of q, k and v to the heads' outputs, side by side.
Doubles Attend(const Doubles& qkv, const PlainSizes& sizes) {
  const size_t d = sizes.d;
  const size_t size = d / sizes.heads;
  const size_t tokens = qkv.size() / (3 * d);
  Doubles y(tokens * d, 0.0);
  for (size_t i = 0; i < tokens; ++i) {
    const size_t begin = i / sizes.length * sizes.length;
    for (size_t column = 0; column < d; column += size) {
      Doubles weights(sizes.length);
      double sum = 0;
      for (size_t j = 0; j < sizes.length; ++j) {
        double score = 0;
        for (size_t c = column; c < column + size; ++c) {
          score += qkv[i * 3 * d + c] * qkv[(begin + j) * 3 * d + d + c];
        }
        sum += weights[j] = std::exp(score / std::sqrt(static_cast<double>(size)));
      }
      for (size_t j = 0; j < sizes.length; ++j) {
        for (size_t c = column; c < column + size; ++c) {
          y[i * d + c] += weights[j] / sum * qkv[(begin + j) * 3 * d + 2 * d + c];
        }
      }
    }
  }
  return y;
}

Doubles AddAndNorm(Doubles x, const Doubles& y, const WeightAndBias& norm) {
  const size_t d = norm.bias.size();
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  for (size_t row = 0; row < x.size(); row += d) {
    double mean = 0;
    double squares = 0;
    for (size_t c = 0; c < d; ++c) mean += x[row + c] / static_cast<double>(d);
    for (size_t c = 0; c < d; ++c) {
      squares += (x[row + c] - mean) * (x[row + c] - mean) / static_cast<double>(d);
    }
    for (size_t c = 0; c < d; ++c) {
      x[row + c] =
          (x[row + c] - mean) / std::sqrt(squares + 1e-5) * static_cast<double>(norm.weight[c]) +
          static_cast<double>(norm.bias[c]);
    }
  }
  return x;
}

}  // namespace

EncoderLayerWeights PlainLayer::Views(size_t d, size_t inner) const {
  const auto matrix = [](const WeightAndBias& w, size_t outputs, size_t inputs) {
    return ConstView(w.weight.data(), {outputs, inputs});
  };
  const auto vector = [](const std::vector<float>& values) {
    return ConstView(values.data(), {values.size()});
  };
  return {.in_proj = {.weight = matrix(qkv, 3 * d, d), .bias = vector(qkv.bias)},
          .out_proj = {.weight = matrix(out, d, d), .bias = vector(out.bias)},
          .linear1 = {.weight = matrix(linear1, inner, d), .bias = vector(linear1.bias)},
          .linear2 = {.weight = matrix(linear2, d, inner), .bias = vector(linear2.bias)},
          .norm1 = {.weight = vector(norm1.weight), .bias = vector(norm1.bias)},
          .norm2 = {.weight = vector(norm2.weight), .bias = vector(norm2.bias)}};
}

std::vector<double> RunPlain(const PlainLayer& layer, const PlainSizes& sizes,
                             const std::vector<float>& x, Plain plain) {
  Doubles h(x.begin(), x.end());
  const Doubles heads = Attend(Linear(layer.qkv, h, sizes.d, plain), sizes);
  h = AddAndNorm(std::move(h), Linear(layer.out, heads, sizes.d, plain), layer.norm1);
  Doubles inner = Linear(layer.linear1, h, sizes.d, plain);
  for (double& v : inner) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
  return AddAndNorm(std::move(h), Linear(layer.linear2, inner, sizes.inner, plain), layer.norm2);
}

}  // namespace encore
