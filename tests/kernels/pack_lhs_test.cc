// SPDX-License-Identifier: Apache-2.0
//
// Rows of A made from rows of floats: bf16 by rounding, int8 by a scale and a zero point of each
// row, on every SIMD target, in place too, and the rows that are special.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/kernels/gemm_kernel.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/gemm_elements.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

struct Made {
  std::vector<float> elements;  // [rows, whole groups]
  std::vector<RowQuant> quant;
};

// Makes rows out of [rows, k], not a float more, into memory with a zone behind each row that must
// stay as it is.
Made Make(const GemmKernel& kernel, const std::vector<float>& x, size_t rows, size_t k,
          const float* factor = nullptr) {
  const size_t whole = kernel.GroupsOf(k) * kernel.kr;
  const size_t ld = whole + 3 * kernel.kr;
  std::vector<std::byte> memory(rows * ld * kernel.a_bytes + 64, std::byte{0xA5});
  const std::vector<std::byte> before = memory;
  const std::vector<float> in(x.begin(), x.begin() + static_cast<ptrdiff_t>(rows * k));
  Made made{{}, std::vector<RowQuant>(rows, RowQuant{-1, -1})};
  kernel.pack_lhs({.in = {in.data(), k},
                   .rows = rows,
                   .k = k,
                   .out = {memory.data(), ld * kernel.a_bytes, made.quant.data()},
                   .factor = factor});
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < whole; ++i) {
      made.elements.push_back(ElementOfA(kernel, memory.data(), r * ld + i));
    }
    const auto row_end = static_cast<ptrdiff_t>((r * ld + whole) * kernel.a_bytes);
    const auto next = static_cast<ptrdiff_t>((r + 1) * ld * kernel.a_bytes);
    EXPECT_TRUE(
        std::equal(memory.begin() + row_end, memory.begin() + next, before.begin() + row_end))
        << "written behind row " << r;
  }
  EXPECT_TRUE(std::equal(memory.end() - 64, memory.end(), before.end() - 64));
  return made;
}

// A row of integers for x times factor, against real numbers.
void CheckInt8Row(const float* x, size_t k, const float* factor, const float* q,
                  const RowQuant& quant) {
  double low = 0;
  double high = 0;
  const auto at = [&](size_t i) { return factor == nullptr ? x[i] : x[i] * factor[i]; };
  for (size_t i = 0; i < k; ++i) {
    low = std::min<double>(low, at(i));
    high = std::max<double>(high, at(i));
  }
  // 255 steps, or a little fewer so that none needs to be clamped.
  const double scale = quant.scale;
  ASSERT_GE(scale, (high - low) / 255 * (1 - 1e-6));
  ASSERT_LE(scale, (high - low) / 254 * (1 + 1e-6));
  ASSERT_EQ(quant.zero_point, std::nearbyint(quant.zero_point));
  ASSERT_GE(quant.zero_point, 0.0f);
  ASSERT_LE(quant.zero_point, 255.0f);
  ASSERT_NEAR(quant.zero_point, -low / scale, 0.51);
  for (size_t i = 0; i < k; ++i) {
    const double want = at(i) / scale + quant.zero_point;
    ASSERT_EQ(q[i], std::nearbyint(q[i]));
    ASSERT_GE(q[i], 0.0f);
    ASSERT_LE(q[i], 255.0f);
    // To nearest, but where the range ends; 1e-4: 1 / scale is rounded, and x times it.
    const bool clamped = (q[i] == 0 && want < 0) || (q[i] == 255 && want > 255);
    ASSERT_LE(std::fabs(q[i] - want), clamped ? 0.52 : 0.5 + 1e-4)
        << "[" << i << "] of " << k << ": " << at(i) << " became " << q[i] << ", scale " << scale
        << ", zero point " << quant.zero_point;
  }
}

