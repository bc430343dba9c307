// SPDX-License-Identifier: Apache-2.0
//
// The same bits on every SIMD target with FMA.

#ifndef ENCORE_TESTS_SUPPORT_BITS_WITH_FMA_H_
#define ENCORE_TESTS_SUPPORT_BITS_WITH_FMA_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/drawn.h"
#include "tests/support/targets.h"

namespace encore {

// compute() returns floats from the active target's kernels. All NaNs count as one.
template <typename Compute>
void ExpectSameBitsWithFma(std::string_view what, const Compute& compute) {
  uint64_t want = 0;
  std::string first;
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    std::vector<float> y = compute();
    for (float& v : y) {
      if (std::isnan(v)) v = 0;  // which NaN is not promised
    }
    const uint64_t hash = HashBits(y);
    if (first.empty()) {
      first = target;
      want = hash;
    }
    EXPECT_EQ(hash, want) << what << " differs between " << first << " and " << target;
  });
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_BITS_WITH_FMA_H_
