// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product as the encoder calls them: parts of rows and panels, columns in
// groups, factors, epilogues and slices of K, each element to the very bit.

#include "engine/ops/gemm.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "engine/base/int_math.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/fma_chain.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/targets.h"

namespace encore::inline v0_1::internal {
namespace {

enum class Epilogue { kNone, kRelu, kActivation, kResidual, kResidualInPlace };

struct GemmCase {
  size_t m;
  size_t n;
  size_t k;
  GemmBlocking blocking{128, 1024};
  Epilogue epilogue = Epilogue::kNone;
  size_t group_vectors = 0;  // 0: columns side by side
  bool fewer_k = false;      // the view uses half of the packed rows
  bool bias = true;
};

void PrintTo(const GemmCase& g, std::ostream* out) {
  *out << "m " << g.m << ", n " << g.n << ", k " << g.k << ", mc " << g.blocking.mc << ", kc "
       << g.blocking.kc << ", epilogue " << static_cast<int>(g.epilogue) << ", group_vectors "
       << g.group_vectors << ", fewer_k " << g.fewer_k << ", bias " << g.bias;
}

// The matrices of a case, for the active target.
class Problem {
 public:
  explicit Problem(const GemmCase& which)
      : g(which),
        lanes(GetGemmKernelF32().lanes),
        lda_(g.k + 3),
        ldb_(RoundUp(g.n, lanes) + lanes),
        a_(RandomFloats(g.m * lda_, 1)),
        b_(RandomFloats(g.k * ldb_ + lanes, 2)),
        bias_(RandomFloats(ldb_, 3)),
        residual_(RandomFloats(g.m * ld_residual(), 7)) {
    Result<PackedMatrix> packed = PackedMatrix::Create(
        WeightSource::One(ConstView(b_.data(), {g.n, g.k}, {1, static_cast<ptrdiff_t>(ldb_)}),
                          g.bias ? ConstView(bias_.data(), Shape(g.n)) : ConstView()));
    EXPECT_TRUE(packed.ok());
    packed_ = *std::move(packed);
  }

  // Columns of a group, and how many groups there are.
  size_t group_cols() const { return g.group_vectors == 0 ? g.n : g.group_vectors * lanes; }
  size_t groups() const { return DivCeil(g.n, group_cols()); }
  // For an output [groups, m, columns of a group] with gaps everywhere.
  Shape output_shape() const { return {groups(), g.m, group_cols()}; }
  TensorView<float>::Strides output_strides() const {
    const ptrdiff_t ldc = static_cast<ptrdiff_t>(group_cols() + 5);
    return {static_cast<ptrdiff_t>(g.m) * ldc + 11, ldc, 1};
  }
  float At(const Guarded& c, size_t row, size_t col) const {
    return c.view()(col / group_cols(), row, col % group_cols());
  }

  // What the output holds before the product.
  void Fill(Guarded& c) const {
    if (g.epilogue != Epilogue::kResidualInPlace) return;
    for (size_t i = 0; i < g.m; ++i) {
      for (size_t j = 0; j < g.n; ++j) c.view()(0, i, j) = residual_[i * ld_residual() + j];
    }
  }

  GemmArgs Args(const Guarded& c) const {
    GemmArgs args{};
    args.a = InputRows::Of(ConstRows{a_.data(), lda_});
    args.b = packed_.view();
    args.b.k = used_k();
    args.c = {c.view().data(), group_cols() + 5};
    if (g.group_vectors != 0) {
      args.blocks = {group_cols(), static_cast<size_t>(c.view().stride(0))};
    }
    args.relu = g.epilogue == Epilogue::kRelu;
    if (g.epilogue == Epilogue::kActivation)
      args.activation = GetActivationKernel(Activation::kGelu).tile;
    if (g.epilogue == Epilogue::kResidual) {
      args.residual = {residual_.data(), ld_residual()};
    } else if (g.epilogue == Epilogue::kResidualInPlace) {
      args.residual = args.c;
    }
    return args;
  }

  // [m, n], each element one chain over the whole K.
  std::vector<float> Want() const {
    const bool fma = reference::TargetHasFma(GetGemmKernelF32().target);
    const bool residual =
        g.epilogue == Epilogue::kResidual || g.epilogue == Epilogue::kResidualInPlace;
    std::vector<float> want(g.m * g.n);
    for (size_t i = 0; i < g.m; ++i) {
      for (size_t j = 0; j < g.n; ++j) {
        float sum = g.bias ? bias_[j] : 0.0f;
        for (size_t k = 0; k < used_k(); ++k) {
          sum = MulAdd(fma, a_[i * lda_ + k], b_[k * ldb_ + j], sum);
        }
        want[i * g.n + j] =
            FinishSum(sum, 1.0f, residual ? residual_[i * ld_residual() + j] : -0.0f,
                      g.epilogue == Epilogue::kRelu);
      }
    }
    if (g.epilogue == Epilogue::kActivation && !want.empty()) {
      GetActivationKernel(Activation::kGelu).tile(want.data(), g.n, g.m, g.n);
    }
    return want;
  }

