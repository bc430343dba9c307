// SPDX-License-Identifier: Apache-2.0
//
// Sines and cosines of rotary positions, with the same bits on every machine and compiler: the C
// library's differ, so none of its are called.

#ifndef ENCORE_ENGINE_OPS_ROTARY_TABLE_H_
#define ENCORE_ENGINE_OPS_ROTARY_TABLE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "encore/layer.h"

namespace encore::inline v0_1::internal {

// cos and sin of position * inverse_frequencies[i], times magnitude, in f32. Each is within half an
// f32 ulp + 2^-50 |magnitude| of the exact value for positions below 2^32 and |frequencies| up to
// 2^40. Beyond, angles are off by up to |frequency| 2^-130 a position; results are finite and at
// most |magnitude| all the same.
class RotaryTable {
 public:
  RotaryTable() = default;
  // inverse_frequencies [pairs] and magnitude are finite.
  RotaryTable(const double* inverse_frequencies, size_t pairs, double magnitude);
  // Of places on a grid, an even number of pairs. Fill may not go beyond it; rows before it have
  // the cosine 1 and the sine 0.
  RotaryTable(const RotaryGrid& grid, const double* inverse_frequencies, size_t pairs,
              double magnitude);

  size_t pairs() const { return turns_.size(); }

  // Writes those of positions [begin, end) to cos and sin, both [end - begin, pairs]: the same bits
  // in parts as in one call. Allocates nothing; under the default floating-point modes, about 1 ns
  // a pair where many rows are written.
  void Fill(size_t begin, size_t end, float* cos, float* sin) const;

  // What a position turns a pair by: quarter turns in [-2, 2], the sum of three numbers of which
  // the first two have 26 bits, so that their products with positions are exact.
  struct Turns {
    double high, middle, low;
  };

 private:
  void FillGrid(size_t begin, size_t end, float* cos, float* sin) const;

  std::vector<Turns> turns_;  // [pairs]
  // Of positions 0 .. 63, in double precision, times magnitude: [64, pairs]. With a grid, of its
  // rows and then of its columns: [rows + columns, pairs / 2].
  std::vector<double> cos_;
  std::vector<double> sin_;
  std::optional<RotaryGrid> grid_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ROTARY_TABLE_H_
