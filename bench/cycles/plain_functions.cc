// SPDX-License-Identifier: Apache-2.0
//
// Plain C++ on the C library's functions, for functions.h.

#include <algorithm>
#include <cmath>

#include "bench/cycles/functions.h"

namespace encore::bench {
namespace {

void ExpArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

void TanhArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

void GeluArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f));
}

void GeluTanhArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float u = 0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    y[i] = 0.5f * x[i] * (1.0f + std::tanh(u));
  }
}

void SiluArray(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}

void SoftmaxRows(const float* x, float* y, size_t rows, size_t cols) {
  for (; rows != 0; --rows, x += cols, y += cols) {
    float largest = x[0];
    for (size_t c = 1; c < cols; ++c) largest = std::max(largest, x[c]);
    float sum = 0.0f;
    for (size_t c = 0; c < cols; ++c) {
      y[c] = std::exp(x[c] - largest);
      sum += y[c];
    }
    for (size_t c = 0; c < cols; ++c) y[c] /= sum;
  }
}

void LayerNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                   size_t rows, size_t cols) {
  const float count = static_cast<float>(cols);
  for (; rows != 0; --rows, x += cols, y += cols) {
    float sum = 0.0f;
    for (size_t c = 0; c < cols; ++c) sum += x[c];
    const float mean = sum / count;
    float squares = 0.0f;
    for (size_t c = 0; c < cols; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float scale = 1.0f / std::sqrt(squares / count + epsilon);
    for (size_t c = 0; c < cols; ++c) y[c] = (x[c] - mean) * scale * weight[c] + bias[c];
  }
}

}  // namespace

const Functions& PlainFunctions() {
  static constexpr Functions kFunctions = {
      .exp = &ExpArray,
      .tanh = &TanhArray,
      .gelu = &GeluArray,
      .gelu_tanh = &GeluTanhArray,
      .silu = &SiluArray,
      .softmax = &SoftmaxRows,
      .layer_norm = &LayerNormRows,
  };
  return kFunctions;
}

}  // namespace encore::bench
