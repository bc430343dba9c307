// SPDX-License-Identifier: Apache-2.0
//
// Pooling and normalization of single texts by their definitions, in long double.

#include "engine/text/after_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/compare.h"

namespace encore {
namespace {

constexpr double kUnit = 0x1p-24;  // one rounding to f32

std::vector<float> Drawn(size_t count, unsigned seed) {
  std::vector<float> values(count);
  uint64_t state = seed;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<double>(state >> 40) / (1 << 22) - 2);
  }
  return values;
}

double Defined(PoolingMode mode, const std::vector<float>& hidden, size_t rows, size_t width,
               size_t c, size_t skip = 0) {
  long double sum = 0;
  long double weights = 0;
  long double largest = hidden[skip * width + c];
  for (size_t t = skip; t < rows; ++t) {
    const long double value = hidden[t * width + c];
    const long double weight = mode == PoolingMode::kWeightedMean ? t + 1 : 1;
    sum += weight * value;
    weights += weight;
    largest = std::max(largest, value);
  }
  switch (mode) {
    case PoolingMode::kCls:
      return hidden[skip * width + c];
    case PoolingMode::kLastToken:
      return hidden[(rows - 1) * width + c];
    case PoolingMode::kMax:
      return static_cast<double>(largest);
    case PoolingMode::kMeanSqrtLength:
      return static_cast<double>(sum / std::sqrt(weights));
    default:
      return static_cast<double>(sum / weights);
  }
}

const std::vector<PoolingMode> kAll = {PoolingMode::kCls,          PoolingMode::kMax,
                                       PoolingMode::kMean,         PoolingMode::kMeanSqrtLength,
                                       PoolingMode::kWeightedMean, PoolingMode::kLastToken};

TEST(PoolingTest, FollowsTheDefinitions) {
  for (const size_t rows : {1, 2, 3, 17, 512}) {
    for (const size_t width : {1, 7, 8, 33, 384}) {
      const std::vector<float> hidden = Drawn(rows * width, static_cast<unsigned>(rows + width));
      std::vector<float> out(kAll.size() * width, NAN);
      std::vector<double> sums(width, NAN);
      internal::PoolRows(kAll, hidden.data(), rows, width, sums.data(), out.data());
      EXPECT_TRUE(NearEach(
          out, [&](size_t i) { return Defined(kAll[i / width], hidden, rows, width, i % width); },
          [&](size_t i) {
            return kUnit * (std::fabs(Defined(kAll[i / width], hidden, rows, width, i % width))) +
                   1e-13;
          }))
          << rows << " rows of " << width;
    }
  }
}

TEST(PoolingTest, LeavesOutTheFirstRows) {
  constexpr size_t kWidth = 9;
  for (const size_t rows : {2, 3, 17}) {
    const std::vector<float> hidden = Drawn(rows * kWidth, static_cast<unsigned>(rows));
    std::vector<double> sums(kWidth, NAN);
    for (size_t skip = 0; skip <= rows + 1; ++skip) {
      std::vector<float> out(kAll.size() * kWidth, NAN);
      internal::PoolRows(kAll, hidden.data(), rows, kWidth, sums.data(), out.data(), skip);
      for (size_t i = 0; i < out.size(); ++i) {
        const PoolingMode mode = kAll[i / kWidth];
        const double none = mode == PoolingMode::kCls   ? hidden[i % kWidth]
                            : mode == PoolingMode::kMax ? -INFINITY
                                                        : 0.0;
        const double wanted =
            skip < rows ? Defined(mode, hidden, rows, kWidth, i % kWidth, skip) : none;
        if (std::isinf(wanted)) {
          EXPECT_EQ(out[i], wanted);
        } else {
          EXPECT_NEAR(out[i], wanted, kUnit * std::fabs(wanted) + 1e-13);
        }
      }
    }
  }
}

