// SPDX-License-Identifier: Apache-2.0
//
// Two layers of every family of encoders against the family's own modules in float64
// (tests/data/families), on every SIMD target.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "encore/workspace.h"
#include "tests/contract/family_case.h"
#include "tests/support/results.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Of the largest magnitude; torch itself is within 5e-7 in f32, and the files' rounding adds 3e-8.
constexpr double kTolerance = 1e-6;

constexpr const char* kFolder = ENCORE_TEST_DATA_DIR "/families";

// Largest |found - expected| over the largest |expected|; NaN if any is. found has all rows of the
// batch, expected those of the case.
double RelativeError(const FamilyCase& family, const std::vector<float>& found,
                     const std::vector<float>& expected) {
  const size_t d_model = family.config.d_model;
  double error = 0;
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t at = family.rows[i / d_model] * d_model + i % d_model;
    const double here =
        std::fabs(static_cast<double>(found[at]) - static_cast<double>(expected[i]));
    if (std::isnan(here)) return here;
    error = std::max(error, here);
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
  }
  return error / largest;
}

struct Outputs {
  std::vector<float> hidden0, y;
};

Outputs Forward(const Encoder& encoder, const FamilyCase& family, const Executor& executor) {
  const Batch batch{family.starts};
  const Shape shape(family.starts.back(), family.config.d_model);
  Outputs out{std::vector<float>(family.x.size(), NAN), std::vector<float>(family.x.size(), NAN)};
  const size_t bytes = Taken(encoder.WorkspaceBytes(batch, executor));
  const Workspace workspace = Taken(Workspace::Create(bytes));
  std::vector<MutableView> hidden(family.config.layers.size());
  hidden[0] = MutableView(out.hidden0.data(), shape);
  const Status status =
      encoder.Forward(batch, ConstView(family.x.data(), shape), MutableView(out.y.data(), shape),
                      workspace, executor, {.hidden = hidden});
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

class FamilyGolden : public testing::TestWithParam<std::string> {};

TEST_P(FamilyGolden, LayersAgreeWithTheFamilysOwn) {
  const FamilyCase family = FamilyCase::Open(kFolder, GetParam());
  ASSERT_EQ(family.config.layers.size(), 2u);
  ASSERT_EQ(family.y.size(), family.rows.size() * family.config.d_model);
  ASSERT_EQ(family.hidden0.size(), family.y.size());
  ASSERT_LT(family.rows.back(), family.starts.back());
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const std::pair<std::string, Executor> executors[] = {{"inline", Executor::Inline()},
                                                        {"pool 2", pool.executor()}};
  ForEachTarget([&](const std::string& target) {
    double worst = 0;
    for (const auto& [name, executor] : executors) {
      SCOPED_TRACE(name);
      const Encoder encoder =
          Taken(Encoder::Create(family.config, family.weights, {.executor = executor}));
      const Outputs found = Forward(encoder, family, executor);
      const double hidden_error = RelativeError(family, found.hidden0, family.hidden0);
      const double y_error = RelativeError(family, found.y, family.y);
      EXPECT_LE(hidden_error, kTolerance) << "after layer 0";
      EXPECT_LE(y_error, kTolerance) << "at the end";
      for (const double error : {hidden_error, y_error}) {
        if (!(error <= worst)) worst = error;
      }
    }
    std::printf("%-16s %-12s largest error %.1e of the largest value, allowed %.0e\n",
                GetParam().c_str(), target.c_str(), worst, kTolerance);
  });
}

// Under an emulator one family of each kind: the others differ in what is the same everywhere.
std::vector<std::string> Families() {
  if (kEmulated) return {"bert", "jina_v2", "modernbert", "qwen3_embedding", "t5"};
  return FamilyNames(kFolder);
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGolden, testing::ValuesIn(Families()),
                         [](const auto& family) { return family.param; });

TEST(FamilyGoldenFiles, AllAreThere) { EXPECT_GE(FamilyNames(kFolder).size(), 18u); }

}  // namespace
}  // namespace encore
