// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of rows of bytes in fixed point. Integers: no bit depends on the SIMD target.

#ifndef ENCORE_ENGINE_KERNELS_BYTE_SUMS_H_
#define ENCORE_ENGINE_KERNELS_BYTE_SUMS_H_

#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1::internal {

inline constexpr int kByteSumBits = 22;  // of a weight below the point

// The weights of two neighbouring rows, each in 16 bits, the first one's lower: weight =
// (high << kLowBits) + low, |weight| < 2^24.
struct WeightPair {
  static constexpr int kLowBits = 12;
  int32_t low, high;

  static WeightPair Of(int32_t first, int32_t second) {
    constexpr int32_t kMask = (1 << kLowBits) - 1;
    const auto both = [](int32_t a, int32_t b) {
      return static_cast<int32_t>((static_cast<uint32_t>(b) << 16) |
                                  (static_cast<uint32_t>(a) & 0xFFFFu));
    };
    return {both(first & kMask, second & kMask), both(first >> kLowBits, second >> kLowBits)};
  }
};

struct ByteSumArgs {
  const uint8_t* in;  // [rows, stride], of which n columns are read
  size_t stride;
  size_t rows;                // at least 1
  const WeightPair* weights;  // [(rows + 1) / 2]; the second of an odd last one is 0
  size_t n;
  uint8_t* out;  // [n]
};

// out[i] = the sum over r of weight[r] in[r][i], rounded to nearest, clipped to 0 .. 255. The sum
// is below 2^31 in magnitude.
void SumByteRows(const ByteSumArgs& args);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_BYTE_SUMS_H_
