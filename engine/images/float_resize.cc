// SPDX-License-Identifier: Apache-2.0
//
// Antialiased interpolation of floats, by its weights along both directions.

#include "engine/images/float_resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/strict_math.h"  // IWYU pragma: keep

namespace encore::inline v0_1::internal {
namespace {

// Rows that are computed together, and of a pixel their channels.
constexpr size_t kRows = 8;
constexpr size_t kLanes = 3 * kRows;

float Triangle(float x) {
  x = std::abs(x);
  return x < 1 ? static_cast<float>(1.0 - static_cast<double>(x)) : 0.0f;
}

float Cubic(float x) {
  constexpr float a = -0.5f;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The pixels that one of the result reads.
struct Taps {
  size_t first = 0;
  std::vector<float> weights;
  size_t end() const { return first + weights.size(); }
};

// Of one direction. What is f32 and what is double here is so in torch.
std::vector<Taps> AxisOf(ResizeFilter filter, size_t from, size_t to) {
  const bool cubic = filter == ResizeFilter::kBicubic;
  const double reach = cubic ? 2 : 1;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const auto support = static_cast<float>(scale >= 1 ? reach * double{scale} : reach);
  const float inverse = scale >= 1 ? static_cast<float>(1.0 / double{scale}) : 1.0f;
  const auto most = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  std::vector<Taps> axis(to);
  for (size_t i = 0; i < to; ++i) {
    const auto center = static_cast<float>(double{scale} * (static_cast<double>(i) + 0.5));
    const auto edge = [](float at) {
      const double moved = double{at} + 0.5;
      return static_cast<int64_t>(moved);
    };
    const int64_t first = std::max<int64_t>(edge(center - support), 0);
    const int64_t end = std::min(edge(center + support), static_cast<int64_t>(from));
    std::vector<float> weights(static_cast<size_t>(std::clamp<int64_t>(end - first, 0, most)));
    float sum = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const float distance = static_cast<float>(first + static_cast<int64_t>(k)) - center;
      const auto x = static_cast<float>((double{distance} + 0.5) * double{inverse});
      weights[k] = cubic ? Cubic(x) : Triangle(x);
      sum += weights[k];
    }
    for (float& weight : weights) {
      if (sum != 0) weight /= sum;
    }
    axis[i] = {static_cast<size_t>(first), std::move(weights)};
  }
  return axis;
}

}  // namespace

void ResizeFloats(const ImageView& image, std::span<const std::array<float, 256>, 3> values,
                  ResizeFilter filter, const ImageSize& size, float* out) {
  const std::vector<Taps> across = AxisOf(filter, image.width, size.width);
  const std::vector<Taps> down = AxisOf(filter, image.height, size.height);
  const size_t width = 3 * size.width;
  std::vector<float> turned(image.width * kLanes);  // [pixels, kRows, 3]
  std::vector<float> narrow(kRows * width);         // [kRows, width]
  std::fill_n(out, size.height * width, 0.0f);
  for (size_t top = 0; top < image.height; top += kRows) {
    const size_t rows = std::min(kRows, image.height - top);
    for (size_t row = 0; row < rows; ++row) {
      const uint8_t* pixel = image.pixels + (top + row) * image.stride;
      float* to = turned.data() + 3 * row;
      for (size_t x = 0; x < image.width; ++x, pixel += 3, to += kLanes) {
        for (size_t c = 0; c < 3; ++c) to[c] = values[c][pixel[c]];
      }
    }
    for (size_t x = 0; x < size.width; ++x) {
      std::array<float, kLanes> sums = {};
      const float* in = turned.data() + across[x].first * kLanes;
      for (const float weight : across[x].weights) {
        for (size_t i = 0; i < kLanes; ++i) sums[i] += weight * in[i];
        in += kLanes;
      }
      for (size_t row = 0; row < rows; ++row) {
        std::copy_n(sums.data() + 3 * row, 3, narrow.data() + row * width + 3 * x);
      }
    }
    for (size_t y = 0; y < size.height; ++y) {
      const size_t end = std::min(down[y].end(), top + rows);
      for (size_t row = std::max(down[y].first, top); row < end; ++row) {
        const float weight = down[y].weights[row - down[y].first];
        const float* const in = narrow.data() + (row - top) * width;
        for (size_t i = 0; i < width; ++i) out[y * width + i] += weight * in[i];
      }
    }
  }
}

}  // namespace encore::internal
