// SPDX-License-Identifier: Apache-2.0
//
// The seam for element types: a bf16 kernel of a few lines of plain C++, which nothing above the
// kernels knows of, gives right products through the packing and the loops that f32 has.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm.h"
#include "engine/ops/packed_matrix.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kKr = 2;
constexpr uint16_t kNan = 0x7FC1;

// One group: the odd product first, each rounded.
float MulAddPair(const uint16_t* a, const uint16_t* b, float sum) {
  sum = std::fma(Bf16ToF32(a[1]), Bf16ToF32(b[1]), sum);
  return std::fma(Bf16ToF32(a[0]), Bf16ToF32(b[0]), sum);
}

void Run(GemmTile& t, size_t rows) {
  const auto* b = static_cast<const uint16_t*>(t.in.b);
  for (size_t i = 0; i < rows; ++i) {
    const auto* a = reinterpret_cast<const uint16_t*>(t.in.a.From(i).data);
    for (size_t j = 0; j < t.out.cols; ++j) {
      float sum = t.in.init[i * t.in.ld_init + j];
      for (size_t g = 0; g < t.in.kc; ++g) {
        sum = MulAddPair(a + g * kKr, b + (g * t.in.ldb + j) * kKr, sum);
      }
      if (t.out.residual.data != nullptr) sum += t.out.residual.row(i)[j];
      t.out.c[j / kLanes][i * t.out.ldc + j % kLanes] = t.out.relu ? std::max(sum, 0.0f) : sum;
    }
  }
  if (t.out.gated != nullptr) {
    t.out.gated(t.out.gate, t.out.ld_gate, t.out.c[0], t.out.ldc, rows, t.out.cols);
  }
}

void Pack(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols, size_t nr,
          void* panel) {
  auto* out = static_cast<uint16_t*>(panel);
  for (size_t i = 0; i < (k + 1) / kKr * kKr; ++i) {
    for (size_t n = 0; n < nr; ++n) {
      const bool inside = i < k && n < cols;
      const float* at =
          b + static_cast<ptrdiff_t>(i) * stride_k + static_cast<ptrdiff_t>(n) * stride_n;
      out[(i / kKr * nr + n) * kKr + i % kKr] = inside ? F32ToBf16(*at) : uint16_t{0};
    }
  }
}

void PackLhs(const LhsToPack& rows) {
  for (size_t r = 0; r < rows.rows; ++r) {
    auto* to = reinterpret_cast<uint16_t*>(rows.out.From(r).data);
    for (size_t i = 0; i < (rows.k + 1) / kKr * kKr; ++i) {
      to[i] = i < rows.k ? F32ToBf16(rows.in.row(r)[i]) : uint16_t{0};
    }
  }
}

const GemmKernel& Bf16Kernel() {
  static const GemmKernel kernel = [] {
    GemmKernel k{};
    k.target = "plain C++";
    k.a_bytes = sizeof(uint16_t);
    k.b_bytes = sizeof(uint16_t);
    k.kr = kKr;
    k.lanes = kLanes;
    k.best_nv = 2;
    for (size_t nv = 1; nv <= 3; ++nv) {
      k.max_mr[nv] = 6 / nv;
      k.run[nv] = &Run;
    }
    k.pack = &Pack;
    k.pack_lhs = &PackLhs;
    return k;
  }();
  return kernel;
}

// x [m, k], weight [n, k]; all sums begin at the bias [n].
std::vector<float> Chains(const std::vector<float>& x, const float* weight, const float* bias,
                          size_t m, size_t n, size_t k) {
  std::vector<float> y;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      float sum = bias[j];
      for (size_t g = 0; g < k; g += kKr) {
        const bool odd = g + 1 < k;
        const uint16_t a[] = {F32ToBf16(x[i * k + g]), F32ToBf16(odd ? x[i * k + g + 1] : 0.0f)};
        const uint16_t b[] = {F32ToBf16(weight[j * k + g]),
                              F32ToBf16(odd ? weight[j * k + g + 1] : 0.0f)};
        sum = MulAddPair(a, b, sum);
      }
      y.push_back(sum);
    }
  }
  return y;
}