  const GemmCase g;
  const size_t lanes;

 private:
  size_t used_k() const { return g.fewer_k ? g.k / 2 : g.k; }
  size_t ld_residual() const { return g.n + 2; }

  const size_t lda_;
  const size_t ldb_;
  const std::vector<float> a_;
  const std::vector<float> b_;
  const std::vector<float> bias_;
  const std::vector<float> residual_;
  PackedMatrix packed_;
};

// Rows [row, row_end) and panels [panel, panel_end) come out right; all else is as it was.
void CheckBlock(const Problem& p, const std::vector<float>& want, size_t row, size_t row_end,
                size_t panel, size_t panel_end) {
  Guarded c(p.output_shape(), p.output_strides());
  p.Fill(c);
  Guarded before(p.output_shape(), p.output_strides());
  p.Fill(before);
  GemmArgs args = p.Args(c);
  const PackedView& b = args.b;
  if (panel % 2 == 1) args.next = args.a.data;  // which changes nothing
  GemmBlock(args, p.g.blocking, row, row_end, panel, panel_end);
  const size_t col = panel * b.nr();
  const size_t col_end = std::min(p.g.n, panel_end * b.nr());
  for (size_t i = 0; i < p.g.m; ++i) {
    for (size_t j = 0; j < p.g.n; ++j) {
      const bool inside = row <= i && i < row_end && col <= j && j < col_end;
      const float expected = inside ? want[i * p.g.n + j] : p.At(before, i, j);
      ASSERT_EQ(std::bit_cast<uint32_t>(p.At(c, i, j)), std::bit_cast<uint32_t>(expected))
          << "at " << i << ", " << j << (inside ? "" : ", which is none of the block's") << ": "
          << p.At(c, i, j) << ", wanted " << expected;
    }
  }
  ASSERT_TRUE(c.Intact());
}

void Check(const GemmCase& g) {
  SCOPED_TRACE(testing::PrintToString(g));
  const Problem p(g);
  const std::vector<float> want = p.Want();
  const size_t panels = p.Args(Guarded({1, 1, 1})).b.panels();
  CheckBlock(p, want, 0, g.m, 0, panels);
  CheckBlock(p, want, g.m / 3, g.m - g.m / 4, panels / 3, panels);
  CheckBlock(p, want, g.m / 2, g.m, std::min<size_t>(1, panels), panels - panels / 3);
  CheckBlock(p, want, 0, 0, 0, panels);
  CheckBlock(p, want, 0, g.m, panels, panels);
}

constexpr GemmBlocking kBlockings[] = {{128, 1024}, {5, 1024}, {128, 7}, {3, 1}};

TEST(GemmBlock, EveryEpilogue) {
  ForEachTarget([](const std::string&) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu, Epilogue::kActivation,
                                    Epilogue::kResidual, Epilogue::kResidualInPlace}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        for (const size_t m : {1, 2, 14}) {  // few rows go over several panels at once
          GemmCase g{.m = m, .n = m == 14 ? 101u : 250u, .k = 20, .blocking = kBlockings[bits % 4]};
          g.bias = (bits & 4) != 0;
          g.epilogue = epilogue;
          Check(g);
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// However K is cut, and whatever the sizes: one chain, to the bit.
TEST(GemmBlock, SlicesOfKAreOneChain) {
  ForEachTarget([](const std::string&) {
    for (const size_t m : {1, 2, 13, 33}) {
      for (const size_t n : {1, 16, 47, 48, 49, 150, 250}) {
        for (const size_t k : {0, 1, 6, 7, 8, 50}) {
          for (const GemmBlocking& blocking : kBlockings) {
            GemmCase g{.m = m, .n = n, .k = k, .blocking = blocking};
            g.epilogue = k % 2 == 0 ? Epilogue::kResidual : Epilogue::kActivation;
            g.fewer_k = n == 48;
            Check(g);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

// A projection's output head by head.
TEST(GemmBlock, ColumnsInGroups) {
  ForEachTarget([](const std::string&) {
    const size_t lanes = GetGemmKernelF32().lanes;
    for (const size_t vectors : {1, 2, 3, 4, 5, 7}) {
      for (const size_t groups : {1, 2, 3, 6, 9}) {
        for (const GemmBlocking& blocking : kBlockings) {
          for (const size_t m : {1, 2, 14}) {
            GemmCase g{.m = m, .n = groups * vectors * lanes, .k = 9, .blocking = blocking};
            g.group_vectors = vectors;
            g.epilogue = groups % 2 == 0 ? Epilogue::kRelu : Epilogue::kNone;
            Check(g);
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// c = gate^2 * c + 1: with another place or order of the two it would differ.
void GateTile(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows, size_t cols) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) {
      const float g = gate[i * ld_gate + j];
      const float square = g * g;
      const float product = square * c[i * ldc + j];
      c[i * ldc + j] = product + 1.0f;
    }
  }
}

// Two matrices in pairs of panels: the bits of two products and a pass over them.
TEST(GemmBlock, GatedPairsOfPanels) {
  ForEachTarget([](const std::string&) {
    for (const size_t m : {1, 2, 13, 33, 128}) {  // 128: more than half a strip has
      for (const size_t n : {1, 16, 47, 48, 150, 250}) {
        for (const size_t k : {0, 1, 7, 50}) {
          if (m == 128 && (n != 250 || k != 50)) continue;
          const std::vector<float> weights = RandomFloats(2 * n * k + 1, 1);
          const std::vector<float> bias = RandomFloats(2 * n, 2);
          const std::vector<float> x = RandomFloats(m * k + 1, 3);
          WeightSource source{.num_parts = 2, .gated = true};
          for (size_t half = 0; half < 2; ++half) {
            source.parts[half] = {ConstView(weights.data() + half * n * k, {n, k}),
                                  ConstView(bias.data() + half * n, Shape(n))};
          }
          const PackedMatrix packed = Taken(PackedMatrix::Create(source));
          const bool fma = reference::TargetHasFma(packed.view().kernel->target);
          std::vector<float> want[2];
          for (size_t half = 0; half < 2; ++half) {
            for (size_t i = 0; i < m; ++i) {
              for (size_t j = 0; j < n; ++j) {
                float sum = bias[half * n + j];
                for (size_t at = 0; at < k; ++at) {
                  sum = MulAdd(fma, x[i * k + at], weights[(half * n + j) * k + at], sum);
                }
                want[half].push_back(sum);
              }
            }
          }
          GateTile(want[0].data(), n, want[1].data(), n, m, n);
          for (const GemmBlocking& blocking : kBlockings) {
            SCOPED_TRACE(testing::Message() << "m " << m << ", n " << n << ", k " << k << ", mc "
                                            << blocking.mc << ", kc " << blocking.kc);
            const ptrdiff_t ldc = static_cast<ptrdiff_t>(n) + 3;
            Guarded c({m, n}, {ldc, 1});
            GemmArgs args{};
            args.a = InputRows::Of(ConstRows{x.data(), k});
            args.b = packed.view();
            args.c = {c.view().data(), static_cast<size_t>(ldc)};
            args.gated = &GateTile;
            const size_t panels = args.b.panels();
            GemmBlock(args, blocking, 0, m, panels / 2, panels);
            GemmBlock(args, blocking, 0, m, 0, panels / 2);
            ASSERT_TRUE(SameBits(Elements(c.view()), want[1]));
            ASSERT_TRUE(c.Intact());
          }
        }
      }
    }
  });
}

TEST(Gemm, TheSameOnAllExecutors) {
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    for (const size_t m : {1, 31, 70, 300}) {
      for (const size_t group_vectors : {0, 2}) {
        GemmCase g{.m = m, .n = 6 * 32, .k = 30, .blocking = {64, 11}};
        g.group_vectors = group_vectors;
        g.epilogue = group_vectors == 0 ? Epilogue::kActivation : Epilogue::kRelu;
        const Problem p(g);
        const std::vector<float> want = p.Want();
        for (const auto& [name, executor] : executors) {
          Guarded c(p.output_shape(), p.output_strides());
          const GemmArgs args = p.Args(c);
          EXPECT_TRUE(RunTeam(executor, [&](Team& team) { Gemm(team, args, g.blocking, m); }).ok());
          std::vector<float> got;
          for (size_t i = 0; i < m; ++i) {
            for (size_t j = 0; j < g.n; ++j) got.push_back(p.At(c, i, j));
          }
          EXPECT_TRUE(SameBits(got, want)) << name << ", " << testing::PrintToString(g);
          EXPECT_TRUE(c.Intact()) << name;
        }
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
