// SPDX-License-Identifier: Apache-2.0
//
// Every micro-kernel of every SIMD target: each element is one chain of multiply-adds in the order
// of k, to the bit, and nothing outside of the tile is written. And packing.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "tests/support/fma_chain.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

// What the tile reads and writes, and its arguments.
struct TileCase {
  size_t nv;
  size_t mr;
  size_t kc;
  size_t cols;
  bool row_bias = false;   // init is one row for all
  bool init_is_c = false;  // init is c itself
  bool residual = false;
  bool residual_is_c = false;  // the residual is c itself
  bool init_scale = false;
  bool scale = false;
  bool relu = false;
  bool special = false;    // zeros of both signs, infinities and NaN in init
  size_t wider_b = 0;      // floats between the rows of b
  bool scattered = false;  // the vectors of c lie apart, the last one first; not with init_is_c or
                           // residual_is_c
};

void PrintTo(const TileCase& t, std::ostream* out) {
  *out << "nv " << t.nv << ", mr " << t.mr << ", kc " << t.kc << ", cols " << t.cols
       << ", row_bias " << t.row_bias << ", init_is_c " << t.init_is_c << ", residual "
       << t.residual << ", residual_is_c " << t.residual_is_c << ", init_scale " << t.init_scale
       << ", scale " << t.scale << ", relu " << t.relu << ", special " << t.special << ", wider_b "
       << t.wider_b << ", scattered " << t.scattered;
}

std::vector<float> Init(const TileCase& t, size_t floats) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {-0.0f, 0.0f, NAN, -1.0f, -kInfinity, kInfinity, -1e-45f, 1e-45f};
  std::vector<float> init = RandomFloats(floats, 3);
  for (size_t i = 0; t.special && i < floats; i += 2) init[i] = kSpecial[i / 2 % 8];
  return init;
}

// Runs one tile and compares every bit.
void Check(const GemmKernel& kernel, const TileCase& t) {
  SCOPED_TRACE(testing::PrintToString(t));
  const size_t lanes = kernel.lanes;
  const size_t nr = t.nv * lanes;
  const size_t lda = t.kc + 3;
  const size_t ldb = nr + t.wider_b;
  const size_t ldc = nr + 5;
  const std::vector<float> a = RandomFloats(t.mr * lda, 1);
  AlignedBuffer<float> b;
  ASSERT_TRUE(b.Allocate(std::max<size_t>(t.kc * ldb, 1)));
  const std::vector<float> b_values = RandomFloats(t.kc * ldb, 2);
  std::copy(b_values.begin(), b_values.end(), b.data());
  const std::vector<float> init = Init(t, t.mr * ldc);
  const std::vector<float> residual = RandomFloats(t.mr * ldc, 4);
  const std::vector<float> init_scale = RandomFloats(t.mr, 5);
  const std::vector<float> scale = RandomFloats(t.mr, 6);

  // [vector, row, lane]. Where init is c, the tile may read whole vectors of it.
  const ptrdiff_t apart =
      t.scattered ? -static_cast<ptrdiff_t>(t.mr * ldc + 3) : static_cast<ptrdiff_t>(lanes);
  Guarded c({t.nv, t.mr, lanes}, {apart, static_cast<ptrdiff_t>(ldc), 1});
  const uint32_t untouched = std::bit_cast<uint32_t>(c.view()(0, 0, 0));
  for (size_t j = 0; j < nr; ++j) {
    for (size_t i = 0; i < t.mr; ++i) {
      if (t.init_is_c) c.view()(j / lanes, i, j % lanes) = init[i * ldc + j];
      if (t.residual_is_c && j < t.cols) c.view()(j / lanes, i, j % lanes) = residual[i * ldc + j];
    }
  }

  GemmTile tile{};
  tile.in.a = InputRows::Of(ConstRows{a.data(), lda});
  tile.in.b = b.data();
  tile.in.ldb = ldb;
  tile.in.kc = t.kc;
  tile.in.init = t.init_is_c ? c.view().data() : init.data();
  tile.in.ld_init = t.row_bias ? 0 : ldc;
  if (t.init_scale) tile.in.init_scale = init_scale.data();
  if (t.scale) tile.out.scale = scale.data();
  if (t.residual) tile.out.residual.data = t.residual_is_c ? c.view().data() : residual.data();
  tile.out.residual.ld = ldc;
  tile.out.relu = t.relu;
  for (size_t j = 0; j < t.nv; ++j) tile.out.c[j] = c.view()[j].data();
  tile.out.ldc = ldc;
  tile.out.cols = t.cols;
  // Fetching ahead changes nothing.
  if ((t.nv + t.mr + t.kc) % 2 == 0) tile.in.prefetch = reinterpret_cast<const char*>(b.data());
  kernel.run[t.nv](tile, t.mr);

  const bool fma = reference::TargetHasFma(kernel.target);
  for (size_t i = 0; i < t.mr; ++i) {
    for (size_t j = 0; j < nr; ++j) {
      const float got = c.view()(j / lanes, i, j % lanes);
      if (j >= t.cols) {
        const uint32_t want = t.init_is_c ? std::bit_cast<uint32_t>(init[i * ldc + j]) : untouched;
        ASSERT_EQ(std::bit_cast<uint32_t>(got), want) << "written past cols at " << i << ", " << j;
        continue;
      }
      float want = init[(t.row_bias ? 0 : i * ldc) + j];
      if (t.init_scale) want *= init_scale[i];
      for (size_t k = 0; k < t.kc; ++k) {
        want = MulAdd(fma, a[i * lda + k], b.data()[k * ldb + j], want);
      }
      want = FinishSum(want, t.scale ? scale[i] : 1.0f, t.residual ? residual[i * ldc + j] : -0.0f,
                       t.relu);
      ASSERT_TRUE(SameFloat(got, want))
          << "at " << i << ", " << j << ": " << got << ", wanted " << want;
    }
  }
  ASSERT_TRUE(c.Intact());
}