// Multiplies where it should be, with NaN around the rows of A that must not be read.
void CheckProduct(const PackedMatrix& packed, const std::vector<float>& x, size_t m, size_t k,
                  ActivationKernel::Gated gated, const std::vector<float>& want) {
  const GemmKernel& kernel = Bf16Kernel();
  const PackedView& b = packed.view();
  const size_t lda = kernel.GroupsOf(k) * kKr + 4;
  std::vector<uint16_t> rows(m * lda, kNan);
  const PackedLhs made{reinterpret_cast<std::byte*>(rows.data()), lda * sizeof(uint16_t), nullptr};
  kernel.pack_lhs({.in = {x.data(), k}, .rows = m, .k = k, .out = made});
  for (const GemmBlocking& blocking :
       {packed.blocking(), GemmBlocking{5, 1024}, GemmBlocking{128, 7}, GemmBlocking{3, 1}}) {
    SCOPED_TRACE(testing::Message() << "mc " << blocking.mc << ", kc " << blocking.kc);
    const size_t ldc = b.n + 3;
    Guarded c({m, b.n}, {static_cast<ptrdiff_t>(ldc), 1});
    GemmArgs args{};
    args.a = InputRows::Of(made);
    args.b = b;
    args.c = {c.view().data(), ldc};
    args.gated = gated;
    const size_t panels = b.panels();
    GemmBlock(args, blocking, 0, m / 3, 0, panels);
    GemmBlock(args, blocking, m / 3, m, panels / 2, panels);
    GemmBlock(args, blocking, m / 3, m, 0, panels / 2);
    ASSERT_TRUE(SameBits(Elements(c.view()), want));
    ASSERT_TRUE(c.Intact());
  }
}

TEST(ElementType, Bf16ThroughTheSameLoops) {
  for (const size_t m : {1, 2, 3, 4, 7, 20}) {
    for (const size_t n : {1, 4, 7, 8, 9, 12, 33}) {
      for (const size_t k : {0, 1, 2, 3, 8, 63, 64, 65, 131}) {
        SCOPED_TRACE(testing::Message() << "m " << m << ", n " << n << ", k " << k);
        const std::vector<float> weight = RandomFloats(n * k + 1, 1);
        const std::vector<float> bias = RandomFloats(n, 2);
        const std::vector<float> x = RandomFloats(m * k + 1, 3);
        const PackedMatrix packed = Taken(PackedMatrix::Create(
            WeightSource::One(ConstView(weight.data(), {n, k}), ConstView(bias.data(), Shape(n))),
            Bf16Kernel()));
        EXPECT_EQ(packed.view().packed_bytes(), (k + 1) / 2 * 2 * ((n + 3) / 4 * 4) * 2);
        CheckProduct(packed, x, m, k, nullptr, Chains(x, weight.data(), bias.data(), m, n, k));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// From bf16 weights in two parts and with a scale, which rounds once more, in f32.
TEST(ElementType, WeightsArePackedFromTheirPlaceLikewise) {
  constexpr size_t kN = 21;
  constexpr size_t kK = 67;
  std::vector<uint16_t> stored;
  for (const float v : RandomFloats(kN * kK, 1)) stored.push_back(F32ToBf16(v));
  const std::vector<float> scale = RandomFloats(kN, 2);
  const std::vector<float> bias(kN, 0.0f);
  std::vector<float> weight;
  for (size_t i = 0; i < stored.size(); ++i) {
    weight.push_back(Bf16ToF32(stored[i]) * scale[i / kK]);
  }
  const WeightSource source{
      .parts = {WeightPart{WeightView(DType::kBF16, stored.data(), {9, kK}), {}},
                WeightPart{WeightView(DType::kBF16, stored.data() + 9 * kK, {kN - 9, kK}), {}}},
      .num_parts = 2,
      .output_scale = ConstView(scale.data(), Shape(kN))};
  const PackedMatrix packed = Taken(PackedMatrix::Create(source, Bf16Kernel()));
  const std::vector<float> x = RandomFloats(6 * kK, 3);
  CheckProduct(packed, x, 6, kK, nullptr, Chains(x, weight.data(), bias.data(), 6, kN, kK));
}

void Multiply(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows, size_t cols) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j)
      c[i * ldc + j] *= gate[i * ld_gate + j] * gate[i * ld_gate + j];
  }
}

TEST(ElementType, GatedPairs) {
  constexpr size_t kM = 7;
  for (const size_t n : {1, 8, 13, 40}) {
    for (const size_t k : {0, 5, 66}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", k " << k);
      const std::vector<float> weight = RandomFloats(2 * n * k + 1, 1);
      const std::vector<float> bias = RandomFloats(2 * n, 2);
      const std::vector<float> x = RandomFloats(kM * k + 1, 3);
      WeightSource source{.num_parts = 2, .gated = true};
      for (size_t half = 0; half < 2; ++half) {
        source.parts[half] = {ConstView(weight.data() + half * n * k, {n, k}),
                              ConstView(bias.data() + half * n, Shape(n))};
      }
      const PackedMatrix packed = Taken(PackedMatrix::Create(source, Bf16Kernel()));
      const std::vector<float> gate = Chains(x, weight.data(), bias.data(), kM, n, k);
      std::vector<float> want = Chains(x, weight.data() + n * k, bias.data() + n, kM, n, k);
      Multiply(gate.data(), n, want.data(), n, kM, n);
      CheckProduct(packed, x, kM, k, &Multiply, want);
    }
  }
}

}  // namespace
}  // namespace encore::internal
