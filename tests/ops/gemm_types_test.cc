// SPDX-License-Identifier: Apache-2.0
//
// bf16 and int8 products on every SIMD target as the encoder calls them: packing, rows made from
// f32, and the loops, each element to the very bit. int8 sums are exact against 64-bit ones, up to
// the longest K there is.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/int_math.h"
#include "engine/ops/gemm.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/gemm_elements.h"
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
  bool bias = true;
  bool gated = false;  // n columns of each half; with kNone and bias
};

void PrintTo(const GemmCase& g, std::ostream* out) {
  *out << "m " << g.m << ", n " << g.n << ", k " << g.k << ", mc " << g.blocking.mc << ", kc "
       << g.blocking.kc << ", epilogue " << static_cast<int>(g.epilogue) << ", group_vectors "
       << g.group_vectors << ", bias " << g.bias << ", gated " << g.gated;
}

// c = gate^2 * c + 1: with another place or order of the two it would differ.
void GateTile(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows, size_t cols) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < cols; ++j) {
      const float square = gate[i * ld_gate + j] * gate[i * ld_gate + j];
      const float product = square * c[i * ldc + j];
      c[i * ldc + j] = product + 1.0f;
    }
  }
}

// Rows of A, made by the kernel, with bytes of NaN or of odd integers between them and none behind.
struct RowsOfA {
  RowsOfA(const GemmKernel& of, const std::vector<float>& x, size_t rows, size_t k)
      : kernel(of), ld(of.GroupsOf(k) * of.kr + 2 * of.kr), quant(rows) {
    const size_t used = kernel.GroupsOf(k) * kernel.kr;
    const size_t bytes = rows == 0 ? 0 : ((rows - 1) * ld + used) * kernel.a_bytes;
    memory.reserve(bytes + 1);  // somewhere, even for none
    memory.assign(bytes, std::byte{0xFF});
    kernel.pack_lhs({.in = {x.data(), k},
                     .rows = rows,
                     .k = k,
                     .out = {memory.data(), ld * kernel.a_bytes, quant.data()}});
  }
  InputRows rows() const { return {memory.data(), ld * kernel.a_bytes, quant.data()}; }
  float operator()(size_t row, size_t i) const {
    return ElementOfA(kernel, memory.data(), row * ld + i);
  }
  const GemmKernel& kernel;
  size_t ld;
  std::vector<std::byte> memory;
  std::vector<RowQuant> quant;
};

// A weight matrix [n, k] as the kernel holds it, in plain C++.
struct PlainWeights {
  PlainWeights(const GemmKernel& kernel, const std::vector<float>& w, size_t n, size_t k)
      : values(n * k), scale(n), sum(n) {
    for (size_t r = 0; r < n; ++r) {
      float largest = 0;
      for (size_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(w[r * k + i]));
      scale[r] = largest / 127.0f;
      const float inverse = 1.0f / scale[r];
      for (size_t i = 0; i < k; ++i) {
        float& value = values[r * k + i];
        value = w[r * k + i];
        value = kernel.integer ? std::nearbyint(value * inverse) : Bf16ToF32(F32ToBf16(value));
        sum[r] += value;
      }
    }
  }
  std::vector<float> values;
  std::vector<float> scale;  // these two of int8
  std::vector<float> sum;
};

float Product(const RowsOfA& a, const PlainWeights& b, size_t i, size_t n, size_t k, float bias) {
  const GemmKernel& kernel = a.kernel;
  const bool fma = HasFma(kernel);
  const float* w = b.values.data() + n * k;
  if (kernel.integer) {
    int64_t sum = 0;
    for (size_t e = 0; e < k; ++e) sum += static_cast<int64_t>(a(i, e) * w[e]);
    return Dequantized(fma, sum, a.quant[i], b.scale[n], b.sum[n], bias);
  }
  float sum = bias;
  for (size_t e = 0; e < k; e += 2) {
    const bool odd = e + 1 < k;
    sum = MulAddPair(fma, a(i, e), odd ? a(i, e + 1) : 0.0f, w[e], odd ? w[e + 1] : 0.0f, sum);
  }
  return sum;
}