// Calls f(nv, mr, cols) for every tile of the active target, and columns that are whole vectors and
// not. Stops where a check failed. Returns the number of tiles.
template <typename F>
size_t ForEachTile(const GemmKernel& kernel, const F& f) {
  size_t tiles = 0;
  for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
    for (size_t mr = 1; mr <= kernel.max_mr[nv]; ++mr, ++tiles) {
      const size_t nr = nv * kernel.lanes;
      for (const size_t cols : std::set<size_t>{1, kernel.lanes - 1, nr / 2 + 1, nr - 1, nr}) {
        if (cols != 0) f(nv, mr, cols);
        if (testing::Test::HasFatalFailure()) return tiles;
      }
    }
  }
  return tiles;
}

TEST(GemmTile, EveryTileIsOneChainToTheBit) {
  ForEachTarget([](const std::string& target) {
    const GemmKernel& kernel = GetGemmKernelF32();
    ASSERT_TRUE(
        IsKernelOf(kernel.target, target, "AVX3", {"AVX3_DL", "AVX3_ZEN4", "AVX3_SPR", "AMX"}))
        << kernel.target;
    const size_t tiles = ForEachTile(kernel, [&](size_t nv, size_t mr, size_t cols) {
      for (const size_t kc : {0, 1, 2, 7, 33}) {
        const TileCase plain{.nv = nv, .mr = mr, .kc = kc, .cols = cols};
        Check(kernel, plain);
        TileCase t = plain;
        t.init_is_c = true;
        Check(kernel, t);
        t = plain;
        t.row_bias = true;
        Check(kernel, t);
        t.residual = true;
        Check(kernel, t);
        t.residual_is_c = true;
        Check(kernel, t);
      }
    });
    std::printf("%s: %zu tiles\n", kernel.target, tiles);
    EXPECT_GE(tiles, 11u);
  });
}

