// SPDX-License-Identifier: Apache-2.0
//
// What positions add to scores, as published: ALiBi's slopes, T5's buckets, DeBERTa's rows of
// relative embeddings. And the frequencies of rotary positions, whose turning is in rotary.h.

#ifndef ENCORE_REFERENCE_POSITIONS_H_
#define ENCORE_REFERENCE_POSITIONS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "encore/layer.h"

namespace encore::reference {

// theta^(-2 i / size), where none are given; with a grid those of half the size, twice.
inline std::vector<double> InverseFrequencies(const RotaryConfig& rotary, size_t head_size) {
  if (!rotary.inverse_frequencies.empty()) return rotary.inverse_frequencies;
  const double size = static_cast<double>(rotary.size != 0 ? rotary.size : head_size);
  std::vector<double> frequencies;
  if (rotary.grid) {
    for (double i = 0; 2 * i < size; ++i) {
      const double in_half = 4 * i < size ? i : i - size / 4;
      frequencies.push_back(std::pow(rotary.theta, -in_half / (size / 4)));
    }
    return frequencies;
  }
  for (double i = 0; 2 * i < size; ++i)
    frequencies.push_back(std::pow(rotary.theta, -2 * i / size));
  return frequencies;
}

// The angles of a row of a sequence.
inline std::vector<double> RotaryAngles(const RotaryConfig& rotary, size_t row, size_t head_size) {
  std::vector<double> angles = InverseFrequencies(rotary, head_size);
  for (size_t i = 0; i < angles.size(); ++i) {
    double position = static_cast<double>(row);
    if (rotary.grid) {
      const RotaryGrid& grid = *rotary.grid;
      const bool down = i < angles.size() / 2;
      const double place = static_cast<double>(row) - static_cast<double>(grid.before);
      const auto columns = static_cast<double>(grid.columns);
      const double at = down ? std::floor(place / columns) : std::fmod(place, columns);
      const double centre = (at + 0.5) / (down ? static_cast<double>(grid.rows) : columns);
      position = row < grid.before ? 0 : 2 * std::numbers::pi * (2 * centre - 1);
    }
    angles[i] *= position;
  }
  return angles;
}

// The paper's code (github.com/ofirpress/attention_with_linear_biases), where none are given.
inline double AlibiSlope(const AlibiConfig& alibi, size_t head, size_t heads) {
  if (!alibi.slopes.empty()) return alibi.slopes[head];
  const auto power_of_two = [](size_t h, size_t n) {
    return std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(n));
  };
  const auto lower =
      static_cast<size_t>(std::exp2(std::floor(std::log2(static_cast<double>(heads)))));
  return head < lower ? power_of_two(head, lower) : power_of_two(2 * (head - lower), 2 * lower);
}

// The bucket of distance j - i, as T5 has it for encoders. A distance beyond the single ones is in
// bucket single + k for the largest k with distance >= single * (max_distance / single)^(k / wide).
inline size_t Bucket(const BucketConfig& buckets, ptrdiff_t distance) {
  const size_t half = buckets.num_buckets / 2;
  const size_t single = half / 2;
  const size_t wide = half - single;
  const auto away = static_cast<size_t>(std::abs(distance));
  size_t bucket = std::min(away, single);
  const double ratio = static_cast<double>(buckets.max_distance) / static_cast<double>(single);
  for (size_t k = 1; k < wide; ++k) {
    const double power = std::pow(ratio, static_cast<double>(k) / static_cast<double>(wide));
    // Powers that are whole numbers may come out an ulp too large.
    if (static_cast<double>(away) >= static_cast<double>(single) * power - 1e-9)
      bucket = single + k;
  }
  return (distance > 0 ? half : 0) + bucket;
}

// The row of the table of relative embeddings that distance i - j of query and key has, as DeBERTa
// v2 has it (encore/layer.h).
inline size_t RelativeRow(const RelativeConfig& relative, ptrdiff_t distance) {
  const double d = std::abs(static_cast<double>(distance));
  const double mid = std::floor(static_cast<double>(relative.buckets) / 2);
  double bucket = d;
  if (relative.buckets != 0 && d > mid) {
    const double last = static_cast<double>(relative.max_distance) - 1;
    // Steps that are whole numbers may come out an ulp too large.
    bucket = std::ceil(std::log(d / mid) / std::log(last / mid) * (mid - 1) - 1e-9) + mid;
  }
  const auto span =
      static_cast<double>(relative.buckets != 0 ? relative.buckets : relative.max_distance);
  return static_cast<size_t>(
      std::clamp(span + (distance < 0 ? -bucket : bucket), 0.0, 2 * span - 1));
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_POSITIONS_H_
