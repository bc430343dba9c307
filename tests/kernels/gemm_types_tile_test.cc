// SPDX-License-Identifier: Apache-2.0
//
// Every bf16 and int8 micro-kernel of every SIMD target, wide ones included: bf16 sums are chains
// of pairs to the bit, integer sums are exact, and nothing outside of the tile is written. And
// packing.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "engine/kernels/gemm_kernel.h"
#include "gtest/gtest.h"
#include "tests/support/gemm_elements.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

struct TileCase {
  size_t nv;  // of a panel
  size_t mr;
  size_t kc;
  size_t cols;
  size_t panels = 1;  // more: the wide tile
  bool prefetch = true;
  bool last = true;        // of an integer kernel: floats come out
  bool init_is_c = false;  // and no bias row
  bool residual = false;
  bool factors = false;  // init_scale and scale, of bf16
  bool relu = false;
  bool activation = false;
  bool extreme = false;  // int8: only the ends of the ranges
  size_t offset = 0;     // bytes that panels are away from a vector's alignment
};

void PrintTo(const TileCase& t, std::ostream* out) {
  *out << "nv " << t.nv << ", mr " << t.mr << ", kc " << t.kc << ", cols " << t.cols << ", panels "
       << t.panels << ", prefetch " << t.prefetch << ", last " << t.last << ", init_is_c "
       << t.init_is_c << ", residual " << t.residual << ", factors " << t.factors << ", relu "
       << t.relu << ", activation " << t.activation << ", extreme " << t.extreme << ", offset "
       << t.offset;
}

// Numbers that the type has.
std::vector<float> Numbers(const GemmKernel& kernel, size_t count, uint32_t seed, bool of_a,
                           bool extreme) {
  std::vector<float> numbers = RandomFloats(count, seed);
  for (size_t i = 0; i < count; ++i) {
    float& v = numbers[i];
    if (!kernel.integer) {
      v = Bf16ToF32(F32ToBf16(v));
    } else if (extreme) {
      v = of_a ? (v < -1 ? 0.0f : 255.0f) : (v < 1 ? -128.0f : 127.0f);
    } else {
      const float spread = std::nearbyint(v * 60.0f);
      v = of_a ? std::clamp(128 + spread, 0.0f, 255.0f) : std::clamp(spread, -128.0f, 127.0f);
    }
  }
  return numbers;
}

// As an activation.
void Negate(float* c, size_t ldc, size_t rows, size_t cols) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) c[i * ldc + j] = -c[i * ldc + j];
  }
}

