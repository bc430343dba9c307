// SPDX-License-Identifier: Apache-2.0
//
// MaxSim of documents in bf16 and int8: against the definition on the numbers that these types
// hold, bits that depend on nothing else, what is lost, and arguments that do not fit.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "encore/max_sim.h"
#include "engine/base/bf16.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/max_sim.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tests/support/token_rows.h"

namespace encore {
namespace {

StoredVectors Stored(const TokenRows& rows, DType type) {
  Result<StoredVectors> stored = StoreVectors(rows.view(), type);
  EXPECT_TRUE(stored.ok()) << stored.status().message();
  return *std::move(stored);
}

std::vector<float> ScoresOf(const RowGroups& queries, const StoredRowGroups& documents,
                            const MaxSimOptions& options = {}) {
  Guarded scores(Shape(queries.row_starts.size() - 1, documents.row_starts.size() - 1));
  const Status status = MaxSim(queries, documents, scores.view(), options);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(scores.Intact());
  std::vector<float> values;
  for (size_t q = 0; q < scores.view().dim(0); ++q) {
    for (size_t d = 0; d < scores.view().dim(1); ++d) values.push_back(scores.view()(q, d));
  }
  return values;
}

// What the type holds of these rows, by the definition.
std::vector<float> Held(const TokenRows& rows, DType type) {
  std::vector<float> held = rows.floats;
  for (size_t begin = 0; begin < held.size(); begin += rows.width) {
    float largest = 0;
    for (size_t c = 0; c < rows.width; ++c) {
      largest = std::max(largest, std::fabs(held[begin + c]));
    }
    const float scale = largest / 127.0f;
    for (size_t c = 0; c < rows.width; ++c) {
      float& x = held[begin + c];
      x = type == DType::kBF16 ? internal::Bf16ToF32(internal::F32ToBf16(x))
                               : scale * std::nearbyint(x * (1.0f / scale));
    }
  }
  return held;
}

const std::vector<DType> kStoredTypes = {DType::kBF16, DType::kI8};
const std::vector<size_t> kStoredQueries = {1, 7, 9, 16, 17, 32, 33, 70};
const std::vector<size_t> kStoredDocuments = {1, 2, 11, 12, 13, 49, 97};

TEST(MaxSimStoredTest, IsTheDefinitionOfWhatTheTypeHolds) {
  for (const DType type : kStoredTypes) {
    for (const size_t width : {size_t{1}, size_t{2}, size_t{3}, size_t{16}, size_t{130}}) {
      SCOPED_TRACE(std::string(DTypeName(type)) + " " + std::to_string(width));
      const TokenRows queries(kStoredQueries, width, 1);
      const TokenRows documents(kStoredDocuments, width, 2);
      const StoredVectors stored = Stored(documents, type);
      const std::vector<float> q_held = Held(queries, type);
      const std::vector<float> d_held = Held(documents, type);
      const ConstView q(q_held.data(), queries.view().shape());
      const ConstView d(d_held.data(), documents.view().shape());
      for (const bool mean : {false, true}) {
        std::vector<double> wanted;
        std::vector<double> tolerances;
        for (size_t i = 0; i < queries.texts(); ++i) {
          const double divisor = mean ? static_cast<double>(kStoredQueries[i]) : 1;
          for (size_t j = 0; j < documents.texts(); ++j) {
            wanted.push_back(reference::MaxSim(q, queries.starts[i], queries.starts[i + 1], d,
                                               documents.starts[j], documents.starts[j + 1]) /
                             divisor);
            tolerances.push_back(static_cast<double>((width + 6) * kStoredQueries[i]) * 6.1e-8 /
                                 divisor);
          }
        }
        ForEachTarget([&](const std::string&) {
          EXPECT_TRUE(
              Near(ScoresOf(queries.groups(), stored.groups(documents.starts), {.mean = mean}),
                   wanted, tolerances));
        });
      }
    }
  }
}

TEST(MaxSimStoredTest, EveryTargetWithFmaAndEveryExecutorGivesTheSameBits) {
  const Executors executors;
  for (const DType type : kStoredTypes) {
    for (const size_t width : {size_t{64}, size_t{67}}) {
      SCOPED_TRACE(std::string(DTypeName(type)) + " " + std::to_string(width));
      // Several pieces of packed queries; where they would take minutes, one.
      std::vector<size_t> lengths;
      const size_t texts = kSlow ? 100 : 400;
      for (size_t i = 0; i < texts; ++i) lengths.push_back(i * 37 % 90);
      const TokenRows queries(lengths, width, 3);
      const TokenRows documents({1, 0, 47, 12, 97}, width, 4);
      const StoredVectors stored = Stored(documents, type);
      const StoredRowGroups groups = stored.groups(documents.starts);
      std::vector<float> with_fma;
      ForEachTarget([&](const std::string& target) {
        if (!reference::TargetHasFma(target)) return;
        const std::vector<float> scores = ScoresOf(queries.groups(), groups);
        if (with_fma.empty()) with_fma = scores;
        EXPECT_TRUE(SameBits(scores, with_fma));
        // Stored where no word is aligned.
        const size_t bytes = stored.vectors.size_bytes();
        std::vector<char> memory(bytes + 1);
        std::memcpy(memory.data() + 1, stored.vectors.data(), bytes);
        const WeightView shifted(type, memory.data() + 1, stored.vectors.shape());
        EXPECT_TRUE(SameBits(
            ScoresOf(queries.groups(), {shifted, groups.scales, groups.row_starts}), with_fma));
      });
      const std::vector<float> all = ScoresOf(queries.groups(), groups);
      for (const auto& [name, executor] : executors) {
        SCOPED_TRACE(name);
        EXPECT_TRUE(SameBits(ScoresOf(queries.groups(), groups, {.executor = executor}), all));
        StoredVectors again = Taken(StoreVectors(documents.view(), type, executor));
        EXPECT_EQ(
            std::memcmp(again.vectors.data(), stored.vectors.data(), stored.vectors.size_bytes()),
            0);
      }
      const size_t middle = texts / 2 - 1;
      const size_t begin = queries.starts[middle];
      const std::vector<size_t> one = {0, queries.starts[middle + 1] - begin};
      const ConstView rows(queries.floats.data() + begin * width, Shape(one[1], width));
      EXPECT_TRUE(SameBits(ScoresOf({rows, one}, groups), std::span(all).subspan(middle * 5, 5)));
    }
  }
}

// As ColBERT has them: 32 rows by 180, in 128 columns of length 1. Rows of documents are near ones
// of queries, so that the largest products are about 0.9.
TEST(MaxSimStoredTest, LosesNoMoreThanItsHeaderSays) {
  const size_t texts = kSlow ? 4 : 24;
  const TokenRows queries(std::vector<size_t>(texts, 32), 128, 5);
  TokenRows documents(std::vector<size_t>(texts, 180), 128, 6);
  for (size_t r = 0; r < documents.starts.back(); r += 2) {
    const size_t near = r * 7 % queries.starts.back();
    double squares = 0;
    for (size_t c = 0; c < 128; ++c) {
      float& x = documents.floats[r * 128 + c];
      x = 0.45f * x + queries.floats[near * 128 + c];
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    for (size_t c = 0; c < 128; ++c) {
      documents.floats[r * 128 + c] /= static_cast<float>(std::sqrt(squares));
    }
  }
  std::vector<float> exact(texts * texts);
  ASSERT_TRUE(
      MaxSim(queries.groups(), documents.groups(), MutableView(exact.data(), Shape(texts, texts)))
          .ok());
  for (const DType type : kStoredTypes) {
    const StoredVectors stored = Stored(documents, type);
    const std::vector<float> scores = ScoresOf(queries.groups(), stored.groups(documents.starts));
    double worst = 0;
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double lost = std::fabs(scores[i] - exact[i]);
      worst = std::max(worst, lost);
      sum += lost;
    }
    std::cout << DTypeName(type) << ": worst " << worst << ", mean "
              << sum / static_cast<double>(scores.size()) << " of scores around " << exact[0]
              << "\n";
    EXPECT_LE(worst, type == DType::kBF16 ? 0.01 : 0.03);
  }
}

TEST(MaxSimStoredTest, TypesHoldWhatTheySay) {
  const float rows[] = {254, -127, 1, 1.1f, 0, 0, 0, 0, 1e-38f, 0, 0, 0};
  const ConstView view(rows, {3, 4});
  const StoredVectors int8 = Taken(StoreVectors(view, DType::kI8));
  const auto values = int8.vectors.View<int8_t>();
  EXPECT_EQ(values(0, 0), 127);
  EXPECT_EQ(values(0, 1), -64);  // -63.5 to even
  EXPECT_EQ(values(0, 2), 0);
  EXPECT_EQ(values(0, 3), 1);
  EXPECT_EQ(int8.scales.View<float>()(0), 2);
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(values(1, c) | values(2, c), 0);
  const StoredVectors turned = Taken(StoreVectors(view.Transposed(), DType::kBF16));
  EXPECT_EQ(turned.vectors.shape(), Shape(4, 3));
  uint16_t bits[12];
  std::memcpy(bits, turned.vectors.data(), sizeof bits);
  EXPECT_EQ(bits[3], internal::F32ToBf16(-127));
  EXPECT_EQ(turned.scales.size_bytes(), 0u);
}

TEST(MaxSimStoredTest, RefusesWhatDoesNotFit) {
  const TokenRows queries({2}, 8, 10);
  const TokenRows documents({3, 1}, 8, 11);
  const StoredVectors int8 = Stored(documents, DType::kI8);
  const StoredVectors bf16 = Stored(documents, DType::kBF16);
  const StoredRowGroups good = int8.groups(documents.starts);
  float memory[4] = {};
  const auto refused = [&](const RowGroups& q, const StoredRowGroups& d, const Shape& out,
                           const std::string& word) {
    EXPECT_TRUE(FailsWith(MaxSim(q, d, MutableView(memory, out)), {word}));
  };
  const auto with = [&](const WeightView& vectors) {
    return StoredRowGroups{vectors, good.scales, good.row_starts};
  };
  const Shape one(1, 2);
  refused(queries.groups(), with(documents.view()), one, "are F32; wanted BF16 or I8");
  refused(queries.groups(), with(WeightView(DType::kI8, nullptr, {4, 8})), one, "has no data");
  refused(queries.groups(), with(WeightView(DType::kI8, memory, {8})), one, "wanted rank 2");
  refused(queries.groups(), with(WeightView(DType::kI8, memory, {4, 8}, {16, 1})), one, "has gaps");
  refused(queries.groups(), {bf16.groups(documents.starts).vectors, good.scales, good.row_starts},
          one, "wanted none for BF16");
  refused(queries.groups(), {good.vectors, {}, good.row_starts}, one, "documents.scales");
  const float infinite[] = {1, 1, std::numeric_limits<float>::infinity(), 1};
  refused(queries.groups(), {good.vectors, ConstView(infinite, {4}), good.row_starts}, one,
          "documents.scales[2] is not finite");
  const std::vector<size_t> few = {0, 3};
  refused(queries.groups(), int8.groups(few), Shape(1, 1), "ends with 3; wanted 4");
  refused(queries.groups(), good, Shape(2, 2), "scores");
  const TokenRows narrow({2}, 7, 12);
  refused(narrow.groups(), good, one, "wanted 7 columns");
  TokenRows wrong({2}, 8, 13);
  wrong.floats[9] = std::numeric_limits<float>::quiet_NaN();
  refused(wrong.groups(), good, one, "query 0 has NaN");
  EXPECT_TRUE(
      FailsWith(StoreVectors(wrong.view(), DType::kI8), {"row 1 of vectors has NaN"}, kAnyCode));
  EXPECT_TRUE(FailsWith(StoreVectors(wrong.view(), DType::kF16), {"type is F16; wanted BF16 or I8"},
                        kAnyCode));
}

}  // namespace
}  // namespace encore
