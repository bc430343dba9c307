// SPDX-License-Identifier: Apache-2.0
//
// Every micro-kernel of every SIMD target: each element is one chain of multiply-adds in the order
// of k, to the bit, and nothing outside of the tile is written. And packing.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "gtest/gtest.h"
#include "tests/guarded.h"
#include "tests/reference/accuracy.h"
#include "tests/targets.h"

namespace encore::internal {
namespace {

// What the tile reads and writes, and its arguments.
struct TileCase {
  size_t nv;
  size_t mr;
  size_t kc;
  size_t cols;
  bool row_bias;   // init is one row for all
  bool init_is_c;  // init is c itself
  bool residual;
  bool residual_is_c;  // the residual is c itself
};

float Chain(bool fma, float a, float b, float c) {
  if (fma) return std::fma(a, b, c);
  const float product = a * b;  // built with -ffp-contract=off
  return product + c;
}

// Runs one tile and compares every bit.
void Check(const GemmKernel& kernel, const TileCase& t) {
  SCOPED_TRACE(testing::Message() << "nv " << t.nv << ", mr " << t.mr << ", kc " << t.kc
                                  << ", cols " << t.cols << ", row_bias " << t.row_bias
                                  << ", init_is_c " << t.init_is_c << ", residual " << t.residual
                                  << ", residual_is_c " << t.residual_is_c);
  const size_t nr = t.nv * kernel.lanes;
  const size_t lda = t.kc + 3;
  const size_t ldc = nr + 5;
  const std::vector<float> a = RandomFloats(t.mr * lda, 1);
  AlignedBuffer<float> b;
  ASSERT_TRUE(b.Allocate(std::max<size_t>(t.kc * nr, 1)));
  const std::vector<float> b_values = RandomFloats(t.kc * nr, 2);
  std::copy(b_values.begin(), b_values.end(), b.data());
  const std::vector<float> init = RandomFloats(t.mr * ldc, 3);
  const std::vector<float> residual = RandomFloats(t.mr * ldc, 4);
  // Where init is c, the tile may read whole vectors of it, so all of c is there.
  const size_t c_cols = t.init_is_c ? nr : t.cols;
  Guarded c({t.mr, c_cols}, {static_cast<ptrdiff_t>(ldc), 1});
  for (size_t i = 0; i < t.mr; ++i) {
    for (size_t j = 0; j < c_cols; ++j) {
      if (t.init_is_c) c.view()(i, j) = init[i * ldc + j];
      if (t.residual_is_c) c.view()(i, j) = residual[i * ldc + j];
    }
  }

  GemmTile tile{};
  tile.a = a.data();
  tile.lda = lda;
  tile.b = b.data();
  tile.ldb = nr;
  tile.kc = t.kc;
  tile.init = t.init_is_c ? c.view().data() : init.data();
  tile.ld_init = t.row_bias ? 0 : ldc;
  if (t.residual) tile.residual = t.residual_is_c ? c.view().data() : residual.data();
  tile.ld_residual = ldc;
  for (size_t j = 0; j < t.nv; ++j) tile.c[j] = c.view().data() + j * kernel.lanes;
  tile.ldc = ldc;
  tile.cols = t.cols;
  tile.prefetch = reinterpret_cast<const char*>(b.data());
  kernel.tile[t.nv][t.mr](tile);

  const bool fma = reference::TargetHasFma(kernel.target);
  for (size_t i = 0; i < t.mr; ++i) {
    for (size_t j = 0; j < t.cols; ++j) {
      float sum = init[(t.row_bias ? 0 : i * ldc) + j];
      for (size_t k = 0; k < t.kc; ++k) {
        sum = Chain(fma, a[i * lda + k], b.data()[k * nr + j], sum);
      }
      if (t.residual) sum += residual[i * ldc + j];
      ASSERT_EQ(std::bit_cast<uint32_t>(c.view()(i, j)), std::bit_cast<uint32_t>(sum))
          << "at " << i << ", " << j << ": " << c.view()(i, j) << ", wanted " << sum;
    }
    for (size_t j = t.cols; j < c_cols; ++j) {
      ASSERT_EQ(c.view()(i, j), init[i * ldc + j]) << "written past cols at " << i << ", " << j;
    }
  }
  ASSERT_TRUE(c.Intact());
}

TEST(GemmTile, EveryTileIsOneChainToTheBit) {
  ForEachTarget([](const std::string& target) {
    const GemmKernel& kernel = GetGemmKernelF32();
    ASSERT_EQ(kernel.target, target);
    size_t tiles = 0;
    for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
      for (size_t mr = 1; mr <= kernel.max_mr[nv]; ++mr, ++tiles) {
        ASSERT_NE(kernel.tile[nv][mr], nullptr);
        const size_t nr = nv * kernel.lanes;
        for (const size_t kc : {0, 1, 2, 7, 33}) {
          for (const size_t cols : std::set<size_t>{1, kernel.lanes - 1, nr / 2 + 1, nr - 1, nr}) {
            if (cols == 0) continue;
            Check(kernel, {nv, mr, kc, cols, true, false, false, false});
            Check(kernel, {nv, mr, kc, cols, false, false, false, false});
            Check(kernel, {nv, mr, kc, cols, false, true, false, false});
            Check(kernel, {nv, mr, kc, cols, true, false, true, false});
            Check(kernel, {nv, mr, kc, cols, true, false, true, true});
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
    std::printf("%s: %zu tiles\n", kernel.target, tiles);
    EXPECT_GE(tiles, 12u);
  });
}

TEST(GemmTile, TheTableHasNoTileBeyondItsLimits) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    EXPECT_EQ(kernel.max_mr[0], 0u);
    EXPECT_GT(kernel.max_mr[kernel.best_nv], 0u);
    EXPECT_LE(kernel.max_nv() * kernel.lanes, GemmKernel::kMaxNr);
    for (size_t nv = 0; nv <= GemmKernel::kMaxNv; ++nv) {
      EXPECT_LE(kernel.max_mr[nv], GemmKernel::kMaxMr);
      for (size_t mr = kernel.max_mr[nv] + 1; mr <= GemmKernel::kMaxMr; ++mr) {
        EXPECT_EQ(kernel.tile[nv][mr], nullptr);
      }
    }
  });
}

TEST(GemmPack, EveryLayoutOfTheSource) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    for (const size_t k : {0, 1, 3, 4, 5, 8, 31}) {
      for (const size_t cols : {1, 3, 4, 5, 7, 8, 16}) {
        const size_t nr = (cols + kernel.lanes - 1) / kernel.lanes * kernel.lanes;
        struct Layout {
          ptrdiff_t stride_k, stride_n;
        };
        const ptrdiff_t wide = 40;
        for (const Layout& l : {Layout{wide, 1},
                                {1, wide},
                                {wide, 2},
                                {2, wide},
                                {0, 1},
                                {1, 0},
                                {0, 0},
                                {-wide, 1},
                                {1, -wide},
                                {wide, -1},
                                {-1, wide}}) {
          SCOPED_TRACE(testing::Message() << "k " << k << ", cols " << cols << ", strides "
                                          << l.stride_k << ", " << l.stride_n);
          const std::vector<float> source = RandomFloats(6000, 5);
          const float* b = source.data() + 3000;
          Guarded panel({k, nr});
          kernel.pack(b, l.stride_k, l.stride_n, k, cols, nr, panel.view().data());
          for (size_t i = 0; i < k; ++i) {
            for (size_t n = 0; n < nr; ++n) {
              const float want = n < cols ? b[static_cast<ptrdiff_t>(i) * l.stride_k +
                                              static_cast<ptrdiff_t>(n) * l.stride_n]
                                          : 0.0f;
              ASSERT_EQ(panel.view()(i, n), want) << "at " << i << ", " << n;
            }
          }
          ASSERT_TRUE(panel.Intact());
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
