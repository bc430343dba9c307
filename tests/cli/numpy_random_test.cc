// SPDX-License-Identifier: Apache-2.0
//
// NumpyRandom against numbers that NumPy 1.24.2 printed for RandomState(seed).rand(10000).

#include "tools/encore/numpy_random.h"

#include <gtest/gtest.h>

#include <map>

namespace encore::tool {
namespace {

struct Sample {
  uint32_t seed;
  std::map<int, double> values;  // by index; 312 doubles use up MT19937's 624 words of state
};

const Sample kSamples[] = {
    {0,
     {{0, 0.5488135039273248},
      {1, 0.7151893663724195},
      {2, 0.6027633760716439},
      {311, 0.14694664540037505},
      {312, 0.07952208258675575},
      {623, 0.8130538632474607},
      {624, 0.97622566345382},
      {9999, 0.8135750799512289}}},
    {1,
     {{0, 0.417022004702574},
      {1, 0.7203244934421581},
      {2, 0.00011437481734488664},
      {311, 0.9096355249515571},
      {312, 0.2571182937821962},
      {623, 0.6438956443116628},
      {624, 0.7543059505762987},
      {9999, 0.7627937776432221}}},
    {42,
     {{0, 0.3745401188473625},
      {1, 0.9507143064099162},
      {2, 0.7319939418114051},
      {311, 0.07845638134226596},
      {312, 0.02535074341545751},
      {623, 0.4845229851910213},
      {624, 0.618254771530296},
      {9999, 0.21714040403767187}}},
    {4294967295u,
     {{0, 0.0976320289940138},
      {1, 0.9123828453026218},
      {2, 0.78903530185164},
      {311, 0.2845819535787153},
      {312, 0.89887815082878},
      {623, 0.16177415711968401},
      {624, 0.558929113358157},
      {9999, 0.4906684539227597}}},
};

TEST(NumpyRandomTest, DrawsNumpysDoublesToTheLastBit) {
  for (const Sample& sample : kSamples) {
    NumpyRandom random(sample.seed);
    for (int i = 0; i < 10000; ++i) {
      const double value = random.Next();
      const auto expected = sample.values.find(i);
      if (expected == sample.values.end()) continue;
      EXPECT_EQ(value, expected->second) << "seed " << sample.seed << ", number " << i;
    }
  }
}

TEST(NumpyRandomTest, RandFillsRowsOneAfterAnother) {
  NumpyRandom random(42);
  const Tensor first = random.Rand({1, 2});
  const Tensor second = random.Rand({1, 1});
  EXPECT_EQ(first.shape(), Shape(1, 2));
  EXPECT_EQ(first.View<float>()(0, 0), 0.3745401188473625f);
  EXPECT_EQ(first.View<float>()(0, 1), 0.9507143064099162f);
  EXPECT_EQ(second.View<float>()(0, 0), 0.7319939418114051f);
}

}  // namespace
}  // namespace encore::tool
