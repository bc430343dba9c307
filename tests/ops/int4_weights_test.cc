// SPDX-License-Identifier: Apache-2.0
//
// Weights in 4 bits: the search for a group's scale against a scale of the largest magnitude, and
// whole products through packing and the loops, to the bit.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/kernels/int4_groups.h"
#include "engine/ops/gemm.h"
#include "gtest/gtest.h"
#include "reference/int4.h"
#include "tests/support/gemm_elements.h"
#include "tests/support/guarded.h"
#include "tests/support/results.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double ErrorOf(const float* w, const Int4Group& group) {
  double error = 0;
  for (size_t i = 0; i < kInt4Group; ++i) {
    const double left = w[i] - static_cast<double>(group.scale) * group.q[i];
    error += left * left;
  }
  return error;
}

// As Q4_0 has it: the number of the largest magnitude is -8 steps.
double ErrorOfLargest(const float* w) {
  float extreme = 0;
  for (size_t i = 0; i < kInt4Group; ++i) {
    if (std::fabs(w[i]) > std::fabs(extreme)) extreme = w[i];
  }
  Int4Group group{extreme / -8};
  for (size_t i = 0; i < kInt4Group; ++i) {
    group.q[i] = static_cast<int8_t>(std::clamp(std::nearbyint(w[i] / group.scale), -8.0f, 7.0f));
  }
  return ErrorOf(w, group);
}

TEST(Int4Weights, NoWorseThanTheLargestMagnitude) {
  constexpr size_t kGroups = 1000;
  const std::vector<float> w = RandomFloats(kGroups * kInt4Group, 1, 0.05f);
  double error = 0;
  double of_largest = 0;
  double squares = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    const float* const at = w.data() + g * kInt4Group;
    const Int4Group group = GetInt4Kernels().quantize(at);
    EXPECT_EQ(Bf16ToF32(F32ToBf16(group.scale)), group.scale);
    for (size_t i = 0; i < kInt4Group; ++i) {
      ASSERT_GE(group.q[i], -8);
      ASSERT_LE(group.q[i], 7);
      if (group.q[i] > -8 && group.q[i] < 7) {
        EXPECT_LE(std::fabs(at[i] - group.scale * group.q[i]), 0.5001f * std::fabs(group.scale));
      }
      squares += static_cast<double>(at[i]) * at[i];
    }
    // 1.02: the scale is rounded to 8 bits.
    EXPECT_LE(ErrorOf(at, group), 1.02 * ErrorOfLargest(at));
    error += ErrorOf(at, group);
    of_largest += ErrorOfLargest(at);
  }
  std::printf("relative error %.4f, by the largest magnitude %.4f\n", std::sqrt(error / squares),
              std::sqrt(of_largest / squares));
  EXPECT_LE(error, 0.9 * of_largest);
  EXPECT_LE(std::sqrt(error / squares), 0.08);
}

// A power of two changes the scale alone, and numbers that are sums of steps come back.
TEST(Int4Weights, SpecialGroups) {
  std::vector<float> w = RandomFloats(kInt4Group, 2);
  const Int4Group group = GetInt4Kernels().quantize(w.data());
  for (const float factor : {0x1p60f, 0x1p-60f, -1.0f}) {
    std::vector<float> scaled = w;
    for (float& v : scaled) v *= factor;
    const Int4Group other = GetInt4Kernels().quantize(scaled.data());
    EXPECT_EQ(other.q, group.q);
    EXPECT_EQ(other.scale, group.scale * factor);
  }
  for (size_t i = 0; i < kInt4Group; ++i) w[i] = 0.375f * (static_cast<float>(i % 16) - 8);
  const Int4Group exact = GetInt4Kernels().quantize(w.data());
  for (size_t i = 0; i < kInt4Group; ++i) EXPECT_EQ(exact.scale * exact.q[i], w[i]);
  for (const float tiny : {0.0f, 0x1p-101f, 0x1p-149f}) {
    const Int4Group zeros = GetInt4Kernels().quantize(std::vector<float>(kInt4Group, tiny).data());
    EXPECT_EQ(zeros.scale, 0.0f);
    EXPECT_EQ(zeros.q, (std::array<int8_t, kInt4Group>{}));
  }
  for (const float bad : {kInf, -kInf, std::nanf("")}) {
    w[17] = bad;
    EXPECT_TRUE(std::isnan(GetInt4Kernels().quantize(w.data()).scale)) << bad;
  }
}

