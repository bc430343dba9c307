// SPDX-License-Identifier: Apache-2.0
//
// The int4 kernel of every SIMD target, for every width of a panel and many numbers of rows: each
// element to the bit, and nothing outside of the tile is written. And its rows of A.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/kernels/gemm_kernel.h"
#include "gtest/gtest.h"
#include "reference/int4.h"
#include "tests/support/gemm_elements.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

struct Int4Case {
  size_t nv;
  size_t rows;
  size_t groups;
  size_t cols;
  bool last = true;
  bool init_is_c = false;
  bool residual = false;
  bool relu = false;
  bool extreme = false;  // only the ends of the ranges
};

void PrintTo(const Int4Case& t, std::ostream* out) {
  *out << "nv " << t.nv << ", rows " << t.rows << ", groups " << t.groups << ", cols " << t.cols
       << ", last " << t.last << ", init_is_c " << t.init_is_c << ", residual " << t.residual
       << ", relu " << t.relu << ", extreme " << t.extreme;
}

// Columns of integers, each of whole groups, and their scales.
struct Columns {
  Columns(size_t nr, size_t groups, bool extreme)
      : k(groups * kInt4Group), q(nr * k), scale(nr * groups) {
    const std::vector<float> drawn = RandomFloats(q.size() + 1, 2);
    for (size_t i = 0; i < q.size(); ++i) {
      const float v = extreme ? (drawn[i] < 1 ? -8.0f : 7.0f) : std::nearbyint(3 * drawn[i]);
      q[i] = static_cast<int8_t>(std::clamp(v, -8.0f, 7.0f));
    }
    const std::vector<float> scales = RandomFloats(scale.size() + 1, 3);
    for (size_t i = 0; i < scale.size(); ++i) scale[i] = Bf16ToF32(F32ToBf16(scales[i]));
  }
  std::span<const int8_t> integers(size_t n) const { return {q.data() + n * k, k}; }
  std::span<const float> scales(size_t n) const {
    return {scale.data() + n * (k / kInt4Group), k / kInt4Group};
  }

  // As gemm_kernel.h draws it.
  void PackInto(std::byte* panel, size_t nr) const {
    for (size_t g = 0; g < k / kInt4Group; ++g, panel += nr * kInt4GroupBytes) {
      for (size_t n = 0; n < nr; ++n) {
        const int8_t* const of_group = q.data() + n * k + g * kInt4Group;
        for (size_t s = 0; s < 4; ++s) {
          for (size_t i = 0; i < 4; ++i) {
            const int low = of_group[8 * s + i] + 8;
            const int high = of_group[8 * s + 4 + i] + 8;
            panel[s * nr * 4 + n * 4 + i] = static_cast<std::byte>(low + 16 * high);
          }
        }
        const uint16_t bits = F32ToBf16(scales(n)[g]);
        std::memcpy(panel + 16 * nr + 2 * n, &bits, sizeof bits);
      }
    }
  }

  size_t k;
  std::vector<int8_t> q;     // [nr, k]
  std::vector<float> scale;  // [nr, groups]
};