TEST(NormTest, FollowsTheDefinition) {
  for (const size_t width : {1, 2, 9, 384}) {
    std::vector<float> row = Drawn(width, static_cast<unsigned>(width));
    internal::LoadedNorm norm{.epsilon = 1e-5};
    norm.weight = *Tensor::Create(DType::kF32, {width});
    norm.bias = *Tensor::Create(DType::kF32, {width});
    const std::vector<float> drawn = Drawn(2 * width, 7);
    std::copy_n(drawn.data(), width, static_cast<float*>(norm.weight.data()));
    std::copy_n(drawn.data() + width, width, static_cast<float*>(norm.bias.data()));
    long double mean = 0;
    for (const float value : row) mean += value / static_cast<long double>(width);
    long double variance = 0;
    for (const float value : row) {
      variance += (value - mean) * (value - mean) / static_cast<long double>(width);
    }
    std::vector<double> want;
    for (size_t i = 0; i < width; ++i) {
      want.push_back(static_cast<double>((row[i] - mean) / std::sqrt(variance + 1e-5L) * drawn[i] +
                                         drawn[width + i]));
    }
    internal::NormRow(norm, row.data(), width);
    EXPECT_TRUE(NearEach(
        row, [&](size_t i) { return want[i]; },
        [&](size_t i) { return 1.01 * kUnit * std::fabs(want[i]) + 1e-12; }));
  }
}

TEST(PoolingTest, ReadsNoMoreRowsThanItNeeds) {
  EXPECT_EQ(internal::RowsOf(std::vector{PoolingMode::kCls}), OutputRows::kFirst);
  EXPECT_EQ(internal::RowsOf(std::vector{PoolingMode::kCls, PoolingMode::kCls}),
            OutputRows::kFirst);
  EXPECT_EQ(internal::RowsOf(std::vector{PoolingMode::kLastToken}), OutputRows::kLast);
  EXPECT_EQ(internal::RowsOf(std::vector{PoolingMode::kCls, PoolingMode::kLastToken}),
            OutputRows::kAll);
  EXPECT_EQ(internal::RowsOf(std::vector{PoolingMode::kMean}), OutputRows::kAll);
}

TEST(NormalizeTest, MakesTheLengthOne) {
  for (const size_t width : {1, 3, 8, 9, 31, 384, 1000}) {
    std::vector<float> row = Drawn(width, static_cast<unsigned>(width));
    long double sum = 0;
    for (const float value : row) sum += static_cast<long double>(value) * value;
    std::vector<double> want;
    for (const float value : row) want.push_back(static_cast<double>(value / std::sqrt(sum)));
    internal::NormalizeRow(row.data(), width);
    EXPECT_TRUE(NearEach(
        row, [&](size_t i) { return want[i]; },
        [&](size_t i) { return 1.01 * kUnit * std::fabs(want[i]); }));
  }
}

TEST(NormalizeTest, DividesShortVectorsByEpsilon) {
  std::vector<float> zeros(5, 0.0f);
  internal::NormalizeRow(zeros.data(), 5);
  EXPECT_EQ(zeros, std::vector<float>(5, 0.0f));
  std::vector<float> tiny = {3e-14f, 4e-14f};
  internal::NormalizeRow(tiny.data(), 2);
  EXPECT_FLOAT_EQ(tiny[0], 0.03f);
  EXPECT_FLOAT_EQ(tiny[1], 0.04f);
  std::vector<float> huge = {3e38f, 0.0f};  // its square is beyond f32
  internal::NormalizeRow(huge.data(), 2);
  EXPECT_EQ(huge[0], 1.0f);
}

TEST(PoolingTest, NamesAreThoseOfTheFiles) {
  EXPECT_EQ(PoolingModeName(PoolingMode::kCls), "cls");
  EXPECT_EQ(PoolingModeName(PoolingMode::kMax), "max");
  EXPECT_EQ(PoolingModeName(PoolingMode::kMean), "mean");
  EXPECT_EQ(PoolingModeName(PoolingMode::kMeanSqrtLength), "mean_sqrt_len_tokens");
  EXPECT_EQ(PoolingModeName(PoolingMode::kWeightedMean), "weightedmean");
  EXPECT_EQ(PoolingModeName(PoolingMode::kLastToken), "lasttoken");
}

}  // namespace
}  // namespace encore