// The definition in int4_groups.h, one number after another.
Int4Group Defined(const float* w) {
  float extreme = 0;
  for (size_t i = 0; i < kInt4Group; ++i) {
    if (std::fabs(w[i]) > std::fabs(extreme)) extreme = w[i];
  }
  const auto round = [](float number, float inverse) {
    return std::nearbyintf(std::min(std::max(number * inverse, -8.0f), 7.0f));
  };
  const auto sum = [](const float* lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  };
  Int4Group group{};
  float most = 0;
  for (int step = 0; step < 8; ++step) {
    float products[8] = {}, squares[8] = {};
    for (size_t i = 0; i < kInt4Group; ++i) {
      const float unit = w[i] / extreme;
      const float q = round(unit, -7.0f - 0.25f * static_cast<float>(step));
      products[i % 8] += unit * q;
      squares[i % 8] += q * q;
    }
    const float gain = sum(products) * sum(products) / sum(squares);
    if (!(gain > most)) continue;
    most = gain;
    group.scale = Bf16ToF32(F32ToBf16(sum(products) / sum(squares) * extreme));
  }
  for (size_t i = 0; i < kInt4Group; ++i) {
    group.q[i] = static_cast<int8_t>(round(w[i], 1.0f / group.scale));
  }
  return group;
}

// On every target, ties and several extremes of one magnitude included.
TEST(Int4Weights, AsDefined) {
  constexpr size_t kGroups = 500;
  std::vector<float> w = RandomFloats(kGroups * kInt4Group, 3, 0.05f);
  for (size_t i = 0; i < w.size() / 4; ++i) w[i] = std::nearbyint(w[i] * 200.0f) / 64.0f;
  ForEachTarget([&](const std::string& /*name*/) {
    for (size_t g = 0; g < kGroups; ++g) {
      const float* const at = w.data() + g * kInt4Group;
      const Int4Group group = GetInt4Kernels().quantize(at);
      const Int4Group wanted = Defined(at);
      ASSERT_EQ(group.q, wanted.q) << "group " << g;
      ASSERT_EQ(group.scale, wanted.scale) << "group " << g;
    }
  });
}

struct Sizes {
  size_t m;
  size_t n;
  size_t k;
};

// Rows made by the kernel times a packed matrix, gated or not, for blocks and slices of many sizes.
void CheckProduct(const Sizes& sizes, bool gated) {
  const auto [m, n, k] = sizes;
  SCOPED_TRACE(testing::Message() << m << ", " << n << ", " << k << (gated ? " gated" : ""));
  const GemmKernel& kernel = GetGemmKernelInt4();
  const bool fma = HasFma(kernel);
  const size_t halves = gated ? 2 : 1;
  const std::vector<float> w = RandomFloats(halves * n * k + 1, 1, 0.1f);
  const std::vector<float> bias = RandomFloats(halves * n, 2);
  const std::vector<float> x = RandomFloats(m * k + 1, 3);
  WeightSource source{.num_parts = halves, .gated = gated};
  for (size_t half = 0; half < halves; ++half) {
    source.parts[half] = {ConstView(w.data() + half * n * k, {n, k}),
                          ConstView(bias.data() + half * n, Shape(n))};
  }
  const PackedMatrix packed = Taken(PackedMatrix::Create(source, kernel));
  const size_t groups = kernel.GroupsOf(k);
  const size_t whole = groups * kInt4Group;
  std::vector<std::byte> rows(m * whole);
  std::vector<RowQuant> quant(m);
  kernel.pack_lhs(
      {.in = {x.data(), k}, .rows = m, .k = k, .out = {rows.data(), whole, quant.data()}});
  std::vector<std::vector<int8_t>> q(halves * n);
  std::vector<std::vector<float>> scales(halves * n);
  for (size_t j = 0; j < halves * n; ++j) {
    for (size_t k0 = 0; k0 < k; k0 += kInt4Group) {
      float piece[kInt4Group] = {};
      std::copy_n(w.data() + j * k + k0, std::min(kInt4Group, k - k0), piece);
      const Int4Group group = GetInt4Kernels().quantize(piece);
      q[j].insert(q[j].end(), group.q.begin(), group.q.end());
      scales[j].push_back(group.scale);
    }
  }
  std::vector<float> want;
  for (size_t i = 0; i < m; ++i) {
    std::vector<uint8_t> row;
    for (size_t e = 0; e < whole; ++e) {
      row.push_back(static_cast<uint8_t>(ElementOfA(kernel, rows.data(), i * whole + e)));
    }
    const auto product = [&](size_t j) {
      const float sum = reference::Int4Sum(fma, row, q[j], scales[j], 0);
      return reference::Int4Finish(fma, sum, quant[i].scale, quant[i].zero_point,
                                   reference::Int4ColumnSum(q[j], scales[j]), bias[j]);
    };
    for (size_t j = 0; j < n; ++j) {
      want.push_back(gated ? product(j) * product(n + j) : product(j));
    }
  }
  const PackedView& b = packed.view();
  for (const GemmBlocking& blocking :
       {packed.blocking(), GemmBlocking{5, 1024}, GemmBlocking{128, 1}, GemmBlocking{7, 3}}) {
    SCOPED_TRACE(testing::Message() << "mc " << blocking.mc << ", kc " << blocking.kc);
    Guarded c({m, n});
    GemmArgs args{};
    args.a = {rows.data(), whole, quant.data()};
    args.b = b;
    args.c = {c.view().data(), n};
    if (gated) {
      args.gated = [](const float* gate, size_t ld_gate, float* y, size_t ldc, size_t count,
                      size_t cols) {
        for (size_t i = 0; i < count; ++i) {
          for (size_t j = 0; j < cols; ++j) y[i * ldc + j] *= gate[i * ld_gate + j];
        }
      };
    }
    GemmBlock(args, blocking, 0, m / 3, 0, b.panels());
    GemmBlock(args, blocking, m / 3, m, b.panels() / 2, b.panels());
    GemmBlock(args, blocking, m / 3, m, 0, b.panels() / 2);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(c.view()(i / n, i % n)), std::bit_cast<uint32_t>(want[i]))
          << "at " << i / n << ", " << i % n;
    }
    ASSERT_TRUE(c.Intact());
  }
}