// The matrices of a case, for one kernel of the active target.
class Problem {
 public:
  Problem(const GemmKernel& kernel, const GemmCase& which)
      : g(which),
        lanes(kernel.lanes),
        halves_(g.gated ? 2 : 1),
        weights_(RandomFloats(halves_ * g.n * g.k + 1, 2)),
        bias_(RandomFloats(halves_ * g.n, 3)),
        residual_(RandomFloats(g.m * ld_residual(), 7)),
        plain_(kernel, weights_, halves_ * g.n, g.k),
        rows_(kernel, RandomFloats(g.m * g.k + 1, 1, 1, 0.2f), g.m, g.k) {
    WeightSource source{.num_parts = halves_, .gated = g.gated};
    for (size_t half = 0; half < halves_; ++half) {
      const float* bias = bias_.data() + half * g.n;
      source.parts[half] = {ConstView(weights_.data() + half * g.n * g.k, {g.n, g.k}),
                            g.bias ? ConstView(bias, Shape(g.n)) : ConstView()};
    }
    Result<PackedMatrix> packed = PackedMatrix::Create(source, kernel);
    EXPECT_TRUE(packed.ok());
    packed_ = *std::move(packed);
  }

  size_t group_cols() const { return g.group_vectors == 0 ? g.n : g.group_vectors * lanes; }
  // For an output [groups, m, columns of a group] with gaps everywhere.
  Shape output_shape() const { return {DivCeil(g.n, group_cols()), g.m, group_cols()}; }
  TensorView<float>::Strides output_strides() const {
    const ptrdiff_t ldc = static_cast<ptrdiff_t>(group_cols() + 5);
    return {static_cast<ptrdiff_t>(g.m) * ldc + 11, ldc, 1};
  }
  float At(const Guarded& c, size_t row, size_t col) const {
    return c.view()(col / group_cols(), row, col % group_cols());
  }
  void Fill(Guarded& c) const {
    if (g.epilogue != Epilogue::kResidualInPlace) return;
    for (size_t i = 0; i < g.m; ++i) {
      for (size_t j = 0; j < g.n; ++j) c.view()(0, i, j) = residual_[i * ld_residual() + j];
    }
  }

  GemmArgs Args(const Guarded& c) const {
    GemmArgs args{};
    args.a = rows_.rows();
    args.b = packed_.view();
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
    if (g.gated) args.gated = &GateTile;
    return args;
  }

  // [m, n].
  std::vector<float> Want() const {
    const bool residual =
        g.epilogue == Epilogue::kResidual || g.epilogue == Epilogue::kResidualInPlace;
    std::vector<float> want[2];
    for (size_t half = 0; half < halves_; ++half) {
      for (size_t i = 0; i < g.m; ++i) {
        for (size_t j = 0; j < g.n; ++j) {
          const size_t column = half * g.n + j;
          const float sum = Product(rows_, plain_, i, column, g.k, g.bias ? bias_[column] : 0.0f);
          want[half].push_back(FinishSum(sum, 1.0f,
                                         residual ? residual_[i * ld_residual() + j] : -0.0f,
                                         g.epilogue == Epilogue::kRelu));
        }
      }
    }
    std::vector<float>& y = want[halves_ - 1];
    if (g.epilogue == Epilogue::kActivation && !y.empty()) {
      GetActivationKernel(Activation::kGelu).tile(y.data(), g.n, g.m, g.n);
    }
    if (g.gated) GateTile(want[0].data(), g.n, y.data(), g.n, g.m, g.n);
    return y;
  }

  const GemmCase g;
  const size_t lanes;

 private:
  size_t ld_residual() const { return g.n + 2; }

  const size_t halves_;
  const std::vector<float> weights_;
  const std::vector<float> bias_;
  const std::vector<float> residual_;
  const PlainWeights plain_;
  const RowsOfA rows_;
  PackedMatrix packed_;
};

