// SPDX-License-Identifier: Apache-2.0
//
// Sine and cosine in double precision by quarter turns, and tables of them: position 64 h + l turns
// by the angle of 64 h, computed on the way, and that of l, which is in a table.

#include "engine/ops/rotary_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kSteps = 64;  // positions in the table

// 2 / pi to 132 bits: three parts of 26 bits, whose products with half a double are exact, and the
// rest.
constexpr double kTwoOverPi[4] = {0x1.45f3068p-1, 0x1.7272208p-27, 0x1.4a7f098p-54,
                                  0x1.57d1f534ddc0dp-80};

// The leading 26 bits.
double Leading(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & ~((uint64_t{1} << 27) - 1));
}

// a + b exactly, as a sum and what rounding took from it (Knuth's TwoSum).
void ExactSum(double a, double b, double* sum, double* rest) {
  *sum = a + b;
  const double part = *sum - a;
  *rest = (a - (*sum - part)) + (b - part);
}

// frequency * 2 / pi less a multiple of 4, which whole positions do not notice.
RotaryTable::Turns TurnsOf(double frequency) {
  const double f[2] = {Leading(frequency), frequency - Leading(frequency)};
  double total[4] = {};  // a sum whose parts do not overlap, the largest first
  for (const double part : kTwoOverPi) {
    for (const double half : f) {
      double carry = std::fmod(half * part, 4.0);
      for (double& t : total) {
        double sum;
        ExactSum(t, carry, &sum, &carry);
        t = sum;
      }
    }
  }
  const double whole = 4.0 * std::round(total[0] / 4.0);
  double sum = total[0] - whole, rest;
  ExactSum(sum, total[1], &sum, &rest);
  double more;
  ExactSum(rest, total[2], &rest, &more);
  RotaryTable::Turns turns;
  turns.high = Leading(sum);
  double after;
  ExactSum(sum - turns.high, rest, &after, &rest);
  turns.middle = Leading(after);
  turns.low = (after - turns.middle) + (rest + (more + total[3]));
  return turns;
}

// Nearest integer of |x| < 2^51, halves to even.
double Nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// Both of position * turns, right to some 2^-52. The polynomials are those of fdlibm's __kernel_sin
// and __kernel_cos (Sun Microsystems 1993), right to 2^-58 up to pi / 4.
void CosSin(const RotaryTable::Turns& turns, double position, double* cos, double* sin) {
  const double high = position * turns.high;  // exact, as the next
  const double middle = position * turns.middle;
  const double whole_high = Nearest(high);
  const double left = (high - whole_high) + middle;
  const double whole = Nearest(left);
  // Exact but for the last addition: left may be rounded, so it is not used again.
  const double turn = ((high - whole_high) - whole) + middle + position * turns.low;
  const double x = turn * 0x1.921fb54442d18p+0;
  const double z = x * x;
  const double s =
      x + x * z *
              (-0x1.5555555555549p-3 +
               z * (0x1.111111110f8a6p-7 +
                    z * (-0x1.a01a019c161d5p-13 +
                         z * (0x1.71de357b1fe7dp-19 +
                              z * (-0x1.ae5e68a2b9cebp-26 + z * 0x1.5d93a5acfd57cp-33)))));
  const double c =
      1.0 -
      (0.5 * z - z * z *
                     (0x1.555555555554cp-5 +
                      z * (-0x1.6c16c16c15177p-10 +
                           z * (0x1.a01a019cb159p-16 +
                                z * (-0x1.27e4f809c52adp-22 +
                                     z * (0x1.1ee9ebdb4b1c4p-29 + z * -0x1.8fae9be8838d4p-37))))));
  const int64_t quarter = (static_cast<int64_t>(whole_high) + static_cast<int64_t>(whole)) & 3;
  const double swapped_cos = (quarter & 1) != 0 ? s : c;
  const double swapped_sin = (quarter & 1) != 0 ? c : s;
  *cos = quarter == 1 || quarter == 2 ? -swapped_cos : swapped_cos;
  *sin = quarter >= 2 ? -swapped_sin : swapped_sin;
}

}  // namespace

