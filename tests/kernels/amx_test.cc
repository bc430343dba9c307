// SPDX-License-Identifier: Apache-2.0
//
// The block kernels of AMX (engine/kernels/gemm_amx-inl.h) on any x86 machine, with C++ in place of
// its instructions: sums to the bit for all numbers of rows, columns and groups, no byte read
// or written but their own, and how many instructions they take.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/kernels/gemm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/amx_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#define ENCORE_AMX_TILES "tests/support/amx_stand_in-inl.h"
#undef ENCORE_AMX_TARGET
#define ENCORE_AMX_TARGET HWY_TARGET
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_amx-inl.h"
#include "hwy/highway.h"

#ifndef ENCORE_TESTS_KERNELS_AMX_KERNELS_
#define ENCORE_TESTS_KERNELS_AMX_KERNELS_
namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMostColumns = 4;  // of tiles, 16 columns each

// Products of rows with so many columns of tiles, or null where a vector is too short for them.
struct AmxKernels {
  size_t lanes = 0;
  void (*int8[kMostColumns + 1])(GemmTile& slice, size_t rows) = {};
  void (*bf16[kMostColumns + 1])(GemmTile& slice, size_t rows) = {};
};

}  // namespace
}  // namespace encore::internal
#endif  // ENCORE_TESTS_KERNELS_AMX_KERNELS_

#if ENCORE_TARGET_HAS_AMX

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

struct Int8 {
  using Word = uint32_t;
  static constexpr bool kInteger = true;
  static constexpr bool kFloatSums = false;
};
struct Bf16 {
  using Word = uint32_t;
  static constexpr bool kInteger = false;
};

template <size_t kColumns>
void Fill(AmxKernels* kernels) {
  constexpr size_t kVectors = kColumns * amx::kRows / hn::MaxLanes(GemmTagF32());
  if constexpr (kVectors <= kMaxTileVectors) {
    kernels->int8[kColumns] = &amx::Run<Int8, kVectors>;
    kernels->bf16[kColumns] = &amx::Run<Bf16, kVectors>;
  }
}

AmxKernels TargetAmxKernels() {
  AmxKernels kernels;
  kernels.lanes = hn::MaxLanes(GemmTagF32());
  Fill<1>(&kernels);
  Fill<2>(&kernels);
  Fill<3>(&kernels);
  Fill<4>(&kernels);
  return kernels;
}

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_TARGET_HAS_AMX

#if HWY_ONCE && ENCORE_TARGET_HAS_AMX

#include "gtest/gtest.h"
#include "tests/support/gemm_elements.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetAmxKernels);

namespace {

struct AmxCase {
  bool integer;
  size_t rows;
  size_t columns;  // of tiles
  size_t groups;
  bool last = true;     // of int8: floats come out
  bool factors = true;  // of bf16
  size_t missing = 0;   // of the last tile's columns
};

// A case's numbers, in memory without a byte to spare, and what the kernel made of them.
class AmxProduct {
 public:
  explicit AmxProduct(const AmxCase& c)
      : case_(c),
        kr_(c.integer ? 4 : 2),
        nr_(c.columns * kTileColumns),
        k_(c.groups * kr_),
        a_(Numbers(c.rows * k_, 1, 0, 255)),
        b_(Numbers(nr_ * k_, 2, -128, 127)),
        init_(RandomFloats(nr_, 3)),
        init_scale_(RandomFloats(c.rows, 4)),
        scale_(RandomFloats(c.rows, 5)),
        bias_(RandomFloats(nr_, 6)),
        sum_(nr_),
        residual_(RandomFloats(c.rows * nr_, 7)) {
    for (size_t i = 0; c.integer && i < nr_; ++i) {
      init_[i] = std::bit_cast<float>(static_cast<int32_t>(977 * i) - 3000);
    }
    for (size_t i = 0; i < c.rows; ++i) {
      RowQuant quant{};
      quant.scale = scale_[i];
      quant.zero_point = static_cast<float>(i % 256);
      quants_.push_back(quant);
    }
    for (size_t n = 0; n < nr_; ++n) {
      for (size_t e = 0; e < k_; ++e) sum_[n] += b_[n * k_ + e];
    }
  }

