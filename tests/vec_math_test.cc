// SPDX-License-Identifier: Apache-2.0
//
// The elementwise kernels against double precision on every SIMD target: a sample of the floats
// that `encore-ulp` tries one by one, held to the same largest errors (reference/accuracy.h),
// special values, and equal bits between targets and places. Not here: strides
// (elementwise_test.cc).

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/elementwise.h"
#include "gtest/gtest.h"
#include "tests/compare.h"
#include "tests/reference/accuracy.h"
#include "tests/targets.h"

namespace encore {
namespace {

using internal::ElementwiseKernels;
using internal::GetElementwiseKernels;
using reference::Accuracy;
using reference::kAccuracies;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every 4099th float, a dense stretch where functions bend, and the places with the largest errors
// that trying all floats has found.
std::vector<float> Samples() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (int i = -600000; i <= 600000; ++i) x.push_back(static_cast<float>(i) * 2.41e-5f);
  for (int i = -110000; i <= 90000; ++i) x.push_back(static_cast<float>(i) * 1e-3f);
  for (const float worst :
       {5.20192909f, 37.7776642f, -0.973712862f, -0.879400551f, -2.1934309f, -1.84611177f,
        15.5966196f, 4.50664568f, 5.09894657f, 0.150558487f, -1.84351015f, -2.19838095f,
        -22.5283146f, -89.0723114f, -5.47580481f, -5.64569759f}) {
    x.push_back(worst);
  }
  return x;
}

TEST(VecMath, LargestErrorsOverASample) {
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
  struct Case {
    ElementwiseKernels::Unary ElementwiseKernels::*kernel;
    const char* name;
    float at_zero, at_minus_zero, at_inf, at_minus_inf;
  };
  const Case cases[] = {
      {&ElementwiseKernels::exp, "exp", 1, 1, kInf, 0},
      {&ElementwiseKernels::tanh, "tanh", 0, -0.0f, 1, -1},
      {&ElementwiseKernels::relu, "relu", 0, -0.0f, kInf, 0},
      {&ElementwiseKernels::gelu, "gelu", 0, -0.0f, kInf, -0.0f},
      {&ElementwiseKernels::gelu_tanh, "gelu_tanh", 0, -0.0f, kInf, -0.0f},
      {&ElementwiseKernels::silu, "silu", 0, -0.0f, kInf, -0.0f},
  };
  const float in[] = {0.0f, -0.0f, kInf, -kInf};
  ForEachTarget([&](const std::string&) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.name);
      const auto kernel = GetElementwiseKernels().*c.kernel;
      float out[4];
      kernel(in, out, 4);
      const float want[] = {c.at_zero, c.at_minus_zero, c.at_inf, c.at_minus_inf};
      EXPECT_TRUE(SameBits(out, want));
      for (const uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7FC00001u, 0x7FFFFFFFu, 0xFFFFFFFFu,
                                  0x7F800001u, 0x7FA00000u}) {
        const float nan = std::bit_cast<float>(bits);
        float y = 0;
        kernel(&nan, &y, 1);
        EXPECT_TRUE(std::isnan(y)) << std::hex << bits;
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
  std::vector<float> y(x.size());
  for (const Accuracy& function : kAccuracies) {
    uint64_t want = 0;
    std::string first;
    ForEachTarget([&](const std::string& target) {
      if (!reference::TargetHasFma(target)) return;
      (GetElementwiseKernels().*function.kernel)(x.data(), y.data(), x.size());
      for (float& v : y) {
        if (std::isnan(v)) v = 0;  // which NaN is not promised
      }
      const uint64_t hash = HashBits(y);
      if (first.empty()) {
        first = target;
        want = hash;
      }
      EXPECT_EQ(hash, want) << function.name << " differs between " << first << " and " << target;
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
