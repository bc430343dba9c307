// SPDX-License-Identifier: Apache-2.0
//
// Sizes near the edge of size_t.

#include "engine/base/int_math.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMax = std::numeric_limits<size_t>::max();

TEST(IntMath, AddTellsOverflowAndLeavesTheResultAlone) {
  size_t out = 7;
  EXPECT_TRUE(CheckedAdd(2, 3, &out));
  EXPECT_EQ(out, 5u);
  EXPECT_TRUE(CheckedAdd(kMax, 0, &out));
  EXPECT_EQ(out, kMax);
  EXPECT_TRUE(CheckedAdd(kMax - 1, 1, &out));
  EXPECT_EQ(out, kMax);
  out = 7;
  EXPECT_FALSE(CheckedAdd(kMax, 1, &out));
  EXPECT_FALSE(CheckedAdd(1, kMax, &out));
  EXPECT_FALSE(CheckedAdd(kMax, kMax, &out));
  EXPECT_EQ(out, 7u);
}

TEST(IntMath, MulTellsOverflowAndLeavesTheResultAlone) {
  size_t out = 7;
  EXPECT_TRUE(CheckedMul(6, 7, &out));
  EXPECT_EQ(out, 42u);
  EXPECT_TRUE(CheckedMul(0, kMax, &out));
  EXPECT_EQ(out, 0u);
  EXPECT_TRUE(CheckedMul(kMax, 0, &out));
  EXPECT_EQ(out, 0u);
  EXPECT_TRUE(CheckedMul(kMax, 1, &out));
  EXPECT_EQ(out, kMax);
  EXPECT_TRUE(CheckedMul(kMax / 3, 3, &out));
  EXPECT_EQ(out, kMax / 3 * 3);
  out = 7;
  EXPECT_FALSE(CheckedMul(kMax / 2 + 1, 2, &out));
  EXPECT_FALSE(CheckedMul(2, kMax / 2 + 1, &out));
  EXPECT_FALSE(CheckedMul(kMax, kMax, &out));
  EXPECT_EQ(out, 7u);
}

// Every product of two powers of two, where the exponents alone say what fits.
TEST(IntMath, MulOfPowersOfTwo) {
  constexpr int kBits = std::numeric_limits<size_t>::digits;
  for (int a = 0; a < kBits; ++a) {
    for (int b = 0; b < kBits; ++b) {
      size_t out = 0;
      EXPECT_EQ(CheckedMul(size_t{1} << a, size_t{1} << b, &out), a + b < kBits) << a << " " << b;
      if (a + b < kBits) {
        EXPECT_EQ(out, size_t{1} << (a + b));
      }
    }
  }
}

TEST(IntMath, RoundUpAndDivCeil) {
  EXPECT_EQ(DivCeil(0, 8), 0u);
  EXPECT_EQ(DivCeil(1, 8), 1u);
  EXPECT_EQ(DivCeil(8, 8), 1u);
  EXPECT_EQ(DivCeil(9, 8), 2u);
  EXPECT_EQ(DivCeil(kMax, 1), kMax);
  EXPECT_EQ(DivCeil(kMax, kMax), 1u);
  EXPECT_EQ(RoundUp(0, 64), 0u);
  EXPECT_EQ(RoundUp(1, 64), 64u);
  EXPECT_EQ(RoundUp(64, 64), 64u);
  EXPECT_EQ(RoundUp(65, 48), 96u);
  size_t out = 7;
  EXPECT_TRUE(CheckedRoundUp(kMax - 63, 64, &out));
  EXPECT_EQ(out, kMax - 63);
  out = 7;
  EXPECT_FALSE(CheckedRoundUp(kMax - 62, 64, &out));
  EXPECT_EQ(out, 7u);
}

}  // namespace
}  // namespace encore::internal
