// SPDX-License-Identifier: Apache-2.0
//
// Pooling and normalisation. Loops go along the columns, which the compiler makes vectors of; every
// column has its own chain, so the order of its additions is that of the rows.

#include "engine/text/pooling.h"

#include <algorithm>
#include <cmath>

namespace encore::inline v0_1 {

std::string_view PoolingModeName(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::kCls:
      return "cls";
    case PoolingMode::kMax:
      return "max";
    case PoolingMode::kMean:
      return "mean";
    case PoolingMode::kMeanSqrtLength:
      return "mean_sqrt_len_tokens";
    case PoolingMode::kWeightedMean:
      return "weightedmean";
    case PoolingMode::kLastToken:
      return "lasttoken";
  }
  return "unknown";
}

namespace internal {
namespace {

void Sum(const float* hidden, size_t rows, size_t width, double* sums) {
  for (size_t c = 0; c < width; ++c) sums[c] = hidden[c];
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    for (size_t c = 0; c < width; ++c) sums[c] += row[c];
  }
}

// Row t counts t + 1 times; the products are exact in double.
void WeightedSum(const float* hidden, size_t rows, size_t width, double* sums) {
  for (size_t c = 0; c < width; ++c) sums[c] = hidden[c];
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    const double weight = static_cast<double>(r + 1);
    for (size_t c = 0; c < width; ++c) sums[c] += weight * row[c];
  }
}

void Divide(const double* sums, size_t width, double divisor, float* out) {
  for (size_t c = 0; c < width; ++c) out[c] = static_cast<float>(sums[c] / divisor);
}

void Max(const float* hidden, size_t rows, size_t width, float* out) {
  std::copy_n(hidden, width, out);
  for (size_t r = 1; r < rows; ++r) {
    const float* row = hidden + r * width;
    for (size_t c = 0; c < width; ++c) out[c] = row[c] > out[c] ? row[c] : out[c];
  }
}

void PoolOne(PoolingMode mode, const float* hidden, size_t rows, size_t width, double* sums,
             float* out) {
  const double count = static_cast<double>(rows);
  switch (mode) {
    case PoolingMode::kCls:
      std::copy_n(hidden, width, out);
      return;
    case PoolingMode::kLastToken:
      std::copy_n(hidden + (rows - 1) * width, width, out);
      return;
    case PoolingMode::kMax:
      Max(hidden, rows, width, out);
      return;
    case PoolingMode::kMean:
      Sum(hidden, rows, width, sums);
      Divide(sums, width, count, out);
      return;
    case PoolingMode::kMeanSqrtLength:
      Sum(hidden, rows, width, sums);
      Divide(sums, width, std::sqrt(count), out);
      return;
    case PoolingMode::kWeightedMean:
      WeightedSum(hidden, rows, width, sums);
      Divide(sums, width, count * (count + 1) / 2, out);
      return;
  }
}

}  // namespace

OutputRows RowsOf(std::span<const PoolingMode> modes) {
  const auto only = [&](PoolingMode wanted) {
    return std::all_of(modes.begin(), modes.end(),
                       [&](PoolingMode mode) { return mode == wanted; });
  };
  if (only(PoolingMode::kCls)) return OutputRows::kFirst;
  if (only(PoolingMode::kLastToken)) return OutputRows::kLast;
  return OutputRows::kAll;
}

void PoolRows(std::span<const PoolingMode> modes, const float* hidden, size_t rows, size_t width,
              double* sums, float* out) {
  for (size_t i = 0; i < modes.size(); ++i) {
    PoolOne(modes[i], hidden, rows, width, sums, out + i * width);
  }
}

void NormalizeRow(float* row, size_t width) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = row[c + lane];
      lanes[lane] += value * value;
    }
  }
  for (size_t lane = 0; c < width; ++c, ++lane) {
    const double value = row[c];
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  constexpr double kEpsilon = 1e-12;
  const double norm = std::max(std::sqrt(sum), kEpsilon);
  for (size_t i = 0; i < width; ++i) row[i] = static_cast<float>(row[i] / norm);
}

}  // namespace internal
}  // namespace encore
