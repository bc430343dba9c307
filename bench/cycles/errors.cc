// SPDX-License-Identifier: Apache-2.0
//
// Samples of floats and rows, and their exact results, for errors.h.

#include "bench/cycles/errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/reference/accuracy.h"
#include "tests/reference/layer_norm.h"
#include "tests/reference/softmax.h"
#include "tests/reference/tile_accuracy.h"

namespace encore::bench {
namespace {

constexpr uint64_t kStep = 8191;
constexpr size_t kWholeVectors = 64;  // the sample's size is a multiple of it

std::vector<float> SampleOf(double low, double high) {
  std::vector<float> sample;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (x >= low && x <= high) sample.push_back(x);
  }
  sample.resize((sample.size() + kWholeVectors - 1) / kWholeVectors * kWholeVectors, sample.back());
  return sample;
}

}  // namespace

double SampledError(const UnaryCall& call, double (*exact)(double), double low, double high,
                    UlpOf unit) {
  const std::vector<float> x = SampleOf(low, high);
  std::vector<float> y(x.size());
  call(x.data(), y.data(), x.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double right = exact(x[i]);
    largest =
        std::max(largest, unit == UlpOf::kResult ? reference::UlpError(y[i], right)
                                                 : reference::TileErrorOf(x[i], y[i], right).ulps);
  }
  return largest;
}

double SoftmaxError(ConstView x, const float* y) {
  const auto exact = reference::Softmax(reference::Matrix<double>(x));
  double largest = 0;
  for (size_t i = 0; i < exact.data.size(); ++i) {
    largest = std::max(largest, reference::UlpError(y[i], exact.data[i]));
  }
  return largest;
}

double LayerNormError(ConstView x, ConstView weight, ConstView bias, float epsilon,
                      const float* y) {
  const auto exact = reference::LayerNorm(reference::Matrix<double>(x), weight, bias, epsilon);
  double largest = 0;
  for (size_t i = 0; i < exact.data.size(); ++i) {
    const double right = exact.data[i];
    const double spacing = reference::SpacingAt(std::max(std::fabs(right), 1.0));
    largest = std::max(largest, std::fabs(static_cast<double>(y[i]) - right) / spacing);
  }
  return largest;
}

}  // namespace encore::bench
