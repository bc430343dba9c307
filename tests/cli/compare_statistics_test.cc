// SPDX-License-Identifier: Apache-2.0
//
// Ratios with intervals that hold what they promise, and Holm's procedure
// (tools/encore/compare_statistics.h).

#include "tools/encore/compare_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace encore::tool {
namespace {

std::vector<double> DrawSlots(std::mt19937_64& random, double time, double noise, size_t count) {
  std::normal_distribution<double> normal;
  std::vector<double> slots(count);
  for (double& slot : slots) slot = time * std::exp(noise * normal(random));
  return slots;
}

TEST(CompareStatisticsTest, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(CompareStatisticsTest, RatioIsThatOfSpeeds) {
  const std::vector<double> slow(9, 3.0);
  const std::vector<double> fast(7, 2.0);
  const Ratio ratio = RatioOfSpeeds(slow, fast);
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);  // half as long again is 1.5 times as fast
  EXPECT_NEAR(ratio.low, 1.5, 1e-12);
  EXPECT_NEAR(ratio.high, 1.5, 1e-12);
  EXPECT_NEAR(ratio.error, 0, 1e-12);
  EXPECT_TRUE(ratio.enough);
}

TEST(CompareStatisticsTest, IntervalHoldsTheTruth) {
  std::mt19937_64 random(7);
  constexpr int kTrials = 200;
  int held = 0;
  double widest = 0;
  for (int i = 0; i < kTrials; ++i) {
    const Ratio ratio =
        RatioOfSpeeds(DrawSlots(random, 1.2, 0.02, 25), DrawSlots(random, 1, 0.02, 25));
    if (ratio.low <= 1.2 && 1.2 <= ratio.high) ++held;
    EXPECT_LE(ratio.low, ratio.value);
    EXPECT_LE(ratio.value, ratio.high);
    widest = std::max(widest, ratio.high / ratio.low);
  }
  std::printf("the truth in %d of %d intervals, the widest of %.3f\n", held, kTrials, widest);
  EXPECT_GE(held, 180);  // 190 on average; a binomial's three deviations
  EXPECT_LT(widest, 1.08);
}

TEST(CompareStatisticsTest, DrawsAreTheSameEachTime) {
  std::mt19937_64 random(8);
  const std::vector<double> base = DrawSlots(random, 1, 0.05, 20);
  const std::vector<double> other = DrawSlots(random, 1, 0.05, 20);
  const Ratio first = RatioOfSpeeds(base, other);
  const Ratio second = RatioOfSpeeds(base, other);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
  EXPECT_GT(first.error, 0.005);
  EXPECT_LT(first.error, 0.04);
}

TEST(CompareStatisticsTest, FewSlotsSayLittle) {
  const std::vector<double> many(20, 1.0);
  EXPECT_FALSE(RatioOfSpeeds(many, {1.0, 1.0}).enough);
  EXPECT_FALSE(RatioOfSpeeds({2.0}, many).enough);
  const Ratio three = RatioOfSpeeds(many, {1.0, 1.0, 1.3});
  EXPECT_TRUE(three.enough);
  EXPECT_GE(three.error, std::log(1.3));
}

TEST(CompareStatisticsTest, ChancesAreThoseOfTheNormalDistribution) {
  EXPECT_DOUBLE_EQ(TwoSidedChance(0), 1);
  EXPECT_NEAR(TwoSidedChance(1.959964), 0.05, 1e-7);
  EXPECT_NEAR(TwoSidedChance(-2.575829), 0.01, 1e-7);
}

TEST(CompareStatisticsTest, HolmStopsAtTheFirstThatIsChance) {
  // 0.01 <= 0.05/4, 0.015 <= 0.05/3, 0.03 > 0.05/2; 0.04 would pass alone.
  EXPECT_EQ(HolmRejected({0.04, 0.01, 0.03, 0.015}, 0.05),
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(HolmRejected({0.02, 0.02, 0.02}, 0.05), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(HolmRejected({0.02, 0.001}, 0.05), (std::vector<bool>{true, true}));
  EXPECT_TRUE(HolmRejected({}, 0.05).empty());
}

}  // namespace
}  // namespace encore::tool
