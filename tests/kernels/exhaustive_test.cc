// SPDX-License-Identifier: Apache-2.0
//
// The search over all floats: its fast references against the C library's, its fast errors against
// those that define the promises, and that it finds what is wrong with a function that is wrong on
// purpose.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "reference/exhaustive/fast_reference.h"
#include "reference/exhaustive/search.h"
#include "reference/exhaustive/subject.h"

namespace encore::tool {
namespace {

TEST(Exhaustive, FastReferencesAgreeWithTheCLibrary) {
  for (const auto& subject : AllSubjects()) {
    EXPECT_LE(LargestFastError(*subject, 16411), kFastError) << subject->name();
  }
}

TEST(Exhaustive, FastErrorsAreThoseOfThePromises) {
  for (const auto& subject : AllSubjects()) {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < kAllFloats; bits += 65537) {
      const float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (std::isfinite(v) && !(subject->non_positive_only() && v > 0)) x.push_back(v);
    }
    std::vector<double> exact(x.size());
    subject->FastExact(x.data(), exact.data(), x.size());
    // Results that are right, a little wrong, and very wrong.
    for (const double factor : {1.0, 1 + 0x1p-22, -3.0}) {
      std::vector<float> y(x.size());
      for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(exact[i] * factor);
      y[1000] = std::numeric_limits<float>::quiet_NaN();
      for (size_t m = 0; m < subject->measures().size(); ++m) {
        std::vector<float> errors(x.size());
        subject->FastErrors(m, x.data(), y.data(), exact.data(), x.size(), errors.data());
        for (size_t i = 0; i < x.size(); ++i) {
          const double want = subject->Error(m, x[i], y[i]);
          const double got = std::fabs(static_cast<double>(errors[i]));
          // Next to a power of two the two may see another ulp.
          const double up = std::fabs(exact[i]) * (1 + 1e-12);
          if (std::ilogb(up) != std::ilogb(up * (1 - 2e-12)) && exact[i] != 0) continue;
          if (want > 1e6) {
            ASSERT_FALSE(got < 1e5) << subject->name() << " at " << x[i];
          } else {
            ASSERT_NEAR(got, want, 1e-4 + 1e-4 * want)
                << subject->name() << " " << subject->measures()[m].name << " at " << x[i];
          }
        }
      }
    }
  }
}

// e^x of the first subject, spoiled.
class Spoiled : public Subject {
 public:
  enum class Fault { kNone, kError, kFall, kBitsOfOneTarget, kNan, kZero };

  explicit Spoiled(Fault fault)
      : Subject("spoiled", Family::kFunction), exp_(std::move(AllSubjects()[0])), fault_(fault) {
    measures_ = exp_->measures();
    special_values_ = exp_->special_values();
    rises_from_ = exp_->rises_from();
    monotone_ = true;
  }

  void Run(const TargetKernels& kernels, const float* x, float* y, size_t n) const override {
    exp_->Run(kernels, x, y, n);
    for (size_t i = 0; i < n; ++i) {
      switch (fault_) {
        case Fault::kNone:
          break;
        case Fault::kError:
          if (x[i] == kAt) y[i] = std::nextafter(std::nextafter(y[i], 9e9f), 9e9f);
          break;
        case Fault::kFall:
          if (x[i] == kFlat) y[i] = std::nextafter(std::nextafter(y[i], 0.0f), 0.0f);
          break;
        case Fault::kBitsOfOneTarget:
          if (x[i] == kAt && kernels.name == "AVX2") y[i] = std::nextafter(y[i], 9e9f);
          break;
        case Fault::kNan:
          if (x[i] == kAt) y[i] = std::numeric_limits<float>::quiet_NaN();
          break;
        case Fault::kZero:
          if (x[i] == 0) y[i] = 0.99999994f;
          break;
      }
    }
  }
  void FastExact(const float* x, double* exact, size_t n) const override {
    exp_->FastExact(x, exact, n);
  }
  void FastErrors(size_t m, const float* x, const float* y, const double* exact, size_t n,
                  float* errors) const override {
    exp_->FastErrors(m, x, y, exact, n, errors);
  }
  double Exact(float x) const override { return exp_->Exact(x); }
  double Error(size_t m, float x, float y) const override { return exp_->Error(m, x, y); }

  // Hard floats, so that they are tried; next to the second, e^x rises by an ulp at most.
  static constexpr float kAt = 5.20192909f;
  static constexpr float kFlat = 0.150558487f;

 private:
  std::unique_ptr<Subject> exp_;
  Fault fault_;
};

std::vector<TargetResult> ResultsOf(Spoiled::Fault fault) {
  return Search(Spoiled(fault), AllTargetKernels(),
                {.step = 1000003, .others_step = 2000003, .hard = 1000});
}

bool At(const Count& count, float x) {
  return count.times != 0 && std::bit_cast<float>(count.first_bits) == x;
}

TEST(Exhaustive, FindsNothingWhereNothingIsWrong) {
  const Measure measure = Spoiled(Spoiled::Fault::kNone).measures()[0];
  for (const TargetResult& result : ResultsOf(Spoiled::Fault::kNone)) {
    SCOPED_TRACE(result.target);
    EXPECT_LE(result.worst[0].error, result.fma ? measure.promise : measure.promise_no_fma);
    EXPECT_EQ(result.falls.times + result.differs.times + result.wrong_special.times, 0u);
  }
}

TEST(Exhaustive, FindsWhatIsWrong) {
  using Fault = Spoiled::Fault;
  for (const Fault fault : {Fault::kError, Fault::kNan}) {
    for (const TargetResult& result : ResultsOf(fault)) {
      EXPECT_GT(result.worst[0].error, 1.25) << result.target;
      EXPECT_EQ(result.worst[0].x, Spoiled::kAt) << result.target;
    }
  }
  for (const TargetResult& result : ResultsOf(Fault::kZero)) {
    EXPECT_TRUE(At(result.wrong_special, 0)) << result.target;
  }
  for (const TargetResult& result : ResultsOf(Fault::kFall)) {
    EXPECT_NE(result.falls.times, 0u) << result.target;
  }
  for (const TargetResult& result : ResultsOf(Fault::kBitsOfOneTarget)) {
    const bool spoiled = result.target == "AVX2" && !result.same_as.empty();
    EXPECT_EQ(At(result.differs, Spoiled::kAt), spoiled) << result.target;
  }
}

}  // namespace
}  // namespace encore::tool