// Runs one tile and compares every bit.
void Check(const GemmKernel& kernel, const TileCase& t) {
  SCOPED_TRACE(testing::PrintToString(t));
  const bool fma = HasFma(kernel);
  const size_t lanes = kernel.lanes;
  const size_t kr = kernel.kr;
  const size_t panel_nr = t.nv * lanes;
  const size_t nr = panel_nr * t.panels;
  const size_t k = t.kc * kr;
  const size_t lda = k + 2 * kr;
  const size_t ldc = nr + 5;
  const std::vector<float> a_numbers = Numbers(kernel, t.mr * k + 1, 1, true, t.extreme);
  const std::vector<float> b_numbers = Numbers(kernel, nr * k + 1, 2, false, t.extreme);

  // Bytes around the elements are NaN or odd integers, and A ends with its last row.
  std::vector<std::byte> a((t.mr - 1) * lda * kernel.a_bytes + k * kernel.a_bytes + 1,
                           std::byte{0xFF});
  for (size_t i = 0; i < t.mr; ++i) {
    for (size_t e = 0; e < k; ++e) {
      PutElementOfA(kernel, a.data(), i * lda + e, a_numbers[i * k + e]);
    }
  }
  const size_t panel_bytes = k * panel_nr * kernel.b_bytes;
  const size_t panel_stride = panel_bytes + 64;
  std::vector<std::byte> b_memory(t.panels * panel_stride + 64 + t.offset, std::byte{0xFF});
  std::byte* b = b_memory.data();
  b += (64 - reinterpret_cast<uintptr_t>(b) % 64) % 64 + t.offset;
  for (size_t n = 0; n < nr; ++n) {
    for (size_t e = 0; e < k; ++e) {
      PutElementOfB(kernel, b + n / panel_nr * panel_stride,
                    PanelIndex(kernel, e, n % panel_nr, panel_nr), b_numbers[n * k + e]);
    }
  }
  // Integer sums start from the bits of integers.
  std::vector<float> init = RandomFloats(t.mr * ldc, 3);
  for (size_t i = 0; kernel.integer && i < init.size(); ++i) {
    init[i] = std::bit_cast<float>(static_cast<int32_t>(i * 977) - 3000);
  }
  const std::vector<float> residual = RandomFloats(t.mr * ldc, 4);
  const std::vector<float> init_scale = RandomFloats(t.mr, 5);
  const std::vector<float> scale = RandomFloats(t.mr, 6);
  const std::vector<float> col_scale = RandomFloats(nr, 7);
  const std::vector<float> bias = RandomFloats(nr, 8);
  std::vector<float> col_sum(nr);
  for (size_t n = 0; n < nr; ++n) {
    for (size_t e = 0; e < k; ++e) col_sum[n] += b_numbers[n * k + e];
  }
  std::vector<RowQuant> quant;
  for (size_t i = 0; i < t.mr; ++i) quant.push_back({scale[i], static_cast<float>(i * 23 % 256)});

  Guarded c({t.mr, nr}, {static_cast<ptrdiff_t>(ldc), 1});
  const uint32_t untouched = std::bit_cast<uint32_t>(c.view()(0, 0));
  for (size_t i = 0; t.init_is_c && i < t.mr; ++i) {
    for (size_t j = 0; j < nr; ++j) c.view()(i, j) = init[i * ldc + j];
  }
  GemmTile tile{};
  tile.in.a.data = a.data();
  tile.in.a.stride = lda * kernel.a_bytes;
  tile.in.b = b;
  tile.in.ldb = panel_nr;
  tile.in.panel_stride = panel_stride;
  tile.in.kc = t.kc;
  tile.in.init = t.init_is_c ? c.view().data() : init.data();
  tile.in.ld_init = t.init_is_c ? ldc : 0;
  const bool floats = !kernel.integer || t.last;
  if (kernel.integer && t.last) {
    tile.in.a.quant = quant.data();
    tile.quant.columns.scale = col_scale.data();
    tile.quant.columns.sum = col_sum.data();
    tile.quant.bias = bias.data();
  }
  const bool factors = t.factors && !kernel.integer;
  if (factors) tile.in.init_scale = init_scale.data();
  if (factors) tile.out.scale = scale.data();
  if (t.residual && floats) tile.out.residual.data = residual.data();
  tile.out.residual.ld = ldc;
  tile.out.relu = t.relu && floats;
  if (t.activation && floats) tile.out.activation = &Negate;
  for (size_t j = 0; j < t.nv * t.panels; ++j) tile.out.c[j] = c.view().data() + j * lanes;
  tile.out.ldc = ldc;
  tile.out.cols = t.cols;
  tile.in.panels = t.panels;
  if (t.prefetch) tile.in.prefetch = reinterpret_cast<const char*>(b);
  kernel.run[t.nv](tile, t.mr);

  for (size_t i = 0; i < t.mr; ++i) {
    for (size_t j = 0; j < nr; ++j) {
      const float got = c.view()(i, j);
      const float start = init[(t.init_is_c ? i * ldc : 0) + j];
      if (j >= t.cols) {
        const uint32_t want = t.init_is_c ? std::bit_cast<uint32_t>(start) : untouched;
        ASSERT_EQ(std::bit_cast<uint32_t>(got), want) << "written past cols at " << i << ", " << j;
        continue;
      }
      const float* row = a_numbers.data() + i * k;
      const float* column = b_numbers.data() + j * k;
      float want = factors ? start * init_scale[i] : start;
      if (kernel.integer) {
        int64_t sum = std::bit_cast<int32_t>(start);
        const float less = t.last ? 0.0f : static_cast<float>(kernel.a_offset);
        for (size_t e = 0; e < k; ++e) sum += static_cast<int64_t>((row[e] - less) * column[e]);
        ASSERT_EQ(static_cast<int32_t>(sum), sum) << "the case's own sums do not fit";
        want = std::bit_cast<float>(static_cast<int32_t>(sum));
        if (t.last) want = Dequantized(fma, sum, quant[i], col_scale[j], col_sum[j], bias[j]);
      } else if (kernel.only_block_kernel) {
        want = AmxSum(row, column, k, want);
      } else {
        for (size_t e = 0; e < k; e += 2) {
          want = MulAddPair(fma, row[e], row[e + 1], column[e], column[e + 1], want);
        }
      }
      if (floats) {
        want = FinishSum(want, factors ? scale[i] : 1.0f,
                         t.residual ? residual[i * ldc + j] : -0.0f, t.relu);
        if (t.activation) want = -want;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
          << "at " << i << ", " << j << ": " << got << ", wanted " << want;
    }
  }
  ASSERT_TRUE(c.Intact());
}

// Calls f(case) for every tile of a kernel, plain and wide, and columns that are whole vectors and
// not. Stops where a check failed. Returns the number of tiles.
template <typename F>
size_t ForEachTile(const GemmKernel& kernel, const F& f) {
  size_t tiles = 0;
  for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
    const size_t nr = nv * kernel.lanes;
    for (size_t mr = 1; mr <= kernel.max_mr[nv]; ++mr, ++tiles) {
      for (const size_t cols : std::set<size_t>{1, kernel.lanes - 1, nr / 2 + 1, nr - 1, nr}) {
        if (cols == 0) continue;
        for (const bool prefetch : {false, true}) {
          f(TileCase{.nv = nv, .mr = mr, .kc = 0, .cols = cols, .prefetch = prefetch});
          if (testing::Test::HasFatalFailure()) return tiles;
        }
      }
    }
    for (size_t mr = 1; mr <= GemmKernel::kMaxWideMr; ++mr) {
      const size_t panels = kernel.wide_panels[nv][mr];
      if (panels == 0) continue;
      ++tiles;
      for (const size_t missing : {size_t{0}, size_t{1}, kernel.lanes - 1}) {
        f(TileCase{.nv = nv, .mr = mr, .kc = 0, .cols = nr * panels - missing, .panels = panels});
        if (testing::Test::HasFatalFailure()) return tiles;
      }
    }
  }
  return tiles;
}

