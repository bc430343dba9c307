// SPDX-License-Identifier: Apache-2.0
//
// The activations of a block against double precision on every SIMD target: a sample of the floats
// that `encore verify` tries one by one, special values, all tile sizes, and equal bits between
// targets.

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
#include "reference/tile_accuracy.h"
#include "tests/support/bits_with_fma.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using internal::GetActivationKernel;
using reference::kTileAccuracies;
using reference::TileAccuracy;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every 4099th float, and the hard ones with a grid of where functions bend.
std::vector<float> Samples() {
  std::vector<float> x = reference::HardFloats(1200000);
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return x;
}

TEST(Activation, LargestErrorsOverASample) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const std::vector<float> x = Samples();
  for (const TileAccuracy& function : kTileAccuracies) {
    std::vector<double> exact(x.size());
    for (size_t i = 0; i < x.size(); ++i) exact[i] = function.exact(static_cast<double>(x[i]));
    ForEachTarget([&](const std::string& target) {
      std::vector<float> y = x;
      GetActivationKernel(function.activation).tile(y.data(), y.size(), 1, y.size());
      reference::TileError worst{0, 0};
      for (size_t i = 0; i < x.size(); ++i) {
        const reference::TileError error = reference::TileErrorOf(x[i], y[i], exact[i]);
        worst = {std::max(worst.ulps, error.ulps), std::max(worst.early_ulps, error.early_ulps)};
      }
      const bool fma = reference::TargetHasFma(target);
      const double promise = fma ? function.ulps : function.ulps_no_fma;
      std::printf("%-14s %-9s %.4f ulp of x (promise: %.2f), %.4f before the last rounding\n",
                  std::string(function.name).c_str(), target.c_str(), worst.ulps, promise,
                  worst.early_ulps);
      EXPECT_LE(worst.ulps, promise) << function.name;
      if (fma) {
        EXPECT_LE(worst.early_ulps, function.early_ulps) << function.name;
      }
    });
  }
}

TEST(Activation, SpecialValues) {
  std::vector<float> in = {0.0f,
                           -0.0f,
                           kInf,
                           -kInf,
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::lowest(),
                           -19.0f,
                           19.0f};
  for (const uint32_t bits : reference::kNanBits) in.push_back(std::bit_cast<float>(bits));
  ForEachTarget([&](const std::string&) {
    for (const TileAccuracy& function : kTileAccuracies) {
      SCOPED_TRACE(function.name);
      std::vector<float> y = in;
      GetActivationKernel(function.activation).tile(y.data(), y.size(), 1, y.size());
      EXPECT_TRUE(SameBits({y.data(), 3}, {in.data(), 3}));
      EXPECT_EQ(y[3], 0.0f);
      EXPECT_EQ(y[4], in[4]);
      EXPECT_EQ(y[5], 0.0f);
      EXPECT_EQ(y[6], 0.0f) << "saturated";
      EXPECT_EQ(y[7], in[7]) << "saturated";
      for (size_t i = 8; i < in.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
    }
  });
}

TEST(Activation, EqualBitsOnAllTargetsWithFma) {
  const std::vector<float> x = Samples();
  for (const TileAccuracy& function : kTileAccuracies) {
    ExpectSameBitsWithFma(function.name, [&] {
      std::vector<float> y = x;
      GetActivationKernel(function.activation).tile(y.data(), y.size(), 1, y.size());
      return y;
    });
  }
}

TEST(Activation, TilesOfAllSizes) {
  constexpr size_t kLdc = 77;
  constexpr size_t kRows = 7;
  std::vector<float> x(kLdc * kRows);
  for (size_t i = 0; i < x.size(); ++i) x[i] = -8.0f + 0.03f * static_cast<float>(i);
  ForEachTarget([&](const std::string&) {
    for (const TileAccuracy& function : kTileAccuracies) {
      const auto kernel = GetActivationKernel(function.activation).tile;
      std::vector<float> alone = x;
      for (float& v : alone) kernel(&v, 1, 1, 1);
      for (const size_t rows : {0, 1, 2, 7}) {
        for (size_t cols = 0; cols <= 70; ++cols) {
          std::vector<float> want = x;
          for (size_t r = 0; r < rows; ++r) {
            std::copy_n(alone.begin() + static_cast<ptrdiff_t>(r * kLdc + 1), cols,
                        want.begin() + static_cast<ptrdiff_t>(r * kLdc + 1));
          }
          std::vector<float> y = x;
          kernel(y.data() + 1, kLdc, rows, cols);
          ASSERT_TRUE(SameBits(y, want)) << function.name << " " << rows << " x " << cols;
        }
      }
    }
  });
}

// f(gate) * c with one rounding, whatever the place, NaN and infinities as that product has them.
TEST(Activation, GatesOfAllSizes) {
  constexpr size_t kLdc = 77, kLdGate = 83, kRows = 7;
  std::vector<float> gate(kLdGate * kRows), x(kLdc * kRows);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = -9.0f + 0.03f * static_cast<float>(i);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 3.0f - 0.013f * static_cast<float>(i);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  x[6] = kInf;
  gate[7] = std::numeric_limits<float>::quiet_NaN();
  gate[8] = -kInf;
  x[8] = kInf;  // 0 * inf
  ForEachTarget([&](const std::string&) {
    for (const TileAccuracy& function : kTileAccuracies) {
      const auto kernels = GetActivationKernel(function.activation);
      std::vector<float> activated = gate;
      kernels.tile(activated.data(), activated.size(), 1, activated.size());
      for (const size_t rows : {0, 1, 2, 7}) {
        for (size_t cols = 0; cols <= 70; ++cols) {
          std::vector<float> want = x;
          for (size_t r = 0; r < rows; ++r) {
            for (size_t i = 1; i <= cols; ++i) want[r * kLdc + i] *= activated[r * kLdGate + i];
          }
          std::vector<float> y = x;
          kernels.gated(gate.data() + 1, kLdGate, y.data() + 1, kLdc, rows, cols);
          for (size_t i = 0; i < y.size(); ++i) {
            ASSERT_TRUE(std::isnan(want[i])
                            ? std::isnan(y[i])
                            : std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(want[i]))
                << function.name << " " << rows << " x " << cols << ", element " << i;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore
