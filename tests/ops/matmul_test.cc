// SPDX-License-Identifier: Apache-2.0
//
// MatMul against the double-precision reference, within the bound that encore/ops.h states, on
// every SIMD target: sizes around every edge of the blocking, and views of every kind.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// How a matrix lies in memory.
enum class Layout { kDense, kPadded, kColumns, kEverySecond, kBackward, kBackwardColumns };
constexpr Layout kLayouts[] = {Layout::kDense,       Layout::kPadded,   Layout::kColumns,
                               Layout::kEverySecond, Layout::kBackward, Layout::kBackwardColumns};

TensorView<float>::Strides StridesOf(Layout layout, size_t rows, size_t cols) {
  const auto r = static_cast<ptrdiff_t>(rows);
  const auto c = static_cast<ptrdiff_t>(cols);
  switch (layout) {
    case Layout::kDense:
      return {c, 1};
    case Layout::kPadded:
      return {c + 3, 1};
    case Layout::kColumns:
      return {1, r + 2};
    case Layout::kEverySecond:
      return {2 * c + 1, 2};
    case Layout::kBackward:
      return {-(c + 1), 1};
    case Layout::kBackwardColumns:
      return {c + 1, -1};
  }
  return {};
}

// A matrix of drawn values in that layout; what lies between them is NaN.
class Input {
 public:
  Input(const Shape& shape, Layout layout, uint32_t seed)
      : memory_(shape, StridesOf(layout, shape[0], shape[1])) {
    const std::vector<float> values = RandomFloats(shape[0] * shape[1], seed);
    for (size_t i = 0; i < shape[0]; ++i) {
      for (size_t j = 0; j < shape[1]; ++j) memory_.view()(i, j) = values[i * shape[1] + j];
    }
  }
  ConstView view() const { return memory_.view(); }

 private:
  Guarded memory_;
};

// (K + 2) u (|bias| + sum |a||b|) of each element: K roundings of sums and, without FMA, one more
// of each product, which is one more in all for any term. And K times half of the smallest float.
testing::AssertionResult NearProduct(ConstView a, ConstView b, ConstView bias, ConstView c,
                                     double* worst) {
  using reference::Rounded;
  const reference::Matrix<double> want = reference::MatMul(reference::Matrix<double>(a), b, bias);
  const double k = static_cast<double>(a.dim(1));
  const auto tolerance = [&](size_t at) {
    const size_t m = at / c.dim(1);
    const size_t n = at % c.dim(1);
    double sum = bias.empty() ? 0 : std::fabs(static_cast<double>(bias(n)));
    for (size_t i = 0; i < a.dim(1); ++i) {
      sum += std::fabs(static_cast<double>(a(m, i)) * static_cast<double>(b(i, n)));
    }
    return (k + 2) * (Rounded::kUnit * sum + Rounded::kTiny);
  };
  return NearEach(
      Elements(c), [&](size_t at) { return want.data[at]; }, tolerance, worst);
}

// The largest K that is still one slice.
size_t SliceLimit(size_t nr) {
  size_t k = 1;
  while (internal::ChooseGemmBlocking(internal::MachineCaches(), k + 1, nr).kc == k + 1) ++k;
  return k;
}

void CheckSize(size_t m, size_t n, size_t k, double* worst) {
  SCOPED_TRACE(testing::Message() << "M " << m << ", N " << n << ", K " << k);
  const Input a({m, k}, Layout::kDense, 1);
  const Input b({k, n}, Layout::kDense, 2);
  const std::vector<float> bias = RandomFloats(n, 3);
  for (const bool with_bias : {false, true}) {
    Guarded c({m, n});
    MatMulOptions options;
    if (with_bias) options.bias = ConstView(bias.data(), Shape(n));
    const Status status = MatMul(a.view(), b.view(), c.view(), options);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(NearProduct(a.view(), b.view(), options.bias, c.view(), worst));
    ASSERT_TRUE(c.Intact()) << "written outside of c";
  }
}