// The switches of turn `turn`: every one with every other over neighbouring cases.
void SetSwitches(size_t turn, TileCase* t) {
  const size_t bits = turn * 37;
  t->last = (bits & 1) == 0;
  t->init_is_c = (bits & 2) != 0;
  t->residual = (bits & 4) != 0;
  t->relu = (bits & 8) != 0;
  t->factors = (bits & 16) != 0;
  t->extreme = (bits & 32) != 0;
  t->offset = (bits & 64) != 0 ? 4 : 0;
  t->activation = (bits & 128) != 0;
}

TEST(GemmTypesTile, EveryTileToTheBit) {
  ForEachTarget([](const std::string& target) {
    for (const auto& [name, kernel] : GroupedKernels()) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(kernel.integer ? IsKernelOf(kernel.target, target, "AVX3_DL", {"AVX3_ZEN4"})
                                 : IsKernelOf(kernel.target, target, "AVX3", {"AVX3_DL", "AMX"}))
          << kernel.target;
      size_t turn = 0;
      const size_t tiles = ForEachTile(kernel, [&, &kernel = kernel](TileCase t) {
        for (const size_t kc : {0, 1, 2, 7, 33}) {
          t.kc = kc;
          SetSwitches(turn++, &t);
          Check(kernel, t);
        }
      });
      std::printf("%s, %s: %zu tiles\n", kernel.target, name, tiles);
      EXPECT_GE(tiles, 8u);  // the fewest of any target, where few are compiled
    }
  });
}

// Rows that are fewer than a tile of AMX or whole ones, and a last block that begins at rows that
// are done; more rows and longer chains than bf16 by FMAs spreads at a time.
TEST(GemmTypesTile, ManyRowsToTheBit) {
  size_t cases = 0;
  ForEachTarget([&](const std::string& /*target*/) {
    for (const auto& [name, kernel] : BlockKernels()) {
      SCOPED_TRACE(name);
      for (size_t nv = 1; nv <= GemmKernel::kMaxNv; ++nv) {
        if (kernel.run[nv] == nullptr) continue;
        const size_t nr = nv * kernel.lanes;
        for (const size_t rows : {1, 2, 5, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 100, 128, 150}) {
          for (const size_t kc : {0, 16, 48, 1, 15, 17, 40, 128, 144, 272}) {
            TileCase t{.nv = nv, .mr = rows, .kc = kc, .cols = cases % 5 == 0 ? nr - 3 : nr};
            SetSwitches(cases++, &t);
            Check(kernel, t);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
  EXPECT_GT(cases, 0u);
}

// So long that lines of C are asked for early; and integers at the ends of their ranges.
TEST(GemmTypesTile, LongChains) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : GroupedKernels()) {
      SCOPED_TRACE(name);
      ForEachTile(kernel, [&kernel = kernel](TileCase t) {
        if (t.prefetch && t.mr % 3 != 0) return;
        t.kc = 520;
        t.residual = t.extreme = true;
        Check(kernel, t);
      });
    }
  });
}

TEST(GemmTypesTile, TheTableHasNoTileBeyondItsLimits) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : GroupedKernels()) {
      SCOPED_TRACE(name);
      EXPECT_EQ(kernel.max_mr[0], 0u);
      EXPECT_GT(kernel.max_mr[kernel.best_nv], 0u);
      const bool widened = kernel.a_bytes == 2 && kernel.b_bytes == 1;
      EXPECT_EQ(kernel.group_bytes(), widened ? 2u : 4u) << "tiles count on words";
      for (size_t nv = 0; nv <= GemmKernel::kMaxNv; ++nv) {
        ASSERT_LE(kernel.max_mr[nv], GemmKernel::kMaxMr);
        EXPECT_EQ(kernel.run[nv] != nullptr, kernel.max_mr[nv] != 0);
        for (size_t mr = 1; mr <= GemmKernel::kMaxWideMr; ++mr) {
          EXPECT_LE(kernel.wide_panels[nv][mr] * nv, kMaxTileVectors);
        }
      }
    }
  });
}

