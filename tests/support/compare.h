// SPDX-License-Identifier: Apache-2.0
//
// The comparator of all numeric tests, with a test of its own (compare_test.cc). Comes with
// HashBits (reference/drawn.h).

#ifndef ENCORE_TESTS_SUPPORT_COMPARE_H_
#define ENCORE_TESTS_SUPPORT_COMPARE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "gtest/gtest.h"
#include "reference/drawn.h"        // IWYU pragma: export
#include "tests/support/results.h"  // IWYU pragma: export

namespace encore {

// Whether one element is right: within the tolerance, or the very infinity or NaN that is wanted.
// 0 and -0 are equal. A tolerance that is NaN or negative accepts nothing.
inline bool IsNear(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance;  // false for a NaN in any of the three
}

// Passes if got[i] is near want(i) within tolerance(i) for all i; else tells how many are not, the
// first of them, and the worst. *worst (if given) grows to the largest error as a share of its
// tolerance: what is below 1 passed, and how far below is what tests print.
template <class Want, class Tolerance>
testing::AssertionResult NearEach(std::span<const float> got, Want want, Tolerance tolerance,
                                  double* worst = nullptr) {
  size_t bad = 0;
  size_t first = 0;
  double largest = 0;
  size_t largest_at = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = static_cast<double>(got[i]);
    const double w = want(i);
    const double t = tolerance(i);
    if (!IsNear(g, w, t) && bad++ == 0) first = i;
    const double error = std::fabs(g - w);
    if (!(error > 0)) continue;  // equal, or NaN and counted above
    const double share = error / t;
    if (!(share <= largest)) {
      largest = share;
      largest_at = i;
    }
  }
  if (worst != nullptr) *worst = std::max(*worst, largest);
  if (bad == 0) return testing::AssertionSuccess();
  const auto describe = [&](testing::AssertionResult& result, const char* what, size_t i) {
    result << what << " [" << i << "]: got " << got[i] << ", wanted " << want(i) << " within "
           << tolerance(i);
  };
  testing::AssertionResult result = testing::AssertionFailure();
  result << bad << " of " << got.size() << " elements are wrong;";
  describe(result, " first", first);
  if (largest > 1) describe(result, "; worst", largest_at);
  return result;
}

// The same from arrays of got's length; other lengths fail.
testing::AssertionResult Near(std::span<const float> got, std::span<const double> want,
                              std::span<const double> tolerance, double* worst = nullptr);

// The same with one tolerance for all.
testing::AssertionResult Near(std::span<const float> got, std::span<const double> want,
                              double tolerance, double* worst = nullptr);

// Passes if the two hold the same bits; NaN equals itself, 0 does not equal -0.
testing::AssertionResult SameBits(std::span<const float> got, std::span<const float> want);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_COMPARE_H_