TEST(GemmTile, FactorsReluAndPlaces) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    ForEachTile(kernel, [&](size_t nv, size_t mr, size_t cols) {
      for (const size_t kc : {0, 5}) {
        const TileCase plain{.nv = nv, .mr = mr, .kc = kc, .cols = cols};
        // Every combination, and the special values with each.
        for (unsigned bits = 0; bits < 128; ++bits) {
          TileCase t = plain;
          t.init_scale = (bits & 1) != 0;
          t.scale = (bits & 2) != 0;
          t.relu = (bits & 4) != 0;
          t.scattered = (bits & 8) != 0;
          t.residual = (bits & 16) != 0;
          t.special = (bits & 32) != 0;
          t.wider_b = (bits & 64) != 0 ? 7 : 0;
          Check(kernel, t);
          if (testing::Test::HasFatalFailure()) return;
        }
        TileCase t = plain;
        t.init_is_c = t.init_scale = t.scale = t.relu = true;
        Check(kernel, t);
        t = plain;
        t.row_bias = t.init_scale = t.scale = t.relu = t.residual = t.residual_is_c = true;
        Check(kernel, t);
      }
    });
  });
}

// A chain so long that lines are asked for early.
TEST(GemmTile, LongChains) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    ForEachTile(kernel, [&](size_t nv, size_t mr, size_t cols) {
      TileCase t{.nv = nv, .mr = mr, .kc = 600, .cols = cols};
      t.residual = t.scattered = true;
      Check(kernel, t);
    });
  });
}

// relu leaves -0 and NaN as they are, to the bit.
TEST(GemmTile, ReluKeepsNegativeZeroAndNan) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    for (size_t nv = 1; nv <= kernel.max_nv(); ++nv) {
      for (const size_t cols : {nv * kernel.lanes, nv * kernel.lanes - 1}) {
        if (cols == 0) continue;
        std::vector<float> init(nv * kernel.lanes, -0.0f);
        init[cols / 2] = std::bit_cast<float>(0xFFC12345u);  // a negative quiet NaN
        std::vector<float> c(init.size(), 1.0f);
        GemmTile tile{};
        tile.in.init = init.data();
        tile.in.b = init.data();
        tile.in.a = InputRows::Of(ConstRows{init.data(), 0});
        tile.out.relu = true;
        for (size_t j = 0; j < nv; ++j) tile.out.c[j] = c.data() + j * kernel.lanes;
        tile.out.cols = cols;
        kernel.run[nv](tile, 1);
        for (size_t j = 0; j < cols; ++j) {
          EXPECT_EQ(std::bit_cast<uint32_t>(c[j]), std::bit_cast<uint32_t>(init[j])) << "at " << j;
        }
      }
    }
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
      EXPECT_EQ(kernel.run[nv] != nullptr, kernel.max_mr[nv] != 0);
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

TEST(GemmTranspose, AllSmallSizes) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelF32();
    for (size_t rows = 0; rows <= 37; ++rows) {
      for (size_t cols = 0; cols <= 21; ++cols) {
        for (const size_t more : {0, 3}) {
          const size_t ld_in = cols + more;
          const size_t ld_out = rows + 2 * more;
          // Not one float more than there is: the sanitizer sees reads past the end.
          const std::vector<float> in = RandomFloats(rows == 0 ? 0 : (rows - 1) * ld_in + cols, 7);
          Guarded out({cols, rows}, {static_cast<ptrdiff_t>(ld_out), 1});
          kernel.transpose(in.data(), ld_in, rows, cols, out.view().data(), ld_out);
          SCOPED_TRACE(testing::Message() << rows << " x " << cols << ", more " << more);
          for (size_t r = 0; r < rows; ++r) {
            for (size_t c = 0; c < cols; ++c) {
              ASSERT_EQ(out.view()(c, r), in[r * ld_in + c]) << "at " << r << ", " << c;
            }
          }
          ASSERT_TRUE(out.Intact());
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