TEST(MatMul, SizesAroundEveryEdge) {
  ForEachTarget([](const std::string& target) {
    const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
    const size_t mr = kernel.max_mr[kernel.best_nv];
    const size_t nr = kernel.best_nv * kernel.lanes;
    const size_t limit = SliceLimit(nr);
    double worst = 0;
    for (const size_t m : std::set<size_t>{0, 1, 2, mr - 1, mr, mr + 1, 2 * mr + 1}) {
      for (const size_t n :
           std::set<size_t>{0, 1, kernel.lanes - 1, kernel.lanes, nr - 1, nr, nr + 1, 2 * nr + 3}) {
        for (const size_t k : {0, 1, 2, 3, 17, 64}) CheckSize(m, n, k, &worst);
      }
    }
    for (const size_t k : {limit - 1, limit, limit + 1, 2 * limit - 1, 2 * limit + 1}) {
      for (const size_t m : {size_t{1}, mr + 1}) {
        for (const size_t n : {size_t{1}, nr + 1}) CheckSize(m, n, k, &worst);
      }
    }
    // Rows around blocks of MC.
    for (const size_t m : {31, 32, 33, 127, 128, 129, 257}) CheckSize(m, 5, 9, &worst);
    std::printf("%s: MR %zu, NR %zu, KC %zu; worst error %.3f of the bound\n", target.c_str(), mr,
                nr, limit, worst);
  });
}

TEST(MatMul, ViewsOfEveryLayout) {
  const size_t m = 13, n = 37, k = 29;
  const std::vector<float> bias = RandomFloats(2 * n, 3);
  ForEachTarget([&](const std::string&) {
    std::vector<float> first;
    double worst = 0;
    for (const Layout la : kLayouts) {
      for (const Layout lb : kLayouts) {
        for (const Layout lc : kLayouts) {
          SCOPED_TRACE(testing::Message() << "layouts " << static_cast<int>(la) << ", "
                                          << static_cast<int>(lb) << ", " << static_cast<int>(lc));
          const Input a({m, k}, la, 1);
          const Input b({k, n}, lb, 2);
          Guarded c({m, n}, StridesOf(lc, m, n));
          MatMulOptions options;
          options.bias = ConstView(bias.data(), Shape(n), {2});
          ASSERT_TRUE(MatMul(a.view(), b.view(), c.view(), options).ok());
          ASSERT_TRUE(c.Intact()) << "written outside of c";
          const std::vector<float> got = Elements(c.view());
          if (first.empty()) {
            ASSERT_TRUE(NearProduct(a.view(), b.view(), options.bias, c.view(), &worst));
            first = got;
          }
          ASSERT_TRUE(SameBits(got, first)) << "strides change bits";

          // The same product with b given as [N, K].
          Guarded transposed({m, n}, StridesOf(lc, m, n));
          options.transpose_b = Transpose::kYes;
          ASSERT_TRUE(MatMul(a.view(), b.view().Transposed(), transposed.view(), options).ok());
          ASSERT_TRUE(SameBits(Elements(transposed.view()), first));
        }
      }
    }
  });
}

TEST(MatMul, BroadcastInputs) {
  const size_t m = 9, n = 21, k = 11;
  const std::vector<float> values = RandomFloats(100, 1);
  const float* data = values.data();
  const TensorView<float>::Strides kinds[] = {{0, 1}, {1, 0}, {0, 0}};
  ForEachTarget([&](const std::string&) {
    double worst = 0;
    for (const auto& sa : kinds) {
      for (const auto& sb : kinds) {
        const ConstView a(data, Shape(m, k), sa);
        const ConstView b(data + 50, Shape(k, n), sb);
        const ConstView bias(data + 90, Shape(n), {0});
        Guarded c({m, n});
        ASSERT_TRUE(MatMul(a, b, c.view(), {.bias = bias}).ok());
        ASSERT_TRUE(NearProduct(a, b, bias, c.view(), &worst));
        ASSERT_TRUE(c.Intact());
      }
    }
  });
}

