// SPDX-License-Identifier: Apache-2.0
//
// The comparator must not let anything through: NaN, infinities, signs, one element among
// thousands.

#include "tests/support/compare.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace encore {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

bool One(float got, double want, double tolerance) {
  const float g[] = {got};
  const double w[] = {want};
  return static_cast<bool>(Near(g, w, tolerance));
}

TEST(Compare, ToleranceIsInclusiveAndExactIsZero) {
  EXPECT_TRUE(One(1.0f, 1.0, 0));
  EXPECT_TRUE(One(1.5f, 1.0, 0.5));
  EXPECT_FALSE(One(1.5f, 1.0, 0.499));
  EXPECT_FALSE(One(0.5f, 1.0, 0.499));
}

TEST(Compare, NanNeverPassesUnlessWanted) {
  EXPECT_FALSE(One(kNanF, 1.0, kInf));
  EXPECT_FALSE(One(kNanF, kInf, kInf));
  EXPECT_FALSE(One(1.0f, kNan, kInf));
  EXPECT_FALSE(One(1.0f, 1.0, kNan));
  EXPECT_FALSE(One(1.0f, 1.0, -1.0));
  EXPECT_TRUE(One(kNanF, kNan, 0));
}

TEST(Compare, InfinitiesMustBeTheSame) {
  EXPECT_TRUE(One(kInfF, kInf, 0));
  EXPECT_FALSE(One(-kInfF, kInf, kInf));
  EXPECT_FALSE(One(kInfF, 1.0, 1e300));
  EXPECT_FALSE(One(std::numeric_limits<float>::max(), kInf, kInf));
}

TEST(Compare, SignsCount) {
  EXPECT_FALSE(One(-1.0f, 1.0, 1.0));
  EXPECT_FALSE(One(-1e-30f, 1e-30, 1e-30));
  EXPECT_TRUE(One(-0.0f, 0.0, 0));
  EXPECT_FALSE(One(1e-45f, 0.0, 0));
}

TEST(Compare, OneBadElementAmongThousandsFails) {
  std::vector<float> got(5000, 1.0f);
  std::vector<double> want(5000, 1.0);
  const std::vector<double> tolerance(5000, 1e-6);
  EXPECT_TRUE(Near(got, want, tolerance));
  for (const size_t at : {size_t{0}, size_t{2500}, size_t{4999}}) {
    for (const float bad : {1.001f, -1.0f, kNanF, kInfF}) {
      got[at] = bad;
      const testing::AssertionResult result = Near(got, want, tolerance);
      EXPECT_FALSE(result);
      EXPECT_NE(std::string(result.message()).find("[" + std::to_string(at) + "]"),
                std::string::npos)
          << result.message();
      got[at] = 1.0f;
    }
  }
}

TEST(Compare, LengthsMustAgree) {
  const std::vector<float> got(3, 1.0f);
  EXPECT_FALSE(Near(got, std::vector<double>(2, 1.0), 1.0));
  EXPECT_FALSE(Near(got, std::vector<double>(3, 1.0), std::vector<double>(4, 1.0)));
  EXPECT_FALSE(SameBits(got, std::vector<float>(4, 1.0f)));
  EXPECT_TRUE(Near(std::vector<float>(), std::vector<double>(), 0));
}

TEST(Compare, WorstIsTheLargestShareOfTheTolerance) {
  const std::vector<float> got = {1.0f, 2.25f, 3.125f};
  const std::vector<double> want = {1.0, 2.0, 3.0};
  const std::vector<double> tolerance = {1.0, 1.0, 0.25};
  double worst = 0;
  EXPECT_TRUE(Near(got, want, tolerance, &worst));
  EXPECT_EQ(worst, 0.5);
  EXPECT_TRUE(Near(got, want, 1.0, &worst));
  EXPECT_EQ(worst, 0.5) << "it only grows";
}

TEST(Compare, SameBitsTellsZeroesAndNansApart) {
  const std::vector<float> zeros = {0.0f, 0.0f};
  const std::vector<float> minus = {0.0f, -0.0f};
  const std::vector<float> nans = {kNanF, kNanF};
  EXPECT_TRUE(SameBits(zeros, zeros));
  EXPECT_FALSE(SameBits(zeros, minus));
  EXPECT_TRUE(SameBits(nans, nans));
  EXPECT_FALSE(SameBits(zeros, nans));
}

TEST(Compare, HashSeesEveryBitAndTheOrder) {
  const std::vector<float> a = {1.0f, 2.0f, 0.0f};
  for (size_t i = 0; i < a.size(); ++i) {
    std::vector<float> b = a;
    b[i] = std::nextafter(b[i], 4.0f);
    EXPECT_NE(HashBits(a), HashBits(b));
  }
  EXPECT_NE(HashBits(a), HashBits(std::vector<float>{2.0f, 1.0f, 0.0f}));
  EXPECT_NE(HashBits(a), HashBits(std::vector<float>{1.0f, 2.0f, -0.0f}));
  EXPECT_EQ(HashBits(a), HashBits(std::vector<float>{1.0f, 2.0f, 0.0f}));
}

TEST(Results, TakenEndsTheTestWithPlaceAndSentence) {
  EXPECT_EQ(Taken(Result<int>(7)), 7);
  try {
    Taken(Result<int>(Status(ErrorCode::kIo, "there is no disk")));
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with(": there is no disk")) << error.what();
    EXPECT_NE(std::string(error.what()).find("compare_test.cc:"), std::string::npos);
  }
}

TEST(Results, FailsWithWantsTheCodeAndEveryPart) {
  const Status status(ErrorCode::kIo, "there is no disk");
  EXPECT_TRUE(FailsWith(status, {"no", "disk"}, ErrorCode::kIo));
  EXPECT_TRUE(FailsWith(status, {"disk"}, kAnyCode));
  EXPECT_FALSE(FailsWith(status, {"disk"}));
  EXPECT_FALSE(FailsWith(status, {"disk", "tape"}, ErrorCode::kIo));
  EXPECT_FALSE(FailsWith(Result<int>(7), {}, kAnyCode));
}

}  // namespace
}  // namespace encore
