// SPDX-License-Identifier: Apache-2.0
//
// The rotary kernels on every SIMD target, and the tables of sines and cosines that they read.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "engine/kernels/rotary.h"
#include "engine/ops/rotary_table.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/matmul.h"
#include "reference/rotary.h"
#include "reference/tile_accuracy.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using internal::RotaryTable;
using reference::Matrix;
using reference::Rounded;
using Strides = TensorView<float>::Strides;

// theta^(-2 i / size)
std::vector<double> Frequencies(size_t pairs, double theta = 10000) {
  std::vector<double> f(pairs);
  for (size_t i = 0; i < pairs; ++i) {
    f[i] = std::pow(theta, -static_cast<double>(i) / static_cast<double>(pairs));
  }
  return f;
}

struct Tables {
  std::vector<float> cos, sin;
  Tables(const RotaryTable& table, size_t begin, size_t end)
      : cos((end - begin) * table.pairs()), sin(cos.size()) {
    table.Fill(begin, end, cos.data(), sin.data());
  }
};

TEST(Rotary, TurnsPairsOfAnySize) {
  constexpr size_t kRows = 5, kWidth = 140, kLdX = 150;
  for (const bool interleaved : {false, true}) {
    for (const size_t pairs : {1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 20, 31, 32, 33, 48, 64, 70}) {
      const std::vector<double> frequencies = Frequencies(pairs);
      const Tables tables(RotaryTable(frequencies.data(), pairs, 1), 0, kRows);
      const std::vector<float> values = RandomFloats(kRows * kWidth, 1, 2);
      Matrix<Rounded> want(ConstView(values.data(), Shape{kRows, kWidth}));
      for (size_t r = 0; r < kRows; ++r) {
        reference::Rotate(&want(r, 0), interleaved, static_cast<double>(r), frequencies);
      }
      std::vector<float> first;
      ForEachTarget([&](const std::string& target) {
        // What lies behind the pairs is checked as a part of the row, what lies between as a guard.
        Guarded x(Shape{kRows, kWidth}, Strides{kLdX, 1});
        for (size_t i = 0; i < values.size(); ++i) x.view()(i / kWidth, i % kWidth) = values[i];
        const auto& kernels = internal::GetRotaryKernels();
        const internal::RotaryArgs args{.x = x.view().data(),
                                        .ldx = kLdX,
                                        .rows = kRows,
                                        .size = 2 * pairs,
                                        .cos = tables.cos.data(),
                                        .sin = tables.sin.data(),
                                        .ld_table = pairs};
        (interleaved ? kernels.interleaved : kernels.half)(args);
        ASSERT_TRUE(x.Intact());
        std::vector<float> got(values.size());
        for (size_t i = 0; i < got.size(); ++i) {
          got[i] = x.view()(i / kWidth, i % kWidth);
          if (i % kWidth < 2 * pairs) {
            ASSERT_LE(std::fabs(double{got[i]} - want.data[i].value), want.data[i].Bound())
                << target << ", " << pairs << " pairs, element " << i;
          } else {
            ASSERT_EQ(got[i], values[i]);
          }
        }
        if (first.empty()) first = got;
        EXPECT_TRUE(SameBits(got, first)) << target;  // those without FMA as well
      });
    }
  }
}

// Against sines and cosines in extended precision: half an ulp and 2^-50, as the header has it.
TEST(RotaryTable, RightUpToLargePositions) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double";
  std::vector<double> frequencies = Frequencies(37);
  for (const double f : {0.0, -0.3, 1e-9, 0.99999, 3.14159265358979, 1000.1, -1e6, 1e12, 5e-324}) {
    frequencies.push_back(f);
  }
  const size_t pairs = frequencies.size();
  for (const double magnitude : {1.0, 1.3465735902799727}) {
    const RotaryTable table(frequencies.data(), pairs, magnitude);
    double worst = 0;
    for (const size_t begin :
         {size_t{0}, size_t{60}, size_t{4000}, size_t{1} << 20, (size_t{1} << 32) - 200}) {
      const size_t count = begin < 60 ? 5000 : 150;
      const Tables tables(table, begin, begin + count);
      for (size_t row = 0; row < count; ++row) {
        for (size_t i = 0; i < pairs; ++i) {
          const long double f = frequencies[i];
          const long double position = static_cast<long double>(begin + row);
          const long double angle = position * f;
          const long double rest = std::fma(position, f, -angle);
          const long double c = std::cos(angle), s = std::sin(angle);
          const double want[2] = {static_cast<double>(magnitude * (c - s * rest)),
                                  static_cast<double>(magnitude * (s + c * rest))};
          const float got[2] = {tables.cos[row * pairs + i], tables.sin[row * pairs + i]};
          for (size_t k = 0; k < 2; ++k) {
            const double error = std::fabs(double{got[k]} - want[k]);
            const double bound = reference::SpacingAt(want[k]) / 2 + magnitude * 0x1p-50;
            ASSERT_LE(error, bound)
                << "position " << begin + row << ", frequency " << frequencies[i];
            worst = std::max(worst, error / reference::SpacingAt(want[k]));
          }
        }
      }
    }
    std::printf("largest error %.6f ulp\n", worst);
  }
}