  void Run(const AmxKernels& kernels) {
    const size_t bytes = case_.integer ? 1 : 2;
    const auto a = std::make_unique<std::byte[]>(case_.rows * k_ * bytes);
    const auto b = std::make_unique<std::byte[]>(nr_ * k_ * bytes);
    for (size_t i = 0; i < a_.size(); ++i) PutElement(&a[i * bytes], bytes, case_.integer, a_[i]);
    for (size_t n = 0; n < nr_; ++n) {
      for (size_t e = 0; e < k_; ++e) {
        const size_t at = (e / kr_ * nr_ + n) * kr_ + e % kr_;
        PutElement(&b[at * bytes], bytes, case_.integer, b_[n * k_ + e]);
      }
    }
    GemmTile tile = PlainTile();
    tile.in.a = {a.get(), k_ * bytes, quants_.data()};
    tile.in.b = b.get();
    tile.in.ldb = nr_;
    tile.in.kc = case_.groups;
    tile.in.init = init_.data();
    tile.in.prefetch = reinterpret_cast<const char*>(b.get());
    if (case_.integer && case_.last) {
      tile.quant.columns = {bias_.data(), sum_.data()};  // any numbers serve as scales
      tile.quant.bias = bias_.data();
    }
    if (factors()) tile.in.init_scale = init_scale_.data();
    if (factors()) tile.out.scale = scale_.data();
    if (floats()) tile.out.residual = {residual_.data(), nr_};
    tile.out.ldc = nr_ + 3;
    tile.out.cols = cols();
    for (size_t j = 0; j * kernels.lanes < nr_; ++j) {
      tile.out.c[j] = c_.view().data() + j * kernels.lanes;
    }
    (case_.integer ? kernels.int8 : kernels.bf16)[case_.columns](tile, case_.rows);
  }

  void Check(bool fma) const {
    for (size_t i = 0; i < case_.rows; ++i) {
      for (size_t n = 0; n < cols(); ++n) {
        const float* const row = a_.data() + i * k_;
        const float* const column = b_.data() + n * k_;
        float want = factors() ? init_[n] * init_scale_[i] : init_[n];
        if (case_.integer) {
          int32_t sum = std::bit_cast<int32_t>(want);
          for (size_t e = 0; e < k_; ++e) sum += static_cast<int32_t>(row[e] * column[e]);
          want = std::bit_cast<float>(sum);
          if (case_.last) want = Dequantized(fma, sum, quants_[i], bias_[n], sum_[n], bias_[n]);
        } else {
          want = AmxSum(row, column, k_, want);
        }
        if (floats()) {
          want = FinishSum(want, factors() ? scale_[i] : 1.0f, residual_[i * nr_ + n], false);
        }
        const float got = c_.view()(i, n);
        ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
            << "at " << i << ", " << n << ": " << got << ", wanted " << want;
      }
    }
    ASSERT_TRUE(c_.Intact());
  }

 private:
  std::vector<float> Numbers(size_t count, uint32_t seed, float least, float most) const {
    std::vector<float> numbers = RandomFloats(count, seed);
    for (float& v : numbers) {
      v = case_.integer ? std::clamp(std::nearbyint(v * 90 + least / 2 + most / 2), least, most)
                        : Bf16ToF32(F32ToBf16(v));
    }
    return numbers;
  }
  size_t cols() const { return nr_ - case_.missing; }
  bool factors() const { return case_.factors && !case_.integer; }
  bool floats() const { return !case_.integer || case_.last; }