TEST(PackLhsInt8, NearestToTheRealNumbers) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelInt8();
    for (const size_t k : {1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 63, 64, 65, 127, 130, 771}) {
      const std::vector<float> factor = RandomFloats(k, 4, 0.3f, 1);
      for (const float mean : {0.0f, 0.3f, 5.0f, -5.0f, -0.02f}) {
        for (const float spread : {1.0f, 1e-20f, 1e20f}) {
          constexpr size_t kRows = 3;
          SCOPED_TRACE(testing::Message() << "k " << k << ", mean " << mean << " of " << spread);
          const std::vector<float> x = RandomFloats(kRows * k, 3, spread, mean * spread);
          for (const float* f : {static_cast<const float*>(nullptr), factor.data()}) {
            const Made made = Make(kernel, x, kRows, k, f);
            const size_t whole = made.elements.size() / kRows;
            for (size_t r = 0; r < kRows; ++r) {
              const float* q = made.elements.data() + r * whole;
              CheckInt8Row(x.data() + r * k, k, f, q, made.quant[r]);
              for (size_t i = k; i < whole; ++i) ASSERT_EQ(q[i], 0.0f) << "padding";
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  });
}

// Rows of few numbers, where the ends of the range meet every fraction of a step.
TEST(PackLhsInt8, TheEndsOfTheRangeDoNotWrap) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelInt8();
    constexpr size_t kRows = 20000;
    constexpr size_t kK = 3;
    std::vector<float> x = RandomFloats(kRows * kK, 9);
    for (size_t r = 0; r < kRows; ++r) {
      // From one sign alone to both alike, in steps far below one of the 255.
      x[r * kK] = -static_cast<float>(r) / kRows;
      x[r * kK + 1] = 1.0f - static_cast<float>(r) / kRows;
      x[r * kK + 2] = std::clamp(x[r * kK + 2], x[r * kK], x[r * kK + 1]);
    }
    const Made made = Make(kernel, x, kRows, kK);
    const size_t whole = made.elements.size() / kRows;
    for (size_t r = 0; r < kRows; ++r) {
      SCOPED_TRACE(testing::Message() << "row " << r);
      CheckInt8Row(x.data() + r * kK, kK, nullptr, made.elements.data() + r * whole, made.quant[r]);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(PackLhsInt8, SpecialRows) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelInt8();
    for (const size_t k : {1, 3, 16, 37, 200}) {
      SCOPED_TRACE(testing::Message() << "k " << k);
      const auto row_of = [&](float most, float one) {
        std::vector<float> row(k, most);
        row[k / 2] = one;
        return row;
      };
      const auto value = [&](const Made& made, size_t i) {
        return double{made.quant[0].scale} * (made.elements[i] - made.quant[0].zero_point);
      };
      // Nothing at all, and next to nothing: exactly zero.
      for (const auto& row : {row_of(0.0f, 0.0f), row_of(-0.0f, 0.0f), row_of(-0.0f, -0.0f),
                              row_of(0.0f, 0x1p-101f), row_of(-0x1.8p-102f, 0x1p-149f)}) {
        const Made made = Make(kernel, row, 1, k);
        EXPECT_EQ(made.quant[0].scale, 0.0f);
        EXPECT_EQ(made.quant[0].zero_point, 0.0f);
      }
      // Where the last tiny row ends, the others begin.
      EXPECT_GT(Make(kernel, row_of(0.0f, 0x1p-100f), 1, k).quant[0].scale, 0.0f);
      // One number everywhere, within half a step of 255 (all of them the same).
      for (const float v : {1.0f, -1.0f, 3e38f, -3e38f, 1e-29f}) {
        const Made made = Make(kernel, row_of(v, v), 1, k);
        for (size_t i = 0; i < k; ++i) {
          EXPECT_NEAR(value(made, i) / v, 1.0, 0.5 / 254) << v;
          EXPECT_EQ(made.elements[i], made.elements[0]);
        }
      }
      // A huge one: the rest are zeros, and exactly that.
      for (const float v : {1e6f, -1e6f, kMax, -kMax}) {
        const Made made = Make(kernel, row_of(0.01f, v), 1, k);
        EXPECT_TRUE(std::isfinite(made.quant[0].scale));
        for (size_t i = 0; i < k; ++i) {
          if (i == k / 2) {
            EXPECT_NEAR(value(made, i) / v, 1.0, 0.5 / 254) << v;
          } else {
            EXPECT_EQ(value(made, i), 0.0f) << v;
          }
        }
      }
      // The widest range there is.
      std::vector<float> widest = row_of(kMax, kMax);
      widest[0] = -kMax;
      EXPECT_TRUE(std::isfinite(Make(kernel, widest, 1, k).quant[0].scale));
      // What is not finite shows in the scale, wherever it lies.
      for (const float bad : {kNan, -kNan, kInf, -kInf}) {
        for (size_t at = 0; at < k; at += 1 + k / 7) {
          std::vector<float> row = RandomFloats(k, 1);
          row[at] = bad;
          EXPECT_TRUE(std::isnan(Make(kernel, row, 1, k).quant[0].scale)) << bad << " at " << at;
          std::vector<float> tiny(k, 0.0f);
          tiny[at] = bad;
          EXPECT_TRUE(std::isnan(Make(kernel, tiny, 1, k).quant[0].scale)) << bad << " at " << at;
        }
      }
      // By its factor too.
      const std::vector<float> factor = row_of(1.0f, kInf);
      const std::vector<float> ones = row_of(1.0f, 1.0f);
      EXPECT_TRUE(std::isnan(Make(kernel, ones, 1, k, factor.data()).quant[0].scale));
    }
  });
}