// Small integers: every sum is exact in f32, so that C t is A (B t) exactly, and a single term that
// is lost, doubled or misplaced shows.
TEST(MatMul, TooBigForTheReference) {
  if (ENCORE_TEST_TSAN) GTEST_SKIP() << "takes minutes with the thread sanitizer";
  const size_t m = kEmulated ? 29 : 263, n = 1511, k = kEmulated ? 1203 : 2203;
  const auto integers = [](size_t count, uint32_t seed) {
    std::vector<float> values = RandomFloats(count, seed, 2);
    for (float& v : values) v = std::clamp(std::round(v), -8.0f, 8.0f);
    return values;
  };
  const std::vector<float> a = integers(m * k, 1);
  const std::vector<float> b = integers(k * n, 2);
  const std::vector<float> t = integers(n, 3);
  const Executors executors;
  ForEachTarget([&](const std::string& target) {
    std::vector<double> b_t(k);
    for (size_t i = 0; i < k; ++i) {
      for (size_t j = 0; j < n; ++j) b_t[i] += static_cast<double>(b[i * n + j]) * t[j];
    }
    for (const auto& [name, executor] : executors) {
      if (target != SupportedTargets().front() && name != "inline") continue;
      SCOPED_TRACE(name);
      Guarded c({m, n});
      MatMulOptions options;
      options.executor = executor;
      ASSERT_TRUE(MatMul({a.data(), {m, k}}, {b.data(), {k, n}}, c.view(), options).ok());
      ASSERT_TRUE(c.Intact());
      for (size_t i = 0; i < m; ++i) {
        double c_t = 0;
        double a_b_t = 0;
        for (size_t j = 0; j < n; ++j) c_t += static_cast<double>(c.view()(i, j)) * t[j];
        for (size_t j = 0; j < k; ++j) a_b_t += static_cast<double>(a[i * k + j]) * b_t[j];
        ASSERT_EQ(c_t, a_b_t) << "row " << i;
      }
    }
  });
}

// Neither the executor nor the target with FMA changes a bit, and a row does not depend on the
// others.
TEST(MatMul, TheSameBitsEverywhere) {
  const size_t k = 1500, n = 301;
  const std::vector<float> a = RandomFloats(200 * k, 1);
  const std::vector<float> b = RandomFloats(k * n, 2);
  const Executors executors;
  std::vector<float> row;  // of row 0
  std::map<std::string, uint64_t> hashes;
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    for (const size_t m : {1, 2, 65, 130, 200}) {
      for (const auto& [name, executor] : executors) {
        std::vector<float> c(m * n);
        MatMulOptions options;
        options.executor = executor;
        ASSERT_TRUE(
            MatMul({a.data(), {m, k}}, {b.data(), {k, n}}, {c.data(), {m, n}}, options).ok());
        const uint64_t hash = HashBits(c);
        const uint64_t first = hashes.emplace(std::to_string(m), hash).first->second;
        EXPECT_EQ(hash, first) << target << ", M " << m << ", " << name;
        if (row.empty()) row.assign(c.begin(), c.begin() + n);
        EXPECT_TRUE(SameBits({c.data(), n}, row)) << target << ", M " << m << ", " << name;
      }
    }
  });
}

TEST(MatMul, NanAndInfinityReachTheirRowsAndColumnsOnly) {
  ForEachTarget([](const std::string&) {
    const size_t m = 20, n = 50, k = 30;
    std::vector<float> a = RandomFloats(m * k, 1);
    std::vector<float> b = RandomFloats(k * n, 2);
    a[7 * k + 3] = NAN;
    b[4 * n + 49] = INFINITY;
    Guarded c({m, n});
    ASSERT_TRUE(MatMul({a.data(), {m, k}}, {b.data(), {k, n}}, c.view()).ok());
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < n; ++j) {
        EXPECT_EQ(std::isnan(c.view()(i, j)), i == 7) << i << ", " << j;
        EXPECT_EQ(std::isinf(c.view()(i, j)), i != 7 && j == 49) << i << ", " << j;
      }
    }
  });
}