  static constexpr size_t kTileColumns = 16;
  AmxCase case_;
  size_t kr_, nr_, k_;
  std::vector<float> a_, b_, init_, init_scale_, scale_, bias_, sum_, residual_;
  std::vector<RowQuant> quants_;
  mutable Guarded c_{{case_.rows, cols()}, {static_cast<ptrdiff_t>(nr_ + 3), 1}};
};

// Calls f(kernels, whether it has FMA) with the kernels of every target.
template <class F>
void ForEachAmx(const F& f) {
  ForEachTarget([&](const std::string& target) {
    f(ENCORE_DISPATCH(TargetAmxKernels)(), reference::TargetHasFma(target));
  });
}

TEST(Amx, EveryBlockToTheBit) {
  size_t cases = 0;
  ForEachAmx([&](const AmxKernels& kernels, bool fma) {
    for (const bool integer : {true, false}) {
      for (size_t columns = 1; columns <= kMostColumns; ++columns) {
        if (kernels.int8[columns] == nullptr) continue;
        for (const size_t rows : {1, 15, 16, 17, 32, 33, 49, 70}) {
          for (const size_t groups : {0, 1, 16, 17, 40, 48}) {
            // GemmKernel gives int8's whole steps alone, and few rows to tiles.
            if (integer && (groups % 16 != 0 || rows < 16)) continue;
            const AmxCase c{.integer = integer,
                            .rows = rows,
                            .columns = columns,
                            .groups = groups,
                            .last = cases % 3 != 0,
                            .factors = cases % 2 != 0,
                            .missing = cases % 5 == 0 ? 3u : 0u};
            SCOPED_TRACE(testing::Message() << (integer ? "int8" : "bf16") << ", rows " << rows
                                            << ", columns " << columns << ", groups " << groups);
            ++cases;
            AmxProduct product(c);
            product.Run(kernels);
            product.Check(fma);
            if (testing::Test::HasFatalFailure()) return;
            ASSERT_FALSE(amx_stand_in::state.configured) << "tiles were not given back";
          }
        }
      }
    }
  });
  std::printf("%zu cases\n", cases);
  EXPECT_GT(cases, 0u);
}

// A tile is loaded in 8 cycles (16 lines, two a cycle) and multiplied in 16 (Intel's Optimization
// Reference Manual, chapter on AMX), each by a unit of its own. So products are bound by the
// multiplier where loads are at most twice as many: all blocks but one of a single tile.
TEST(Amx, LoadsHideBehindProducts) {
  bool best = true;  // the first one
  ForEachAmx([&](const AmxKernels& kernels, bool /*fma*/) {
    for (size_t columns = 1; columns <= kMostColumns; ++columns) {
      if (kernels.int8[columns] == nullptr) continue;
      for (const size_t rows : {16, 32, 128}) {
        AmxProduct product({.integer = true, .rows = rows, .columns = columns, .groups = 192});
        amx_stand_in::state.loads = amx_stand_in::state.products = 0;
        product.Run(kernels);
        const size_t loads = amx_stand_in::state.loads;
        const size_t products = amx_stand_in::state.products;
        EXPECT_EQ(products, rows / 16 * columns * (192 / 16));
        const double of_products =
            8.0 * static_cast<double>(loads) / (16.0 * static_cast<double>(products));
        if (best) {
          std::printf("%zu rows, %zu columns: %zu products, %zu loads, %.2f of their cycles\n",
                      rows, 16 * columns, products, loads, of_products);
        }
        EXPECT_LE(of_products, columns == 1 && rows == 16 ? 1.05 : 0.8);
      }
    }
    best = false;
  });
}

}  // namespace
}  // namespace encore::internal

#elif HWY_ONCE

#include "gtest/gtest.h"

TEST(Amx, EveryBlockToTheBit) { GTEST_SKIP() << "x86-64 alone has AMX"; }

#endif  // HWY_ONCE && ENCORE_TARGET_HAS_AMX