// A row's elements depend on no other row.
TEST(PackLhs, ABadRowIsNoOthersBusiness) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : KernelsThatPackLhs()) {
      constexpr size_t kRows = 5, kK = 77;
      const std::vector<float> clean = RandomFloats(kRows * kK, 1);
      std::vector<float> bad = clean;
      bad[2 * kK + 5] = kNan;
      bad[2 * kK + 76] = kInf;
      const Made want = Make(kernel, clean, kRows, kK);
      const Made got = Make(kernel, bad, kRows, kK);
      const size_t whole = want.elements.size() / kRows;
      for (size_t r = 0; r < kRows; ++r) {
        if (r == 2) continue;
        for (size_t i = 0; i < whole; ++i) {
          ASSERT_EQ(got.elements[r * whole + i], want.elements[r * whole + i]) << name;
        }
        if (!kernel.integer) continue;
        EXPECT_EQ(got.quant[r].scale, want.quant[r].scale);
        EXPECT_EQ(got.quant[r].zero_point, want.quant[r].zero_point);
      }
    }
  });
}

TEST(PackLhsBf16, RoundedToNearestEven) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : KernelsThatPackLhs()) {
      if (kernel.integer) continue;
      for (const size_t k : {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 64, 101}) {
        constexpr size_t kRows = 3;
        std::vector<float> x = RandomFloats(kRows * k, 6);
        for (size_t i = 0; i < x.size(); i += 3) {  // ties, and beyond the largest
          const uint32_t bits = (std::bit_cast<uint32_t>(x[i]) & 0xFFFF0000u) | 0x8000u;
          x[i] = i % 2 == 0 ? std::bit_cast<float>(bits) : i % 5 == 0 ? kMax : -0.0f;
        }
        const Made made = Make(kernel, x, kRows, k);
        const size_t whole = made.elements.size() / kRows;
        for (size_t r = 0; r < kRows; ++r) {
          for (size_t i = 0; i < whole; ++i) {
            const float want = i < k ? Bf16ToF32(F32ToBf16(x[r * k + i])) : 0.0f;
            ASSERT_EQ(std::bit_cast<uint32_t>(made.elements[r * whole + i]),
                      std::bit_cast<uint32_t>(want))
                << name << ", k " << k << " at " << r << ", " << i;
          }
        }
      }
    }
  });
}

// Over the floats themselves, with as many bytes from row to row.
TEST(PackLhs, InPlace) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : KernelsThatPackLhs()) {
      for (const size_t k : {1, 3, 4, 16, 33, 64, 95, 512}) {
        constexpr size_t kRows = 4;
        const size_t ld = (k + 15) / 16 * 16;
        const std::vector<float> x = RandomFloats(kRows * k, 8);
        const Made want = Make(kernel, x, kRows, k);
        std::vector<float> memory(kRows * ld, kNan);
        for (size_t i = 0; i < x.size(); ++i) memory[i / k * ld + i % k] = x[i];
        std::vector<RowQuant> quant(kRows);
        const size_t ld_out = ld * sizeof(float) / kernel.a_bytes;
        kernel.pack_lhs({.in = {memory.data(), ld},
                         .rows = kRows,
                         .k = k,
                         .out = {reinterpret_cast<std::byte*>(memory.data()), ld * sizeof(float),
                                 quant.data()}});
        const size_t whole = want.elements.size() / kRows;
        for (size_t i = 0; i < want.elements.size(); ++i) {
          ASSERT_EQ(ElementOfA(kernel, memory.data(), i / whole * ld_out + i % whole),
                    want.elements[i])
              << name << ", k " << k << " at " << i / whole << ", " << i % whole;
        }
      }
    }
  });
}

// The integers, scales and zero points of all targets with FMA are the same.
TEST(PackLhsInt8, TheSameOnAllTargetsWithFma) {
  constexpr size_t kRows = 40;
  for (const size_t k : {5, 64, 383}) {
    std::vector<float> x = RandomFloats(kRows * k, 5, 3, 0.5f);
    // Halves of steps, where a different rounding would show.
    for (size_t i = 0; i < kRows * k; i += 2) {
      const size_t row = i / k;
      x[i] = (static_cast<float>(i % 255) + 0.5f) * 0.125f * static_cast<float>(row + 1);
    }
    const std::vector<float> factor = RandomFloats(k, 6, 0.2f, 1);
    for (const float* f : {static_cast<const float*>(nullptr), factor.data()}) {
      Made want;
      std::string first;
      ForEachTarget([&](const std::string& target) {
        if (!reference::TargetHasFma(target)) return;
        const GemmKernel& kernel = GetGemmKernelInt8();
        Made made = Make(kernel, x, kRows, k, f);
        const size_t whole = made.elements.size() / kRows;
        std::vector<float> all;
        for (size_t r = 0; r < kRows; ++r) {
          for (size_t i = 0; i < k; ++i) all.push_back(made.elements[r * whole + i]);
          all.push_back(made.quant[r].scale);
          all.push_back(made.quant[r].zero_point);
        }
        made.elements = all;
        if (first.empty()) {
          first = target;
          want = made;
        }
        EXPECT_TRUE(SameBits(made.elements, want.elements)) << target << " and " << first;
      });
    }
  }
}

}  // namespace
}  // namespace encore::internal