TEST(Int4Weights, ProductsToTheBit) {
  ForEachTarget([](const std::string&) {
    for (const bool gated : {false, true}) {
      for (const Sizes& sizes :
           {Sizes{1, 1, 1}, Sizes{3, 17, 31}, Sizes{7, 50, 32}, Sizes{20, 33, 33},
            Sizes{16, 97, 300}, Sizes{131, 40, 96}, Sizes{2, 9, 0}, Sizes{40, 17, 64},
            Sizes{38, 9, 64}, Sizes{18, 17, 300}}) {
        CheckProduct(sizes, gated);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// int8 weights with scales of rows and inputs are what they stand for, times the inputs' scales.
TEST(Int4Weights, FromInt8WithInputScales) {
  constexpr size_t kN = 5, kK = 70;
  std::vector<int8_t> stored;
  for (size_t i = 0; i < kN * kK; ++i) stored.push_back(static_cast<int8_t>(i * 37 % 255) - 127);
  const std::vector<float> scale = RandomFloats(kN, 1, 0.01f, 0.05f);
  std::vector<float> input = RandomFloats(kK, 2, 0.1f, 1);
  std::vector<float> plain;
  for (size_t i = 0; i < stored.size(); ++i) {
    plain.push_back(static_cast<float>(stored[i]) * scale[i / kK]);
  }
  WeightSource source = WeightSource::One(WeightView(DType::kI8, stored.data(), {kN, kK}));
  source.parts[0].scale = ConstView(scale.data(), Shape(kN));
  source.input_scale = ConstView(input.data(), Shape(kK));
  const GemmKernel& kernel = GetGemmKernelInt4();
  const Result<PackedMatrix> packed = PackedMatrix::Create(source, kernel);
  const Result<PackedMatrix> of_floats =
      PackedMatrix::Create(WeightSource::One(ConstView(plain.data(), {kN, kK})), kernel);
  ASSERT_TRUE(packed.ok());
  ASSERT_TRUE(of_floats.ok());
  const size_t bytes = packed->view().packed_bytes();
  ASSERT_EQ(bytes, of_floats->view().packed_bytes());
  EXPECT_EQ(bytes, (kN + kernel.lanes - 1) / kernel.lanes * kernel.lanes * 3 * kInt4GroupBytes);
  EXPECT_EQ(std::memcmp(packed->view().data, of_floats->view().data, bytes), 0);
}

TEST(Int4Weights, NumbersThatAreNotFiniteAreRefused) {
  std::vector<float> w(3 * 40, 0.5f);
  w[2 * 40 + 39] = kInf;
  EXPECT_TRUE(FailsWith(
      PackedMatrix::Create(WeightSource::One(ConstView(w.data(), {3, 40})), GetGemmKernelInt4()),
      {"not finite"}, kAnyCode));
}

}  // namespace
}  // namespace encore::internal