RotaryTable::RotaryTable(const double* inverse_frequencies, size_t pairs, double magnitude)
    : turns_(pairs), cos_(kSteps * pairs), sin_(kSteps * pairs) {
  const FpEnvScope modes;  // the same bits under any modes of the caller's
  for (size_t i = 0; i < pairs; ++i) turns_[i] = TurnsOf(inverse_frequencies[i]);
  for (size_t l = 0; l < kSteps; ++l) {
    for (size_t i = 0; i < pairs; ++i) {
      double cos, sin;
      CosSin(turns_[i], static_cast<double>(l), &cos, &sin);
      cos_[l * pairs + i] = magnitude * cos;
      sin_[l * pairs + i] = magnitude * sin;
    }
  }
}

RotaryTable::RotaryTable(const RotaryGrid& grid, const double* inverse_frequencies, size_t pairs,
                         double magnitude)
    : turns_(pairs), grid_(grid) {
  const FpEnvScope modes;
  const auto add = [&](size_t places, const double* frequencies) {
    const auto count = static_cast<double>(places);
    for (size_t p = 0; p < places; ++p) {
      const double share = (2 * static_cast<double>(p) + 1 - count) / count;
      for (size_t i = 0; i < pairs / 2; ++i) {
        constexpr double kMost = std::numeric_limits<double>::max();
        const double angle = 2 * std::numbers::pi * share * frequencies[i];
        double cos, sin;
        CosSin(TurnsOf(std::clamp(angle, -kMost, kMost)), 1, &cos, &sin);
        cos_.push_back(magnitude * cos);
        sin_.push_back(magnitude * sin);
      }
    }
  };
  add(grid.rows, inverse_frequencies);
  add(grid.columns, inverse_frequencies + pairs / 2);
}

void RotaryTable::FillGrid(size_t begin, size_t end, float* cos, float* sin) const {
  const size_t pairs = turns_.size();
  const auto copy = [&](size_t place, size_t at) {
    for (size_t i = 0; i < pairs / 2; ++i) {
      cos[at + i] = static_cast<float>(cos_[place * pairs / 2 + i]);
      sin[at + i] = static_cast<float>(sin_[place * pairs / 2 + i]);
    }
  };
  for (size_t row = begin; row < end; ++row, cos += pairs, sin += pairs) {
    if (row < grid_->before) {
      std::fill_n(cos, pairs, 1.0f);
      std::fill_n(sin, pairs, 0.0f);
      continue;
    }
    const size_t place = row - grid_->before;
    copy(place / grid_->columns, 0);
    copy(grid_->rows + place % grid_->columns, pairs / 2);
  }
}

void RotaryTable::Fill(size_t begin, size_t end, float* cos, float* sin) const {
  if (grid_) return FillGrid(begin, end, cos, sin);
  const size_t pairs = turns_.size();
  constexpr size_t kPairsAtOnce = 64;  // as many as a usual head has, or fewer
  double block_cos[kPairsAtOnce];
  double block_sin[kPairsAtOnce];
  for (const size_t start = begin; begin < end;) {
    const size_t block = begin / kSteps * kSteps;
    const size_t next = std::min(end, block + kSteps);
    for (size_t first = 0; first < pairs; first += kPairsAtOnce) {
      const size_t count = std::min(kPairsAtOnce, pairs - first);
      for (size_t i = 0; i < count; ++i) {
        CosSin(turns_[first + i], static_cast<double>(block), &block_cos[i], &block_sin[i]);
      }
      for (size_t row = begin; row < next; ++row) {
        const double* step_cos = cos_.data() + (row - block) * pairs + first;
        const double* step_sin = sin_.data() + (row - block) * pairs + first;
        float* row_cos = cos + (row - start) * pairs + first;
        float* row_sin = sin + (row - start) * pairs + first;
        for (size_t i = 0; i < count; ++i) {
          const double c = block_cos[i] * step_cos[i] - block_sin[i] * step_sin[i];
          const double s = block_sin[i] * step_cos[i] + block_cos[i] * step_sin[i];
          row_cos[i] = static_cast<float>(c);
          row_sin[i] = static_cast<float>(s);
        }
      }
    }
    begin = next;
  }
}

}  // namespace encore::internal
