// SPDX-License-Identifier: Apache-2.0
//
// The elementwise kernels against double precision on every SIMD target: a sample of the floats
// that `encore verify` tries one by one, held to the same largest errors and the same order
// (reference/accuracy.h), special values, and equal bits between targets and places.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/elementwise.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/hard_floats.h"
#include "tests/support/bits_with_fma.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using internal::ElementwiseKernels;
using internal::GetElementwiseKernels;
using reference::Accuracy;
using reference::kAccuracies;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every 4099th float, and the hard ones with a grid of where functions bend.
std::vector<float> Samples() {
  std::vector<float> x = reference::HardFloats(1000000);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (int i = -110000; i <= 90000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  return x;
}

TEST(VecMath, LargestErrorsOverASample) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const std::vector<float> x = Samples();
  std::vector<double> exact(x.size());
  std::vector<float> y(x.size());
  for (const Accuracy& function : kAccuracies) {
    for (size_t i = 0; i < x.size(); ++i) exact[i] = function.exact(static_cast<double>(x[i]));
    ForEachTarget([&](const std::string& target) {
      (GetElementwiseKernels().*function.kernel)(x.data(), y.data(), x.size());
      double worst = 0;
      size_t at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double ulps = reference::UlpError(y[i], exact[i]);
        if (!(ulps <= worst)) {
          worst = ulps;
          at = i;
        }
      }
      const bool fma = reference::TargetHasFma(target);
      const double promise = fma ? function.ulps : function.ulps_no_fma;
      std::printf("%-9s %-9s %.4f ulp at %.9g (promise: %.2f)\n",
                  std::string(function.name).c_str(), target.c_str(), worst,
                  static_cast<double>(x[at]), promise);
      EXPECT_LE(worst, promise) << function.name << " of " << x[at] << " is " << y[at]
                                << ", wanted " << exact[at];
    });
  }
}

TEST(VecMath, SpecialValuesAreExact) {
  const float* in = reference::kSpecialArguments;
  ForEachTarget([&](const std::string&) {
    for (const Accuracy& function : kAccuracies) {
      SCOPED_TRACE(function.name);
      const auto kernel = GetElementwiseKernels().*function.kernel;
      float out[4];
      kernel(in, out, 4);
      const reference::SpecialValues& special = function.special;
      const float want[] = {special.at_zero, special.at_minus_zero, special.at_inf,
                            special.at_minus_inf};
      EXPECT_TRUE(SameBits(out, want));
      for (const uint32_t bits : reference::kNanBits) {
        const float nan = std::bit_cast<float>(bits);
        float y = 0;
        kernel(&nan, &y, 1);
        EXPECT_TRUE(std::isnan(y)) << std::hex << bits;
      }
    }
  });
}

// Consecutive floats, around every hard one and over whole stretches of some binades.
TEST(VecMath, RisesFromFloatToFloat) {
  std::vector<std::vector<float>> stretches;
  const auto add = [&](uint32_t first, uint32_t count, uint32_t sign) {
    std::vector<float>& x = stretches.emplace_back();
    for (uint32_t i = 0; i < count; ++i) x.push_back(std::bit_cast<float>((first + i) | sign));
    if (sign != 0) std::reverse(x.begin(), x.end());
  };
  for (const float hard : reference::kHardFloats) {
    const uint32_t bits = std::bit_cast<uint32_t>(hard);
    const uint32_t magnitude = std::clamp(bits & 0x7FFFFFFFu, 2048u, 0x7F800000u - 2048u);
    add(magnitude - 2048, 4097, bits & 0x80000000u);
  }
  for (const float from : {0.2f, 0.69f, 1.0f, 3.0f, 8.9f, 80.0f}) {
    for (const uint32_t sign : {0u, 0x80000000u}) add(std::bit_cast<uint32_t>(from), 50000, sign);
  }
  ForEachTarget([&](const std::string&) {
    for (const Accuracy& function : kAccuracies) {
      if (!function.monotone) continue;
      for (const std::vector<float>& x : stretches) {
        std::vector<float> y(x.size());
        (GetElementwiseKernels().*function.kernel)(x.data(), y.data(), x.size());
        for (size_t i = 0; i + 1 < x.size(); ++i) {
          if (x[i] < function.rises_from) continue;
          ASSERT_LE(y[i], y[i + 1]) << function.name << " falls after " << x[i];
        }
      }
    }
  });
}

TEST(VecMath, EdgesOfTheRanges) {
  ForEachTarget([](const std::string&) {
    const ElementwiseKernels& k = GetElementwiseKernels();
    const auto call = [](ElementwiseKernels::Unary f, float x) {
      float y;
      f(&x, &y, 1);
      return y;
    };
    EXPECT_EQ(call(k.exp, 88.7228317f), 3.40279851e38f) << "the largest x with a finite result";
    EXPECT_EQ(call(k.exp, 88.7228394f), kInf);
    EXPECT_EQ(call(k.exp, -103.97f), std::numeric_limits<float>::denorm_min());
    EXPECT_EQ(call(k.exp, -103.98f), 0.0f);
    EXPECT_EQ(call(k.exp, -200.0f), 0.0f);
    EXPECT_EQ(call(k.exp, std::numeric_limits<float>::lowest()), 0.0f);
    EXPECT_EQ(call(k.tanh, 9.2f), 1.0f);
    EXPECT_EQ(call(k.tanh, -9.2f), -1.0f);
    EXPECT_EQ(call(k.gelu, 6.0f), 6.0f);
    EXPECT_EQ(call(k.gelu, std::numeric_limits<float>::max()), std::numeric_limits<float>::max());
    EXPECT_LT(call(k.gelu, -14.0f), 0.0f) << "the tail goes down to subnormals";
    EXPECT_LT(call(k.silu, -106.0f), 0.0f);
    EXPECT_LT(call(k.gelu_tanh, -10.6f), 0.0f);
    const float tiny = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(call(k.tanh, tiny), tiny);
    EXPECT_EQ(call(k.exp, tiny), 1.0f);
  });
}

TEST(VecMath, EqualBitsOnAllTargetsWithFma) {
  const std::vector<float> x = Samples();
  for (const Accuracy& function : kAccuracies) {
    ExpectSameBitsWithFma(function.name, [&] {
      std::vector<float> y(x.size());
      (GetElementwiseKernels().*function.kernel)(x.data(), y.data(), x.size());
      return y;
    });
  }
}

TEST(VecMath, AnElementDoesNotDependOnItsPlace) {
  constexpr size_t kCount = 70;
  std::vector<float> x(kCount);
  for (size_t i = 0; i < kCount; ++i) x[i] = -7.0f + 0.2f * static_cast<float>(i);
  ForEachTarget([&](const std::string&) {
    for (const Accuracy& function : kAccuracies) {
      const auto kernel = GetElementwiseKernels().*function.kernel;
      std::vector<float> alone(kCount);
      for (size_t i = 0; i < kCount; ++i) kernel(&x[i], &alone[i], 1);
      for (size_t begin = 0; begin < 20; ++begin) {
        for (size_t n = 0; begin + n <= kCount; ++n) {
          std::vector<float> y(n + 1, 42.0f);
          kernel(x.data() + begin, y.data(), n);
          ASSERT_TRUE(SameBits({y.data(), n}, {alone.data() + begin, n})) << function.name;
          ASSERT_EQ(y[n], 42.0f) << function.name << " wrote past the end";
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore
