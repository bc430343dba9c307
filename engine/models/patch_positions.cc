// SPDX-License-Identifier: Apache-2.0
//
// Bicubic interpolation of a table of positions, one axis after the other.

#include "engine/models/patch_positions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace encore::inline v0_1::internal {
namespace {

// The points of an axis that an output reads, and their weights.
struct AxisPoints {
  size_t first = 0;
  std::vector<double> weights;
};

double Kernel(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Four points, of which those beyond an edge count as the edge's.
AxisPoints PlainPoints(size_t i, size_t from, double scale) {
  const double centre = scale * (static_cast<double>(i) + 0.5) - 0.5;
  const double floor = std::floor(centre);
  const auto last = static_cast<double>(from - 1);
  const double first = std::clamp(floor - 1, 0.0, last);
  const double end = std::clamp(floor + 2, 0.0, last);
  AxisPoints points{static_cast<size_t>(first),
                    std::vector<double>(static_cast<size_t>(end - first) + 1)};
  for (int k = -1; k <= 2; ++k) {
    const double at = std::clamp(floor + k, 0.0, last);
    points.weights[static_cast<size_t>(at - first)] += Kernel(centre - (floor + k), -0.75);
  }
  return points;
}

AxisPoints AntialiasedPoints(size_t i, size_t from, double scale) {
  const double centre = scale * (static_cast<double>(i) + 0.5);
  const double stretch = std::max(scale, 1.0);
  const double support = 2 * stretch;
  const auto first = static_cast<size_t>(std::max(centre - support + 0.5, 0.0));
  const auto end = std::min(static_cast<size_t>(std::max(centre + support + 0.5, 0.0)), from);
  AxisPoints points{first, std::vector<double>(end - first)};
  double sum = 0;
  for (size_t k = first; k < end; ++k) {
    const double weight = Kernel((static_cast<double>(k) - centre + 0.5) / stretch, -0.5);
    points.weights[k - first] = weight;
    sum += weight;
  }
  for (double& weight : points.weights) weight /= sum;
  return points;
}

std::vector<AxisPoints> PointsOf(size_t from, size_t to, bool antialias) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<AxisPoints> all;
  for (size_t i = 0; i < to; ++i) {
    all.push_back(antialias ? AntialiasedPoints(i, from, scale) : PlainPoints(i, from, scale));
  }
  return all;
}

}  // namespace

void InterpolatePositions(const float* table, const PatchGrid& from, size_t width, bool antialias,
                          const PatchGrid& to, float* out) {
  const std::vector<AxisPoints> down = PointsOf(from.rows, to.rows, antialias);
  const std::vector<AxisPoints> across = PointsOf(from.columns, to.columns, antialias);
  std::vector<double> row(from.columns * width);
  std::vector<double> sum(width);
  for (const AxisPoints& vertical : down) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t k = 0; k < vertical.weights.size(); ++k) {
      const float* const in = table + (vertical.first + k) * row.size();
      for (size_t c = 0; c < row.size(); ++c) row[c] += vertical.weights[k] * in[c];
    }
    for (const AxisPoints& horizontal : across) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (size_t k = 0; k < horizontal.weights.size(); ++k) {
        const double* const in = row.data() + (horizontal.first + k) * width;
        for (size_t c = 0; c < width; ++c) sum[c] += horizontal.weights[k] * in[c];
      }
      for (size_t c = 0; c < width; ++c) *out++ = static_cast<float>(sum[c]);
    }
  }
}

}  // namespace encore::internal
