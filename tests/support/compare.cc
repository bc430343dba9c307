// SPDX-License-Identifier: Apache-2.0
//
// Compares arrays.

#include "tests/support/compare.h"

#include <bit>
#include <cstdint>

namespace encore {

testing::AssertionResult Near(std::span<const float> got, std::span<const double> want,
                              std::span<const double> tolerance, double* worst) {
  if (got.size() != want.size() || got.size() != tolerance.size()) {
    return testing::AssertionFailure() << got.size() << " elements, " << want.size()
                                       << " wanted ones, " << tolerance.size() << " tolerances";
  }
  return NearEach(
      got, [&](size_t i) { return want[i]; }, [&](size_t i) { return tolerance[i]; }, worst);
}

testing::AssertionResult Near(std::span<const float> got, std::span<const double> want,
                              double tolerance, double* worst) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure()
           << got.size() << " elements, " << want.size() << " wanted ones";
  }
  return NearEach(
      got, [&](size_t i) { return want[i]; }, [&](size_t) { return tolerance; }, worst);
}

testing::AssertionResult SameBits(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) {
    return testing::AssertionFailure()
           << got.size() << " elements, " << want.size() << " wanted ones";
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want[i])) continue;
    return testing::AssertionFailure()
           << "bits differ at [" << i << "]: got " << got[i] << ", wanted " << want[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace encore