TEST(RotaryTable, SameBitsInPartsUnderAnyRoundingAndOnEveryMachine) {
  std::vector<double> frequencies(100, 1.0);  // without std::pow, whose bits differ
  for (size_t i = 1; i < 100; ++i) frequencies[i] = frequencies[i - 1] * 0.9;
  const RotaryTable table(frequencies.data(), 100, 1);
  const Tables whole(table, 0, 300);
  std::vector<float> bits = whole.cos;
  bits.insert(bits.end(), whole.sin.begin(), whole.sin.end());
  EXPECT_EQ(HashBits(bits), 0xd12a992fe02f4530u);
  std::vector<float> cos(300 * 100), sin(300 * 100);
  for (const size_t edges : {1, 7, 64, 100}) {
    for (size_t begin = 0; begin < 300; begin += edges) {
      table.Fill(begin, std::min<size_t>(300, begin + edges), cos.data() + begin * 100,
                 sin.data() + begin * 100);
    }
    EXPECT_TRUE(SameBits(cos, whole.cos));
    EXPECT_TRUE(SameBits(sin, whole.sin));
  }
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const RotaryTable upward(frequencies.data(), 100, 1);
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(SameBits(Tables(upward, 0, 300).cos, whole.cos));
}

TEST(RotaryTable, OfAGridHasTheAnglesOfRowsAndColumns) {
  constexpr RotaryGrid kGrid = {3, 7, 5};
  constexpr size_t kPairs = 6, kRows = 3 + 7 * 5;
  const double frequencies[kPairs] = {1, 0.3, 1e300, 0.9, -2, 1e-3};
  const RotaryTable table(kGrid, frequencies, kPairs, 1.5);
  const Tables whole(table, 0, kRows);
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t i = 0; i < kPairs; ++i) {
      const float cos = whole.cos[row * kPairs + i], sin = whole.sin[row * kPairs + i];
      if (row < 3) {
        EXPECT_EQ(cos, 1);
        EXPECT_EQ(sin, 0);
        continue;
      }
      const auto r = static_cast<double>((row - 3) / 5), c = static_cast<double>((row - 3) % 5);
      const double at = i < kPairs / 2 ? (r + 0.5) / 7 : (c + 0.5) / 5;
      const double angle = 2 * std::numbers::pi * (2 * at - 1) * frequencies[i];
      if (frequencies[i] == 1e300) {
        EXPECT_NEAR(std::hypot(cos, sin), 1.5, 1e-6);
        continue;
      }
      EXPECT_NEAR(cos, 1.5 * std::cos(angle), 1e-7) << row << ", " << i;
      EXPECT_NEAR(sin, 1.5 * std::sin(angle), 1e-7) << row << ", " << i;
    }
  }
  for (const size_t begin : {2, 3, 20}) {
    const Tables part(table, begin, begin + 9);
    EXPECT_TRUE(SameBits(part.cos, std::span(whole.cos).subspan(begin * kPairs, 9 * kPairs)));
    EXPECT_TRUE(SameBits(part.sin, std::span(whole.sin).subspan(begin * kPairs, 9 * kPairs)));
  }
}

TEST(RotaryTable, AnyFiniteFrequencyStaysInRange) {
  std::vector<double> frequencies;
  for (int e = -1074; e < 1024; e += 3) frequencies.push_back(std::ldexp(e % 2 ? -1.3 : 1.7, e));
  frequencies.push_back(std::numeric_limits<double>::max());
  const Tables tables(RotaryTable(frequencies.data(), frequencies.size(), 1), 0, 130);
  for (size_t i = 0; i < tables.cos.size(); ++i) {
    const double c = double{tables.cos[i]}, s = double{tables.sin[i]};
    ASSERT_NEAR(c * c + s * s, 1, 2e-7);
    ASSERT_LE(std::fabs(c), 1);
    ASSERT_LE(std::fabs(s), 1);
  }
}

}  // namespace
}  // namespace encore