// Source numbers: bf16 rounds, int8 takes integers.
std::vector<float> SourceNumbers(const GemmKernel& kernel, size_t count) {
  return kernel.integer ? Numbers(kernel, count, 5, false, false) : RandomFloats(count, 5);
}
float Stored(const GemmKernel& kernel, float v) {
  return kernel.integer ? v : Bf16ToF32(F32ToBf16(v));
}

TEST(GemmTypesPack, EveryLayoutOfTheSource) {
  struct Layout {
    ptrdiff_t stride_k, stride_n;
  };
  constexpr ptrdiff_t kWide = 300;
  constexpr Layout kLayouts[] = {{kWide, 1}, {1, kWide},  {kWide, 2},  {2, kWide},  {0, 1},
                                 {1, 0},     {-kWide, 1}, {1, -kWide}, {kWide, -1}, {-1, kWide}};
  ForEachTarget([&](const std::string&) {
    for (const auto& [name, kernel] : GroupedKernels()) {
      const std::vector<float> source = SourceNumbers(kernel, 160000);
      for (const size_t k : {0, 1, 2, 3, 4, 5, 8, 31, 130, 258}) {
        for (const size_t cols : {1, 3, 4, 5, 7, 8, 16, 17}) {
          for (const Layout& l : kLayouts) {
            SCOPED_TRACE(testing::Message() << name << ", k " << k << ", cols " << cols
                                            << ", strides " << l.stride_k << ", " << l.stride_n);
            const size_t nr = (cols + kernel.lanes - 1) / kernel.lanes * kernel.lanes;
            const size_t groups = kernel.GroupsOf(k);
            const float* b = source.data() + 80000;
            Guarded panel({groups, nr * kernel.group_bytes() / sizeof(float)});
            kernel.pack(b, l.stride_k, l.stride_n, k, cols, nr, panel.view().data());
            for (size_t i = 0; i < groups * kernel.kr; ++i) {
              for (size_t n = 0; n < nr; ++n) {
                float want = 0;
                if (n < cols && i < k) {
                  want = Stored(kernel, b[static_cast<ptrdiff_t>(i) * l.stride_k +
                                          static_cast<ptrdiff_t>(n) * l.stride_n]);
                }
                ASSERT_EQ(ElementOfB(kernel, panel.view().data(), PanelIndex(kernel, i, n, nr)),
                          want)
                    << "at " << i << ", " << n;
              }
            }
            ASSERT_TRUE(panel.Intact());
          }
        }
      }
    }
  });
}

TEST(GemmTypesPack, TransposeOfAllSmallSizes) {
  ForEachTarget([](const std::string&) {
    for (const auto& [name, kernel] : GroupedKernels()) {
      for (size_t rows = 0; rows <= 37; rows += rows < 18 ? 1 : 3) {
        for (size_t cols = 0; cols <= 300; cols += cols < 21 ? 1 : 93) {
          for (const size_t more : {0, 3}) {
            SCOPED_TRACE(testing::Message() << name << ", " << rows << " x " << cols);
            const size_t ld_in = cols + more;
            const size_t ld_out = rows + 2 * more;
            // Not one float more than there is: the sanitizer sees reads past the end.
            const std::vector<float> in =
                SourceNumbers(kernel, rows == 0 ? 0 : (rows - 1) * ld_in + cols);
            const size_t groups = kernel.GroupsOf(cols);
            const size_t word = kernel.group_bytes();
            constexpr std::byte kUntouched{0xA5};
            std::vector<std::byte> out(groups * ld_out * word + 64, kUntouched);
            kernel.transpose(in.data(), ld_in, rows, cols, out.data(), ld_out);
            for (size_t r = 0; r < rows; ++r) {
              for (size_t c = 0; c < groups * kernel.kr; ++c) {
                const float want = c < cols ? Stored(kernel, in[r * ld_in + c]) : 0.0f;
                ASSERT_EQ(ElementOfB(kernel, out.data(), PanelIndex(kernel, c, r, ld_out)), want)
                    << "at " << r << ", " << c;
              }
            }
            for (size_t i = 0; i < out.size(); ++i) {
              if (i < groups * ld_out * word && i / word % ld_out < rows) continue;
              ASSERT_EQ(out[i], kUntouched) << "byte " << i;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