// Rows [row, row_end) and panels [panel, panel_end) come out right; all else is as it was.
void CheckBlock(const Problem& p, const std::vector<float>& want, size_t row, size_t row_end,
                size_t panel, size_t panel_end) {
  Guarded c(p.output_shape(), p.output_strides());
  Guarded before(p.output_shape(), p.output_strides());
  p.Fill(c);
  p.Fill(before);
  const GemmArgs args = p.Args(c);
  GemmBlock(args, p.g.blocking, row, row_end, panel, panel_end);
  const size_t col = panel * args.b.nr();
  const size_t col_end = std::min(p.g.n, panel_end * args.b.nr());
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

void Check(const NamedKernel& named, const GemmCase& g) {
  SCOPED_TRACE(testing::Message() << named.name << ", " << testing::PrintToString(g));
  const Problem p(named.kernel, g);
  const std::vector<float> want = p.Want();
  const size_t panels = p.Args(Guarded({1, 1, 1})).b.panels();
  CheckBlock(p, want, 0, g.m, 0, panels);
  CheckBlock(p, want, g.m / 3, g.m - g.m / 4, panels / 3, panels);
  CheckBlock(p, want, 0, g.m, panels, panels);
}

constexpr GemmBlocking kBlockings[] = {{128, 1024}, {5, 1024}, {128, 7}, {3, 1}};

// Runs f(kernel) for both kernels of every target, until something failed.
template <typename F>
void ForEachKernel(const F& f) {
  ForEachTarget([&](const std::string&) {
    for (const NamedKernel& kernel : GroupedKernels()) {
      if (!testing::Test::HasFatalFailure()) f(kernel);
    }
  });
}

TEST(GemmTypes, EveryEpilogue) {
  ForEachKernel([](const NamedKernel& kernel) {
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kRelu, Epilogue::kActivation,
                                    Epilogue::kResidual, Epilogue::kResidualInPlace}) {
      for (unsigned bits = 0; bits < 8; ++bits) {
        for (const size_t m : {1, 2, 14}) {  // few rows go over several panels at once
          Check(kernel, {.m = m,
                         .n = m == 14 ? 101u : 250u,
                         .k = 20 + bits % 4,
                         .blocking = kBlockings[bits % 4],
                         .epilogue = epilogue,
                         .bias = (bits & 4) != 0});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(GemmTypes, SizesAroundTilesAndSlicesOfK) {
  ForEachKernel([](const NamedKernel& kernel) {
    for (const size_t m : {1, 2, 13, 33}) {
      for (const size_t n : {1, 16, 47, 48, 49, 150}) {
        for (const size_t k : {0, 1, 2, 3, 13, 14, 15, 29, 57}) {
          const size_t turn = m + n + k;
          GemmCase g{.m = m, .n = n, .k = k, .blocking = kBlockings[turn % 4]};
          g.epilogue = k % 2 == 0 ? Epilogue::kResidual : Epilogue::kActivation;
          Check(kernel, g);
          g.blocking = kBlockings[2 + turn / 4 % 2];
          Check(kernel, g);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(GemmTypes, ColumnsInGroups) {
  ForEachKernel([](const NamedKernel& kernel) {
    for (const size_t vectors : {1, 2, 3, 5}) {
      for (const size_t groups : {1, 2, 3, 9}) {
        for (const size_t m : {1, 2, 14}) {
          Check(kernel, {.m = m,
                         .n = groups * vectors * kernel.kernel.lanes,
                         .k = 9,
                         .blocking = kBlockings[(vectors + groups + m) % 4],
                         .epilogue = groups % 2 == 0 ? Epilogue::kRelu : Epilogue::kNone,
                         .group_vectors = vectors});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(GemmTypes, GatedPairsOfPanels) {
  ForEachKernel([](const NamedKernel& kernel) {
    for (const size_t m : {1, 2, 13, 33}) {
      for (const size_t n : {1, 16, 47, 48, 150}) {
        for (const size_t k : {0, 1, 7, 50}) {
          Check(kernel,
                {.m = m, .n = n, .k = k, .blocking = kBlockings[(m + n + k) % 4], .gated = true});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST(GemmTypes, TheSameOnAllExecutors) {
  const Executors executors;
  ForEachKernel([&](const NamedKernel& kernel) {
    const GemmCase g{.m = 70, .n = 6 * 32, .k = 45, .blocking = {64, 11}};
    const Problem p(kernel.kernel, g);
    const std::vector<float> want = p.Want();
    for (const auto& [name, executor] : executors) {
      Guarded c(p.output_shape(), p.output_strides());
      const GemmArgs args = p.Args(c);
      EXPECT_TRUE(RunTeam(executor, [&](Team& team) { Gemm(team, args, g.blocking, g.m); }).ok());
      std::vector<float> got;
      for (size_t i = 0; i < g.m; ++i) {
        for (size_t j = 0; j < g.n; ++j) got.push_back(p.At(c, i, j));
      }
      EXPECT_TRUE(SameBits(got, want)) << kernel.name << " on " << name;
      EXPECT_TRUE(c.Intact()) << name;
    }
  });
}

// int8 with the ends of both ranges everywhere: activations of 0 and 255, weights of -128 and 127.
// The sums come back unharmed: with the zero point 0 and scales of 1 they are rounded to f32 once.
void CheckExtremes(const GemmKernel& kernel, size_t m, size_t n, size_t k, unsigned pattern,
                   const GemmBlocking& blocking) {
  SCOPED_TRACE(testing::Message() << "m " << m << ", n " << n << ", k " << k << ", pattern "
                                  << pattern << ", kc " << blocking.kc);
  const size_t lda = kernel.GroupsOf(k) * kernel.kr;
  std::vector<std::byte> a(m * lda * kernel.a_bytes);
  std::vector<int8_t> weights(n * k);
  std::vector<float> ones(n, 1.0f);
  const std::vector<RowQuant> quant(m, RowQuant{1.0f, 0.0f});
  const auto activation = [&](size_t i, size_t e) {
    return pattern == 0 || (i + e * pattern) % 3 != 0 ? 255 : 0;
  };
  const auto weight = [&](size_t j, size_t e) {
    if (pattern == 0) return j % 2 == 0 ? -128 : 127;
    return (j + e * pattern) % 5 < 2 ? 127 : -128;
  };
  for (size_t i = 0; i < m; ++i) {
    for (size_t e = 0; e < k; ++e) {
      PutElementOfA(kernel, a.data(), i * lda + e, static_cast<float>(activation(i, e)));
    }
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t e = 0; e < k; ++e) weights[j * k + e] = static_cast<int8_t>(weight(j, e));
  }
  WeightSource source = WeightSource::One(WeightView(DType::kI8, weights.data(), {n, k}));
  source.parts[0].scale = ConstView(ones.data(), Shape(n));
  const PackedMatrix packed = Taken(PackedMatrix::Create(source, kernel));
  Guarded c({m, n});
  GemmArgs args{};
  args.a = {a.data(), lda * kernel.a_bytes, quant.data()};
  args.b = packed.view();
  args.c = {c.view().data(), n};
  GemmBlock(args, blocking, 0, m, 0, args.b.panels());
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      int64_t column = 0;
      for (size_t e = 0; e < k; ++e) {
        sum += int64_t{activation(i, e)} * weight(j, e);
        column += weight(j, e);
      }
      ASSERT_LE(std::abs(sum), std::numeric_limits<int32_t>::max());
      ASSERT_EQ(c.view()(i, j), static_cast<float>(sum)) << "at " << i << ", " << j;
      ASSERT_EQ(args.b.column_quant.sum[j], static_cast<float>(column)) << "column " << j;
    }
  }
  ASSERT_TRUE(c.Intact());
}

TEST(GemmTypesInt8, ExactAtTheEndsOfTheRanges) {
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = KernelOf(Precision::kInt8);
    for (const size_t k : {1, 2, 3, 4, 5, 64, 129, 1024, 4099}) {
      for (unsigned pattern = 0; pattern < 3; ++pattern) {
        // Rows enough for a kernel that takes them at once, and slices that are the same length.
        if (k == 1024) CheckExtremes(kernel, 70, 50, k, pattern, {128, 128});
        CheckExtremes(kernel, 3, 35, k, pattern, {128, 1024});
        CheckExtremes(kernel, 1, 50, k, pattern, {128, 37});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(GemmTypesInt8, ExactAtTheLongestK) {
  static_assert(int64_t{kMaxInt8K} * 255 * 128 <= std::numeric_limits<int32_t>::max());
  static_assert(int64_t{kMaxInt8K + 1} * 255 * 128 > std::numeric_limits<int32_t>::max());
  ForEachTarget([](const std::string&) {
    const GemmKernel& kernel = GetGemmKernelInt8();
    CheckExtremes(kernel, 2, 3, kMaxInt8K, 0, {128, 1024});
    CheckExtremes(kernel, 1, 17, kMaxInt8K, 1, {128, kMaxInt8K});
    CheckExtremes(KernelOf(Precision::kInt8), 33, 3, kMaxInt8K, 0, {128, 1024});
  });
}

// NaN in a row of A, and in none else: as a number of bf16 or as the scale of an int8 row.
TEST(GemmTypes, NanStaysInItsRow) {
  ForEachKernel([](const NamedKernel& named) {
    const GemmKernel& kernel = named.kernel;
    constexpr size_t kM = 7, kN = 53, kK = 31;
    const std::vector<float> weights = RandomFloats(kN * kK, 2);
    std::vector<float> x = RandomFloats(kM * kK, 1);
    x[2 * kK + 30] = std::numeric_limits<float>::quiet_NaN();
    x[4 * kK] = -std::numeric_limits<float>::infinity();
    const PackedMatrix packed =
        Taken(PackedMatrix::Create(WeightSource::One(ConstView(weights.data(), {kN, kK})), kernel));
    const RowsOfA rows(kernel, x, kM, kK);
    Guarded c({kM, kN});
    GemmArgs args{};
    args.a = rows.rows();
    args.b = packed.view();
    args.c = {c.view().data(), kN};
    GemmBlock(args, {128, 1024}, 0, kM, 0, args.b.panels());
    for (size_t i = 0; i < kM; ++i) {
      for (size_t j = 0; j < kN; ++j) {
        const bool bad = i == 2 || i == 4;
        const float y = c.view()(i, j);
        EXPECT_EQ(std::isfinite(y), !bad) << named.name << " at " << i << ", " << j;
        EXPECT_EQ(std::isnan(y), bad && (i == 2 || kernel.integer)) << named.name << " at " << i;
      }
    }
  });
}

}  // namespace
}  // namespace encore::internal
