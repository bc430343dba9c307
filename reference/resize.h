// SPDX-License-Identifier: Apache-2.0
//
// Image.resize of Pillow 13 (its files Resample and Geometry in C), in its fixed point.

#ifndef ENCORE_REFERENCE_RESIZE_H_
#define ENCORE_REFERENCE_RESIZE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "encore/resize.h"

namespace encore::reference {

inline double ResizeWeight(ResizeFilter filter, double x) {
  const auto sinc = [](double t) { return t == 0 ? 1.0 : std::sin(t) / t; };
  const double pi = std::numbers::pi, a = std::abs(x);
  switch (filter) {
    case ResizeFilter::kLanczos:
      return x >= -3 && x < 3 ? sinc(pi * x) * sinc(pi * (x / 3)) : 0;
    case ResizeFilter::kBilinear:
      return a < 1 ? 1 - a : 0;
    case ResizeFilter::kBicubic:
      return a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? (((a - 5) * a + 8) * a - 4) * -0.5 : 0;
    case ResizeFilter::kHamming:
      return a < 1 ? sinc(pi * a) * (a == 0 ? 1 : 0.54f + 0.46f * std::cos(pi * a)) : 0;
    default:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
  }
}

// Bytes [rows, from, lanes] to [rows, to, lanes].
inline std::vector<uint8_t> ResizeAxis(const std::vector<uint8_t>& in, size_t rows, size_t from,
                                       size_t to, size_t lanes, ResizeFilter filter) {
  constexpr double kSupport[] = {0, 3, 1, 2, 0.5, 1};  // by the filters' numbers
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double wide = std::max(scale, 1.0);
  const double support = kSupport[static_cast<size_t>(filter)] * wide;
  std::vector<uint8_t> out(rows * to * lanes);
  double nearest = scale * 0.5;
  for (size_t x = 0; x < to; ++x, nearest += scale) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    auto first = static_cast<size_t>(std::max(centre - support + 0.5, 0.0));
    size_t end = std::min(static_cast<size_t>(centre + support + 0.5), from);
    if (filter == ResizeFilter::kNearest) end = (first = static_cast<size_t>(nearest)) + 1;
    std::vector<double> weights;
    double sum = 0;
    for (size_t i = first; i < end; ++i) {
      const double at = (static_cast<double>(i) - centre + 0.5) * (1 / wide);
      weights.push_back(filter == ResizeFilter::kNearest ? 1 : ResizeWeight(filter, at));
      sum += weights.back();
    }
    for (size_t row = 0; row < rows; ++row) {
      for (size_t lane = 0; lane < lanes; ++lane) {
        int64_t total = 1 << 21;
        for (size_t i = first; i < end; ++i) {
          const double weight = weights[i - first] / sum * (1 << 22);
          const auto fixed = static_cast<int64_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
          total += fixed * in[(row * from + i) * lanes + lane];
        }
        out[(row * to + x) * lanes + lane] =
            static_cast<uint8_t>(std::clamp<int64_t>(total >> 22, 0, 255));
      }
    }
  }
  return out;
}

// RGB bytes [height, width, 3] to [to_height, to_width, 3].
inline std::vector<uint8_t> Resize(std::vector<uint8_t> pixels, size_t height, size_t width,
                                   size_t to_height, size_t to_width, ResizeFilter filter) {
  const auto lost = [](size_t from, size_t to) {
    return static_cast<double>(from) - static_cast<double>(to);
  };
  const auto down = [&](size_t columns) {
    if (height == to_height) return;
    pixels = ResizeAxis(pixels, 1, height, to_height, 3 * columns, filter);
    height = to_height;
  };
  if (lost(height, to_height) > 0 && lost(height, to_height) > 2 * lost(width, to_width)) {
    down(width);
  }
  if (width != to_width) pixels = ResizeAxis(pixels, height, width, to_width, 3, filter);
  down(to_width);
  return pixels;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_RESIZE_H_
