// SPDX-License-Identifier: Apache-2.0
//
// bf16 and f16 against the formulas of their definition in double, over every one of the 65536
// patterns; narrowing also at every midpoint between neighbours and one float to either side of it.

#include "engine/base/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace encore::inline v0_1::internal {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);
};

constexpr Format kBf16 = {8, 7, Bf16ToF32, F32ToBf16};
constexpr Format kF16 = {5, 10, F16ToF32, F32ToF16};

// What the pattern stands for, by the definition in IEEE 754: (-1)^s * 2^(e - bias) * 1.m, or 2^(1
// - bias) * 0.m.
double Define(const Format& format, uint16_t bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int top = (1 << format.exponent_bits) - 1;
  const int exponent = (bits >> format.mantissa_bits) & top;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  if (exponent == top) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1.0 + fraction, exponent - bias));
}

void TestWidening(const Format& format) {
  int nans = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const double want = Define(format, bits);
    const float got = format.widen(bits);
    if (std::isnan(want)) {
      ++nans;
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_EQ(std::signbit(got), bits >> 15 != 0) << i;
    } else {
      // float holds every such number; the sign of zero counts.
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(static_cast<float>(want)))
          << i;
      ASSERT_EQ(static_cast<double>(got), want) << i;
    }
  }
  EXPECT_EQ(nans, 2 * ((1 << format.mantissa_bits) - 1));
}

void TestRoundTrip(const Format& format) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const uint16_t back = format.narrow(format.widen(bits));
    if (std::isnan(Define(format, bits))) {
      const uint16_t quiet = static_cast<uint16_t>(1 << (format.mantissa_bits - 1));
      ASSERT_EQ(back, bits | quiet) << i;
    } else {
      ASSERT_EQ(back, bits) << i;
    }
  }
}

// Between neighbours a < b the midpoint goes to the even one, and one float beside it to the nearer
// one. One past the largest finite number stands for infinity, as if the exponent went on.
void TestMidpoints(const Format& format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  for (uint32_t i = 0; i < infinity; ++i) {
    const uint16_t low = static_cast<uint16_t>(i);
    const uint16_t high = static_cast<uint16_t>(i + 1);
    const double high_value = high == infinity ? std::ldexp(1.0, bias + 1) : Define(format, high);
    const float middle = static_cast<float>((Define(format, low) + high_value) / 2);
    ASSERT_EQ(static_cast<double>(middle) * 2, Define(format, low) + high_value) << i;
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(format.narrow(below), low) << i;
    ASSERT_EQ(format.narrow(middle), (low & 1) == 0 ? low : high) << i;
    ASSERT_EQ(format.narrow(above), high) << i;
    ASSERT_EQ(format.narrow(-below), 0x8000u | low) << i;
    ASSERT_EQ(format.narrow(-middle), 0x8000u | ((low & 1) == 0 ? low : high)) << i;
    ASSERT_EQ(format.narrow(-above), 0x8000u | high) << i;
  }
}

void TestExtremes(const Format& format) {
  const uint16_t infinity =
      static_cast<uint16_t>(((1u << format.exponent_bits) - 1) << format.mantissa_bits);
  EXPECT_EQ(format.narrow(std::numeric_limits<float>::infinity()), infinity);
  EXPECT_EQ(format.narrow(-std::numeric_limits<float>::infinity()), 0x8000 | infinity);
  EXPECT_EQ(format.narrow(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(format.narrow(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(format.narrow(-0.0f), 0x8000);
  // A NaN whose payload lies in the dropped bits alone must stay a NaN.
  EXPECT_TRUE(std::isnan(format.widen(format.narrow(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(format.widen(format.narrow(std::bit_cast<float>(0xFFFFFFFFu)))));
}

TEST(Bf16, WideningIsExactForEveryPattern) { TestWidening(kBf16); }
TEST(Bf16, RoundTripOfEveryPattern) { TestRoundTrip(kBf16); }
TEST(Bf16, NarrowingRoundsToNearestEven) { TestMidpoints(kBf16); }
TEST(Bf16, Extremes) { TestExtremes(kBf16); }

TEST(F16, WideningIsExactForEveryPattern) { TestWidening(kF16); }
TEST(F16, RoundTripOfEveryPattern) { TestRoundTrip(kF16); }
TEST(F16, NarrowingRoundsToNearestEven) { TestMidpoints(kF16); }
TEST(F16, Extremes) { TestExtremes(kF16); }

}  // namespace
}  // namespace encore::internal