TEST(MatMul, ErrorsNameTheViewAndLeaveTheOutput) {
  std::vector<float> memory(1000, 1.0f);
  const auto view = [&](const Shape& shape) { return ConstView(memory.data(), shape); };
  Guarded out({4, 6});
  const auto call = [&](ConstView a, ConstView b, MutableView c, MatMulOptions options = {}) {
    return MatMul(a, b, c, options);
  };
  EXPECT_TRUE(FailsWith(call(view({4, 5}), view({7, 6}), out.view()),
                        {"a ", "b ", "[4, 5]", "[7, 6]", "wanted"}));
  EXPECT_TRUE(
      FailsWith(call(view({4, 5}), view({6, 7}), out.view(), {.transpose_b = Transpose::kYes}),
                {"b, transposed", "[4, 5]", "[7, 6]"}));
  EXPECT_TRUE(
      FailsWith(call(view(Shape(20)), view({5, 6}), out.view()), {"a has shape [20]", "rank 2"}));
  EXPECT_TRUE(FailsWith(call(view({4, 5}), view({5, 6, 1}), out.view()),
                        {"b has shape [5, 6, 1]", "rank 2"}));
  EXPECT_TRUE(
      FailsWith(call(view({4, 5}), view({5, 7}), out.view()), {"c has shape [4, 6]", "[4, 7]"}));
  EXPECT_TRUE(FailsWith(call(view({4, 5}), view({5, 6}), out.view(), {.bias = view(Shape(5))}),
                        {"bias has shape [5]", "wanted [6]"}));
  EXPECT_TRUE(FailsWith(call({}, view({5, 6}), out.view()), {"a "}));
  EXPECT_TRUE(FailsWith(call({nullptr, {4, 5}}, view({5, 6}), out.view()),
                        {"a of shape [4, 5] has no data"}));
  EXPECT_TRUE(FailsWith(call(view({4, 5}), view({5, 6}), {nullptr, {4, 6}}),
                        {"c of shape [4, 6] has no data"}));
  EXPECT_TRUE(FailsWith(call(view({4, 5}), view({5, 6}), {memory.data(), {4, 6}, {0, 1}}),
                        {"c is an output", "stride 0", "axis 0", "4"}));
  const MutableView overlapping(memory.data() + 10, {4, 6});
  const ConstView apart(memory.data() + 500, {5, 6});
  EXPECT_TRUE(
      FailsWith(call(view({4, 5}), apart, overlapping), {"c of shape [4, 6]", "memory with a"}));
  EXPECT_TRUE(FailsWith(call({memory.data() + 500, {4, 5}}, view({5, 6}), overlapping),
                        {"c of shape [4, 6]", "memory with b"}));
  EXPECT_TRUE(FailsWith(call({memory.data() + 500, {4, 5}}, apart, overlapping,
                             {.bias = {memory.data() + 9, Shape(6)}}),
                        {"c of shape [4, 6]", "memory with bias"}));
  EXPECT_EQ(memory, std::vector<float>(1000, 1.0f));
  const size_t huge = size_t{1} << 40;
  EXPECT_TRUE(FailsWith(
      call({memory.data(), {4, huge}, {0, 0}}, {memory.data(), {huge, 6}, {0, 0}}, out.view()),
      {"[1099511627776, 6]"}, ErrorCode::kOutOfMemory));
  EXPECT_TRUE(
      FailsWith(call({memory.data(), {huge, huge}, {0, 0}}, view({5, 6}), out.view()), {"a"}));
  EXPECT_TRUE(out.Untouched());
}

TEST(MatMul, ExtentsOfZero) {
  ForEachTarget([](const std::string&) {
    std::vector<float> memory = {1, 2, 3, 4};
    Guarded c({2, 3});
    // No k: the bias, or zeros. Views without elements need no data.
    ASSERT_TRUE(MatMul({nullptr, {2, 0}}, {nullptr, {0, 3}}, c.view()).ok());
    EXPECT_EQ(Elements(c.view()), std::vector<float>(6, 0.0f));
    ASSERT_TRUE(
        MatMul({nullptr, {2, 0}}, {nullptr, {0, 3}}, c.view(), {.bias = {memory.data(), Shape(3)}})
            .ok());
    EXPECT_EQ(Elements(c.view()), (std::vector<float>{1, 2, 3, 1, 2, 3}));
    ASSERT_TRUE(c.Intact());
    EXPECT_TRUE(MatMul({nullptr, {0, 4}}, {memory.data(), {4, 1}}, {nullptr, {0, 1}}).ok());
    EXPECT_TRUE(MatMul({memory.data(), {1, 4}}, {nullptr, {4, 0}}, {nullptr, {1, 0}}).ok());
  });
}

}  // namespace
}  // namespace encore
