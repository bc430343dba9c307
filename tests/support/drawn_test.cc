// SPDX-License-Identifier: Apache-2.0
//
// RandomFloats against the library's own generator.

#include "reference/drawn.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/compare.h"

namespace encore {
namespace {

TEST(RandomFloats, AreSumsOfFourNumbersOfMt19937) {
  for (const uint32_t seed : {0u, 1u, 5489u, 0x9E3779B9u, 0xFFFFFFFFu}) {
    for (const size_t count : {0, 1, 155, 156, 157, 5000}) {
      for (const float mean : {0.0f, -1.25f}) {
        std::mt19937 generator(seed);
        std::vector<float> want(count);
        for (float& v : want) {
          int64_t sum = -(int64_t{1} << 33);
          for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>(generator());
          const float z = 0x1.bb67aep-32f * static_cast<float>(sum);
          v = static_cast<float>(static_cast<double>(mean) + 0.375 * static_cast<double>(z));
        }
        EXPECT_TRUE(SameBits(RandomFloats(count, seed, 0.375f, mean), want))
            << count << " of seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace encore
