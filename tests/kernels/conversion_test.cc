// SPDX-License-Identifier: Apache-2.0
//
// Conversions to bf16 and f16, in plain C++ and of every SIMD target, over some millions of floats
// and those around every tie. All floats: `encore verify --only conversions --full`.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "gtest/gtest.h"
#include "reference/exhaustive/conversions.h"
#include "tests/support/sanitizers.h"

namespace encore::tool {
namespace {

TEST(Conversions, SampledFloats) {
  for (const Conversion& conversion : AllConversions()) {
    const Count wrong = WrongOf(conversion, kSlow ? 65537 : 1021);
    EXPECT_EQ(wrong.times, 0u) << conversion.what << ", " << conversion.target << ", first at 0x"
                               << std::hex << wrong.first_bits;
  }
}

// Each bf16 number's neighbours in f32, and what lies half a step of bf16 and of f16 away from it.
TEST(Conversions, AroundEveryTie) {
  std::vector<float> x;
  for (uint32_t upper = 0; upper < 0x10000; upper += kSlow ? 7 : 1) {
    for (const uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, 0x0FFFu, 0x1000u,
                                 0x1001u, 0x2FFFu, 0x3000u, 0x3001u}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  x.resize((x.size() + kConversionChunk - 1) / kConversionChunk * kConversionChunk);
  for (const Conversion& conversion : AllConversions()) {
    std::vector<uint32_t> got(x.size());
    std::vector<uint32_t> want(x.size());
    for (size_t i = 0; i < x.size(); i += kConversionChunk) {
      conversion.convert(conversion.kernel, x.data() + i, got.data() + i, kConversionChunk);
      conversion.wanted(conversion.kernel, x.data() + i, want.data() + i, kConversionChunk);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << conversion.what << ", " << conversion.target << " at 0x"
                                 << std::hex << std::bit_cast<uint32_t>(x[i]);
    }
  }
}

// Which targets flush subnormal floats when they round rows: those with the instruction alone.
TEST(Conversions, SubnormalsOfRowsAreFlushedWhereTheMachineRounds) {
  for (const Conversion& conversion : AllConversions()) {
    if (conversion.kernel == nullptr) continue;
    alignas(64) float x[64] = {};
    uint32_t got[64] = {};
    x[0] = 0x1p-127f;
    x[1] = -0x1p-133f;
    conversion.convert(conversion.kernel, x, got, 64);
    const bool native = conversion.target == "AVX3_ZEN4" || conversion.target == "AVX3_SPR";
    EXPECT_EQ(conversion.kernel->a_bytes == 2, native) << conversion.target;
    const bool flushes = native && conversion.what == "bf16 rows";
    EXPECT_EQ(got[0], flushes ? 0u : 0x00400000u) << conversion.what << ", " << conversion.target;
    EXPECT_EQ(got[1], flushes ? 0x80000000u : 0x80010000u)
        << conversion.what << ", " << conversion.target;
  }
}

// A conversion that is wrong for one float is found, and so is its place.
TEST(Conversions, FindsWhatIsWrong) {
  Conversion spoiled = AllConversions().front();
  spoiled.convert = [](const internal::GemmKernel*, const float* x, uint32_t* out, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
      out[i] = static_cast<uint32_t>(internal::F32ToBf16(x[i])) << 16;
      if (bits == 65537u * 12345u) out[i] ^= 0x10000u;
    }
  };
  const Count wrong = WrongOf(spoiled, 65537);
  EXPECT_EQ(wrong.times, 1u);
  EXPECT_EQ(wrong.first_bits, 65537u * 12345u);
}

}  // namespace
}  // namespace encore::tool