void Check(const GemmKernel& kernel, const Int4Case& t) {
  SCOPED_TRACE(testing::PrintToString(t));
  const bool fma = HasFma(kernel);
  const size_t nr = t.nv * kernel.lanes;
  const size_t k = t.groups * kInt4Group;
  const size_t lda = k + 2 * kInt4Group;
  const size_t ldc = nr + 5;
  // A ends with its last row.
  std::vector<uint8_t> a((t.rows - 1) * lda + k + 1, 0xFF);
  const std::vector<float> drawn = RandomFloats(t.rows * k + 1, 1);
  for (size_t i = 0; i < t.rows; ++i) {
    for (size_t e = 0; e < k; ++e) {
      const float v = drawn[i * k + e];
      a[i * lda + e] = static_cast<uint8_t>(t.extreme ? (v < -1 ? 0.0f : 255.0f)
                                                      : std::clamp(128 + 50 * v, 0.0f, 255.0f));
    }
  }
  std::vector<std::byte> rows(a.size());
  for (size_t i = 0; i < a.size(); ++i) PutElementOfA(kernel, rows.data(), i, a[i]);
  const Columns columns(nr, t.groups, t.extreme);
  std::vector<std::byte> b(t.groups * nr * kInt4GroupBytes + 1);
  columns.PackInto(b.data(), nr);
  const std::vector<float> init = RandomFloats(t.rows * ldc, 4);
  const std::vector<float> residual = RandomFloats(t.rows * ldc, 5);
  const std::vector<float> row_scale = RandomFloats(t.rows, 6);
  const std::vector<float> bias = RandomFloats(nr, 7);
  const std::vector<float> ones(nr, 1.0f);
  std::vector<float> sums;
  for (size_t n = 0; n < nr; ++n) {
    sums.push_back(reference::Int4ColumnSum(columns.integers(n), columns.scales(n)));
  }
  std::vector<RowQuant> quant;
  for (size_t i = 0; i < t.rows; ++i) {
    quant.push_back({row_scale[i], static_cast<float>(i * 23 % 256)});
  }

  Guarded c({t.rows, nr}, {static_cast<ptrdiff_t>(ldc), 1});
  const uint32_t untouched = std::bit_cast<uint32_t>(c.view()(0, 0));
  for (size_t i = 0; t.init_is_c && i < t.rows; ++i) {
    for (size_t j = 0; j < nr; ++j) c.view()(i, j) = init[i * ldc + j];
  }
  GemmTile tile{};
  tile.in.a.data = rows.data();
  tile.in.a.stride = lda;
  tile.in.b = b.data();
  tile.in.ldb = nr;
  tile.in.kc = t.groups;
  tile.in.init = t.init_is_c ? c.view().data() : init.data();
  tile.in.ld_init = t.init_is_c ? ldc : 0;
  if (t.last) {
    tile.in.a.quant = quant.data();
    tile.quant.columns = {ones.data(), sums.data()};
    tile.quant.bias = bias.data();
  }
  if (t.residual && t.last) tile.out.residual.data = residual.data();
  tile.out.residual.ld = ldc;
  tile.out.relu = t.relu && t.last;
  for (size_t j = 0; j < t.nv; ++j) tile.out.c[j] = c.view().data() + j * kernel.lanes;
  tile.out.ldc = ldc;
  tile.out.cols = t.cols;
  tile.in.prefetch = reinterpret_cast<const char*>(b.data());
  kernel.run[t.nv](tile, t.rows);

  for (size_t i = 0; i < t.rows; ++i) {
    for (size_t j = 0; j < nr; ++j) {
      const float got = c.view()(i, j);
      const float start = init[(t.init_is_c ? i * ldc : 0) + j];
      if (j >= t.cols) {
        const uint32_t want = t.init_is_c ? std::bit_cast<uint32_t>(start) : untouched;
        ASSERT_EQ(std::bit_cast<uint32_t>(got), want) << "written past cols at " << i << ", " << j;
        continue;
      }
      float want = reference::Int4Sum(fma, {a.data() + i * lda, k}, columns.integers(j),
                                      columns.scales(j), start);
      if (t.last) {
        want =
            reference::Int4Finish(fma, want, quant[i].scale, quant[i].zero_point, sums[j], bias[j]);
        want = FinishSum(want, 1.0f, t.residual ? residual[i * ldc + j] : -0.0f, t.relu);
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
          << "at " << i << ", " << j << ": " << got << ", wanted " << want;
    }
  }
  ASSERT_TRUE(c.Intact());
}

TEST(GemmInt4, EveryTileToTheBit) {
  ForEachTarget([](const std::string& target) {
    const GemmKernel& kernel = GetGemmKernelInt4();
    ASSERT_TRUE(IsKernelOf(kernel.target, target, "AVX3_DL", {"AVX3_ZEN4"})) << kernel.target;
    size_t turn = 0;
    for (size_t nv = 1; nv <= kernel.max_nv(); ++nv) {
      const size_t nr = nv * kernel.lanes;
      for (const size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 127, 128, 129, 140}) {
        for (const size_t groups : {0, 1, 2, 7, 8, 9, 17}) {
          if (rows > 17 && groups > 2 && groups != 9) continue;
          const size_t bits = turn++ * 37;
          Check(kernel, {.nv = nv,
                         .rows = rows,
                         .groups = groups,
                         .cols = turn % 3 == 0 ? nr - turn % nr : nr,
                         .last = (bits & 1) == 0 || turn % 3 == 0,
                         .init_is_c = (bits & 2) != 0,
                         .residual = (bits & 4) != 0,
                         .relu = (bits & 8) != 0,
                         .extreme = (bits & 32) != 0});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// The bytes of int8's rows, filled up with zeros to whole groups of 32.
TEST(GemmInt4, RowsAreThoseOfInt8) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& int8 = GetGemmKernelInt8();
    const GemmKernel& int4 = GetGemmKernelInt4();
    for (const size_t k : {1, 3, 31, 32, 33, 64, 100, 771}) {
      SCOPED_TRACE(testing::Message() << "k " << k);
      constexpr size_t kRows = 19;
      const std::vector<float> x = RandomFloats(kRows * k, 3, 1.5f, 0.25f);
      const std::vector<float> factor = RandomFloats(k, 4, 0.3f, 1);
      const auto make = [&](const GemmKernel& kernel, std::vector<RowQuant>* quant) {
        const size_t stride = kernel.GroupsOf(k) * kernel.kr * kernel.a_bytes;
        std::vector<std::byte> rows(kRows * stride, std::byte{0xA5});
        kernel.pack_lhs({.in = {x.data(), k},
                         .rows = kRows,
                         .k = k,
                         .out = {rows.data(), stride, quant->data()},
                         .factor = factor.data()});
        return rows;
      };
      std::vector<RowQuant> want_quant(kRows);
      std::vector<RowQuant> quant(kRows);
      const std::vector<std::byte> want = make(int8, &want_quant);
      const std::vector<std::byte> got = make(int4, &quant);
      const size_t whole = int4.GroupsOf(k) * kInt4Group;
      for (size_t r = 0; r < kRows; ++r) {
        ASSERT_EQ(quant[r].scale, want_quant[r].scale);
        ASSERT_EQ(quant[r].zero_point, want_quant[r].zero_point);
        for (size_t i = 0; i < whole; ++i) {
          const size_t at = r * int8.GroupsOf(k) * int8.kr + i;
          ASSERT_EQ(ElementOfA(int4, got.data(), r * whole + i),
                    i < k ? ElementOfA(int8, want.data(), at) : 0.0f)
              << "at " << r << ", " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
