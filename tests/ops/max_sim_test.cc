// SPDX-License-Identifier: Apache-2.0
//
// MaxSim against its definition in double precision on every SIMD target; bits that do not depend
// on the other texts or on threads; views of every kind, and arguments that do not fit.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "encore/max_sim.h"
#include "gtest/gtest.h"
#include "reference/max_sim.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tests/support/token_rows.h"

namespace encore {
namespace {

std::vector<float> Scores(const RowGroups& queries, const RowGroups& documents,
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

// Around vectors, panels and the rows that pass at once.
const std::vector<size_t> kQueryLengths = {1, 7, 8, 9, 16, 17, 32, 33, 70};
const std::vector<size_t> kDocumentLengths = {1, 2, 5, 47, 48, 49, 95, 97, 180};

TEST(MaxSimTest, IsWhatItsDefinitionSays) {
  for (const size_t width : std::initializer_list<size_t>{1, 3, 16, 128, 130}) {
    if (kSlow && width == 128) continue;
    const TokenRows queries(kQueryLengths, width, 1);
    const TokenRows documents(kDocumentLengths, width, 2);
    for (const bool mean : {false, true}) {
      std::vector<double> wanted;
      std::vector<double> tolerances;
      for (size_t q = 0; q < queries.texts(); ++q) {
        const double divisor = mean ? static_cast<double>(kQueryLengths[q]) : 1;
        for (size_t d = 0; d < documents.texts(); ++d) {
          wanted.push_back(reference::MaxSim(queries.view(), queries.starts[q],
                                             queries.starts[q + 1], documents.view(),
                                             documents.starts[d], documents.starts[d + 1]) /
                           divisor);
          // A product of vectors of length 1 is right to (K + 1) u.
          tolerances.push_back(static_cast<double>((width + 2) * kQueryLengths[q]) * 6e-8 /
                               divisor);
        }
      }
      ForEachTarget([&](const std::string&) {
        EXPECT_TRUE(
            Near(Scores(queries.groups(), documents.groups(), {.mean = mean}), wanted, tolerances));
      });
    }
  }
}

TEST(MaxSimTest, AScoreDependsOnItsQueryAndItsDocumentAlone) {
  // Several pieces of packed queries; where they would take minutes, one.
  std::vector<size_t> lengths;
  const size_t texts = kSlow ? 100 : 400;
  for (size_t i = 0; i < texts; ++i) lengths.push_back(1 + i * 37 % 90);
  const TokenRows queries(lengths, 64, 3);
  const TokenRows documents(kSlow ? std::vector<size_t>{1, 47, 49, 97} : kDocumentLengths, 64, 4);
  const std::vector<float> all = Scores(queries.groups(), documents.groups());
  const Executors executors;
  for (const auto& [name, executor] : executors) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(
        SameBits(Scores(queries.groups(), documents.groups(), {.executor = executor}), all));
  }
  for (const size_t q : {size_t{0}, texts / 2 - 1, texts - 1}) {
    const size_t begin = queries.starts[q];
    const std::vector<size_t> one = {0, queries.starts[q + 1] - begin};
    const ConstView rows(queries.floats.data() + begin * 64, Shape(one[1], 64));
    EXPECT_TRUE(SameBits(Scores({rows, one}, documents.groups()),
                         std::span(all).subspan(q * documents.texts(), documents.texts())));
  }
}

TEST(MaxSimTest, TextsWithoutRowsHaveScores) {
  const TokenRows queries({0, 3}, 8, 5);
  const TokenRows documents({0, 2, 0}, 8, 6);
  for (const bool mean : {false, true}) {
    const std::vector<float> scores = Scores(queries.groups(), documents.groups(), {.mean = mean});
    const float empty = kEmptyDocumentScore / (mean ? 3.0f : 1.0f);
    const std::vector<float> wanted = {kEmptyDocumentScore, 0,    kEmptyDocumentScore, empty,
                                       scores[4],           empty};
    EXPECT_TRUE(SameBits(scores, wanted));
  }
  const TokenRows none({}, 8, 7);
  EXPECT_TRUE(Scores(none.groups(), documents.groups()).empty());
  EXPECT_TRUE(Scores(queries.groups(), none.groups()).empty());
}

TEST(MaxSimTest, TakesViewsOfAnyStrides) {
  const TokenRows queries({4, 20}, 24, 8);
  const TokenRows documents({60, 3}, 24, 9);
  const std::vector<float> wanted = Scores(queries.groups(), documents.groups());
  const auto columns = [](const TokenRows& drawn) {
    const auto rows = static_cast<ptrdiff_t>(drawn.starts.back());
    auto turned = std::make_unique<Guarded>(drawn.view().shape(), Guarded::Strides{1, rows + 1});
    for (size_t r = 0; r < drawn.starts.back(); ++r) {
      for (size_t c = 0; c < drawn.width; ++c) turned->view()(r, c) = drawn.view()(r, c);
    }
    return turned;
  };
  const auto turned_queries = columns(queries);
  const auto turned_documents = columns(documents);
  EXPECT_TRUE(SameBits(Scores({turned_queries->view(), queries.starts},
                              {turned_documents->view(), documents.starts}),
                       wanted));
  Guarded backward(Shape(2, 2), {-3, 1});
  ASSERT_TRUE(MaxSim(queries.groups(), documents.groups(), backward.view()).ok());
  EXPECT_TRUE(backward.Intact());
  EXPECT_EQ(backward.view()(1, 0), wanted[2]);
}

TEST(MaxSimTest, NegativeProductsCount) {
  const float query[] = {1, 0};
  const float documents[] = {-0.5f, 0, -0.25f, 0};
  const std::vector<size_t> one = {0, 1};
  const std::vector<size_t> two = {0, 2};
  EXPECT_EQ(Scores({ConstView(query, {1, 2}), one}, {ConstView(documents, {2, 2}), two})[0],
            -0.25f);
}

TEST(MaxSimTest, ProductsThatAreNaNAreSkipped) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float query[] = {1, 0};
  const float documents[] = {kNaN, 0, -0.5f, 0, kNaN, 0};
  const std::vector<size_t> one = {0, 1};
  const std::vector<size_t> three = {0, 3};
  const RowGroups queries = {ConstView(query, {1, 2}), one};
  ForEachTarget([&](const std::string&) {
    // One of three products is a number.
    EXPECT_EQ(Scores(queries, {ConstView(documents, {3, 2}), three})[0], -0.5f);
    // None is.
    EXPECT_EQ(Scores(queries, {ConstView(documents, {1, 2}), one})[0], -kInfinity);
    EXPECT_EQ(Scores(queries, {ConstView(documents, {1, 2}), one}, {.mean = true})[0], -kInfinity);
  });
}

TEST(MaxSimTest, RefusesWhatDoesNotFit) {
  const TokenRows queries({2}, 8, 10);
  const TokenRows documents({3, 1}, 8, 11);
  float memory[4] = {};
  const MutableView scores(memory, {1, 2});
  const auto refused = [&](const RowGroups& q, const RowGroups& d, MutableView out,
                           const std::string& word) {
    EXPECT_TRUE(FailsWith(MaxSim(q, d, out), {word}));
  };
  const std::vector<size_t> empty, falling = {0, 3, 2, 4}, late = {1, 4}, few = {0, 3};
  refused({queries.view(), empty}, documents.groups(), scores, "queries.row_starts is empty");
  refused(queries.groups(), {documents.view(), falling}, scores, "documents.row_starts[2] is 2");
  refused(queries.groups(), {documents.view(), late}, scores, "documents.row_starts[0] is 1");
  refused(queries.groups(), {documents.view(), few}, scores, "ends with 3; wanted 4");
  refused(queries.groups(), documents.groups(), MutableView(memory, {2, 2}), "scores");
  const TokenRows narrow({2}, 7, 12);
  refused(narrow.groups(), documents.groups(), scores, "wanted 7 columns");
  refused(queries.groups(), documents.groups(),
          MutableView(const_cast<float*>(documents.floats.data()), {1, 2}), "scores");
}

}  // namespace
}  // namespace encore
