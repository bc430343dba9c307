// SPDX-License-Identifier: Apache-2.0
//
// Attention against the double-precision reference, within the bounds that rounding in f32 gives,
// on every SIMD target: sizes around the tiles of queries and keys, every mask, every kind of
// view. What holds to the bit is in attention_bits_test.cc.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "reference/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using reference::Matrix;
using reference::Rounded;

Matrix<Rounded> Reference(const AttentionCase& c, const AttentionMask& mask, double scale,
                          Matrix<Rounded>* weights) {
  return reference::Attention<Rounded>(Matrix<Rounded>(c.q_view()), Matrix<Rounded>(c.k_view()),
                                       Matrix<Rounded>(c.v_view()), scale, mask, {}, weights);
}

// Checks output and weights of one case on every target; `worst` grows to the worst error.
void CheckCase(const AttentionCase& c, const AttentionMask& mask, double scale, double* worst) {
  Matrix<Rounded> want_weights;
  const double used = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  const Matrix<Rounded> want = Reference(c, mask, used, &want_weights);
  ForEachTarget([&](const std::string&) {
    Guarded out({c.queries, c.value_size});
    AttentionOptions options;
    options.mask = mask;
    options.scale = scale;
    const Status status = Attention(c.q_view(), c.k_view(), c.v_view(), out.view(), options);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(out.Intact());
    ASSERT_TRUE(NearRounded(Elements(out.view()), want, worst));

    Guarded again({c.queries, c.value_size});
    Guarded weights({c.queries, c.keys});
    options.weights = weights.view();
    ASSERT_TRUE(Attention(c.q_view(), c.k_view(), c.v_view(), again.view(), options).ok());
    ASSERT_TRUE(SameBits(Elements(again.view()), Elements(out.view()))) << "a tap changes bits";
    ASSERT_TRUE(weights.Intact());
    ASSERT_TRUE(NearRounded(Elements(weights.view()), want_weights, worst));
    for (size_t i = 0; i < c.queries; ++i) {
      double sum = 0;
      bool sees = false;
      for (size_t j = 0; j < c.keys; ++j) {
        const float w = weights.view()(i, j);
        sum += w;
        if (reference::Sees(mask, {}, i, j)) {
          sees = true;
        } else {
          ASSERT_EQ(w, 0.0f) << "a hidden key has a weight, at " << i << ", " << j;
        }
      }
      // Each weight is within 2 u of its share of the sum that was divided by, whose own chain over
      // 16 lanes has keys / 16 + 5 roundings.
      ASSERT_NEAR(sum, sees ? 1.0 : 0.0, (static_cast<double>(c.keys) / 16 + 16) * Rounded::kUnit);
    }
  });
}

TEST(Attention, SizesAroundTheTiles) {
  double worst = 0;
  // Blocks of queries have 64 rows, tiles of keys 512; vectors 4, 8 or 16 floats.
  for (const auto& [queries, keys] : std::vector<std::pair<size_t, size_t>>{{1, 1},
                                                                            {1, 2},
                                                                            {2, 1},
                                                                            {3, 15},
                                                                            {5, 16},
                                                                            {4, 17},
                                                                            {63, 31},
                                                                            {64, 64},
                                                                            {65, 65},
                                                                            {2, 511},
                                                                            {3, 512},
                                                                            {5, 513},
                                                                            {1, 1025},
                                                                            {129, 100}}) {
    for (const auto& [size, value_size] :
         std::vector<std::pair<size_t, size_t>>{{1, 1}, {8, 8}, {14, 14}, {33, 17}, {72, 80}}) {
      if (keys > 500 && size > 14) continue;
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys, sizes " << size
                                      << ", " << value_size);
      CheckCase(AttentionCase(queries, keys, size, value_size), {}, 0, &worst);
    }
  }
  for (const size_t size : {64, 128, 600}) {
    CheckCase(AttentionCase(20, 70, size, size), {}, 0, &worst);
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Attention, EveryMask) {
  double worst = 0;
  for (const auto& [queries, keys] : std::vector<std::pair<size_t, size_t>>{
           {1, 1}, {17, 17}, {65, 65}, {70, 40}, {40, 70}, {130, 130}, {6, 600}}) {
    const AttentionCase c(queries, keys, 10, 12);
    const Masks masks(queries, keys);
    for (const bool causal : {false, true}) {
      for (const bool blocked : {false, true}) {
        for (const bool additive : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << queries << " queries, " << keys << " keys, causal " << causal
                       << ", blocked " << blocked << ", additive " << additive);
          AttentionMask mask;
          mask.causal = causal;
          if (blocked) mask.blocked = masks.blocked();
          if (additive) mask.additive = masks.additive();
          CheckCase(c, mask, 0, &worst);
        }
      }
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Attention, ScaleAsGiven) {
  double worst = 0;
  for (const double scale : {1.0, 0.1, -0.5, 1e-30}) {
    SCOPED_TRACE(scale);
    CheckCase(AttentionCase(20, 30, 16, 16), {}, scale, &worst);
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

// Scores of hundreds and of almost nothing: the largest is taken off before any exponential.
TEST(Attention, LargeAndSmallScores) {
  double worst = 0;
  for (const float scale : {30.0f, 1e-20f}) {
    AttentionCase c(20, 600, 16, 16);
    for (float& v : c.q) v *= scale;
    CheckCase(c, {}, 0, &worst);
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

// Heads that lie side by side in rows, in and out, as [B, H, S, D]; and leading axes of stride 0.
TEST(Attention, LeadingAxesAndStrides) {
  const size_t batch = 2, heads = 3, queries = 10, keys = 21, size = 6;
  const auto side_by_side = [&](float* data, size_t rows) {
    const auto row = static_cast<ptrdiff_t>(heads * size);
    return MutableView(data, Shape(batch, heads, rows, size),
                       {static_cast<ptrdiff_t>(rows) * row, static_cast<ptrdiff_t>(size), row, 1});
  };
  std::vector<float> q = RandomFloats(batch * heads * queries * size, 1);
  std::vector<float> k = RandomFloats(batch * heads * keys * size, 2);
  std::vector<float> v = RandomFloats(batch * heads * keys * size, 3);
  const ConstView qs = side_by_side(q.data(), queries);
  const ConstView ks = side_by_side(k.data(), keys);
  const ConstView vs = side_by_side(v.data(), keys);
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    double worst = 0;
    for (const auto& [name, executor] : executors) {
      SCOPED_TRACE(name);
      std::vector<float> memory(batch * heads * queries * size, NAN);
      const MutableView out = side_by_side(memory.data(), queries);
      Guarded weights({batch, heads, queries, keys}, {2000, 650, 1, 11});  // columns contiguous
      AttentionOptions options;
      options.executor = executor;
      options.weights = weights.view();
      const Status status = Attention(qs, ks, vs, out, options);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_TRUE(weights.Intact());
      for (size_t b = 0; b < batch; ++b) {
        for (size_t h = 0; h < heads; ++h) {
          Matrix<Rounded> want_weights;
          const Matrix<Rounded> want = reference::Attention<Rounded>(
              Matrix<Rounded>(qs[b][h]), Matrix<Rounded>(ks[b][h]), Matrix<Rounded>(vs[b][h]),
              1 / std::sqrt(6.0), {}, {}, &want_weights);
          ASSERT_TRUE(NearRounded(Elements(out[b][h]), want, &worst)) << b << ", " << h;
          ASSERT_TRUE(NearRounded(Elements(weights.view()[b][h]), want_weights, &worst));
        }
      }
    }
    // One key and value head for all queries' heads, the queries backward in memory, the output
    // transposed.
    const ConstView one_k(k.data(), {heads, keys, size}, {0, 18, 1});
    const ConstView one_v(v.data(), {heads, keys, size}, {0, 1, 25});
    const ConstView backward(q.data() + 150, {heads, queries, size}, {6, -10, -1});
    Guarded out({heads, queries, size}, {200, 1, 13});
    ASSERT_TRUE(Attention(backward, one_k, one_v, out.view()).ok());
    ASSERT_TRUE(out.Intact());
    for (size_t h = 0; h < heads; ++h) {
      Matrix<Rounded> ignored;
      const Matrix<Rounded> want = reference::Attention<Rounded>(
          Matrix<Rounded>(backward[h]), Matrix<Rounded>(one_k[h]), Matrix<Rounded>(one_v[h]),
          1 / std::sqrt(6.0), {}, {}, &ignored);
      ASSERT_TRUE(NearRounded(Elements(out.view()[h]), want, &worst)) << h;
    }
  });
}

TEST(Attention, ErrorsNameTheView) {
  std::vector<float> memory(10000, 1.0f);
  std::vector<uint8_t> flags(10000, 0);
  const auto view = [&](const Shape& shape) { return ConstView(memory.data(), shape); };
  const Shape q{2, 3, 8}, k{2, 5, 8}, v{2, 5, 6};
  Guarded out({2, 3, 6});
  const auto call = [&](const Shape& qs, const Shape& ks, const Shape& vs,
                        const AttentionOptions& options = {}) {
    return Attention(view(qs), view(ks), view(vs), out.view(), options);
  };
  EXPECT_TRUE(FailsWith(call(Shape(8), k, v), {"q has shape [8]", "wanted"}));
  EXPECT_TRUE(FailsWith(call(q, Shape(8), v), {"k has shape [8]", "wanted"}));
  EXPECT_TRUE(FailsWith(call(q, k, Shape(8)), {"v has shape [8]", "wanted"}));
  EXPECT_TRUE(FailsWith(call(q, {2, 5, 7}, v), {"k has shape [2, 5, 7]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(FailsWith(call(q, {1, 5, 8}, v), {"k has shape [1, 5, 8]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(FailsWith(call(q, {5, 8}, v), {"k has shape [5, 8]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(FailsWith(call(q, k, {2, 4, 6}), {"v has shape [2, 4, 6]", "wanted [2, 5, 6]"}));
  EXPECT_TRUE(FailsWith(call(q, k, {2, 5, 7}), {"out has shape [2, 3, 6]", "wanted [2, 3, 7]"}));
  EXPECT_TRUE(FailsWith(call({2, 3, 0}, {2, 5, 0}, v), {"q has shape [2, 3, 0]", "head size"}));
  EXPECT_TRUE(FailsWith(call(q, k, v, {.scale = NAN}), {"scale is nan", "finite"}));
  EXPECT_TRUE(FailsWith(call(q, k, v, {.scale = INFINITY}), {"scale is inf", "finite"}));
  EXPECT_TRUE(FailsWith(call(q, k, v, {.weights = {memory.data(), {2, 3, 4}}}),
                        {"weights has shape [2, 3, 4]", "wanted [2, 3, 5]"}));
  EXPECT_TRUE(FailsWith(call(q, k, v, {.weights = {memory.data(), {2, 3, 5}, {0, 5, 1}}}),
                        {"weights is an output", "stride 0", "axis 0"}));
  AttentionOptions options;
  options.mask.additive = view({3, 4});
  EXPECT_TRUE(
      FailsWith(call(q, k, v, options), {"mask.additive has shape [3, 4]", "wanted [3, 5]"}));
  options.mask.additive = {};
  options.mask.blocked = {reinterpret_cast<const bool*>(flags.data()), {2, 3, 5}};
  EXPECT_TRUE(
      FailsWith(call(q, k, v, options), {"mask.blocked has shape [2, 3, 5]", "wanted [3, 5]"}));
  EXPECT_TRUE(FailsWith(Attention(view(q), view(k), view(v), {memory.data(), {2, 3, 6}, {0, 6, 1}}),
                        {"out is an output", "stride 0"}));
  EXPECT_TRUE(
      FailsWith(Attention({nullptr, q}, view(k), view(v), out.view()), {"q of shape", "no data"}));
  EXPECT_TRUE(
      FailsWith(Attention(view(q), {nullptr, k}, view(v), out.view()), {"k of shape", "no data"}));
  EXPECT_TRUE(
      FailsWith(Attention(view(q), view(k), {nullptr, v}, out.view()), {"v of shape", "no data"}));
  EXPECT_TRUE(FailsWith(Attention(view(q), view(k), view(v), {nullptr, {2, 3, 6}}),
                        {"out of shape", "no data"}));
  EXPECT_TRUE(FailsWith(call(q, k, v, {.scale = -0x1p128}), {"scale is -3.40282367e+38", "f32"}));
  const auto overlap = [&](const MutableView& to, const MutableView& weights) {
    return Attention(view(q), {memory.data() + 1000, k}, {memory.data() + 2000, v}, to,
                     {.weights = weights});
  };
  EXPECT_TRUE(FailsWith(overlap({memory.data() + 40, {2, 3, 6}}, {}), {"out", "memory with q"}));
  EXPECT_TRUE(FailsWith(overlap({memory.data() + 1000, {2, 3, 6}}, {}), {"out", "memory with k"}));
  EXPECT_TRUE(FailsWith(overlap({memory.data() + 1990, {2, 3, 6}}, {}), {"out", "memory with v"}));
  EXPECT_TRUE(FailsWith(overlap(out.view(), {memory.data(), {2, 3, 5}}), {"weights", "with q"}));
  EXPECT_TRUE(FailsWith(overlap(out.view(), {out.view().data(), {2, 3, 5}}), {"out", "weights"}));
  EXPECT_EQ(memory, std::vector<float>(10000, 1.0f));
  EXPECT_TRUE(out.Untouched());

  // Without elements to write there is nothing to do, however many heads there are.
  const size_t many = size_t{1} << 50;
  EXPECT_TRUE(Attention({memory.data(), {many, 1, 8}, {0, 0, 1}},
                        {memory.data(), {many, 1, 8}, {0, 0, 1}}, {nullptr, {many, 1, 0}},
                        {nullptr, {many, 1, 0}})
                  .ok());

  // Shapes that stand for more keys than memory can hold.
  Guarded small({1, 1});
  for (const size_t keys : {size_t{1} << 60, SIZE_MAX / 2, SIZE_MAX / 2 - 14}) {
    EXPECT_TRUE(FailsWith(Attention(view({1, 1}), {memory.data(), {keys, 1}, {0, 0}},
                                    {memory.data(), {keys, 1}, {0, 0}}, small.view()),
                          {"k"}, ErrorCode::kOutOfMemory));
    EXPECT_TRUE(Attention(view({1, 1}), {memory.data(), {keys, 1}, {0, 0}},
                          {memory.data(), {keys, 0}, {0, 0}}, {nullptr, {1, 0}})
                    .ok());  // nothing to write
  }
  for (const size_t keys : {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX - 14}) {
    EXPECT_TRUE(FailsWith(Attention(view({1, 1}), {memory.data(), {keys, 1}, {0, 0}},
                                    {memory.data(), {keys, 1}, {0, 0}}, small.view()),
                          {"k", "has the extent -"}));
  }

  // More heads than memory can hold, or than a size can count: q, k and v are one and the same row,
  // and of the outputs, which lie above them, nothing may be touched.
  for (const size_t heads : {size_t{1} << 56, size_t{1} << 57, size_t{1} << 58}) {
    const ConstView row(memory.data(), {heads, 1, 1}, {0, 0, 1});
    EXPECT_TRUE(FailsWith(Attention(row, row, row, {memory.data() + 1, {heads, 1, 1}}), {"k"},
                          ErrorCode::kOutOfMemory));
  }
  EXPECT_EQ(memory, std::vector<float>(10000, 1.0f));
  EXPECT_TRUE(small.Untouched());
}

// Values may have no columns where only the weights are wanted, and rows may go backwards: no
// pointer is made that lies outside of the memory.
TEST(Attention, WeightsWithoutValuesAndRowsBackwards) {
  constexpr size_t kRows = 70;
  std::vector<float> memory(2 * kRows * 8);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i % 17) / 17;
  const ConstView two(memory.data(), {2, kRows, 8});
  std::vector<float> weights(2 * kRows * kRows);
  std::vector<float> wanted(weights.size());
  std::vector<float> y(memory.size());
  const Status all = Attention(two, two, two, {y.data(), {2, kRows, 8}},
                               {.weights = {wanted.data(), {2, kRows, kRows}}});
  ASSERT_TRUE(all.ok()) << all;
  for (const ptrdiff_t step : {8, -8}) {
    const Shape none(2, kRows, 0);
    std::fill(weights.begin(), weights.end(), 0.0f);
    const Status status = Attention(two, two, {nullptr, none, {step * 70, step, 1}},
                                    {nullptr, none, {step * 70, step, 1}},
                                    {.weights = {weights.data(), {2, kRows, kRows}}});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(weights, wanted);
  }

  // All rows of all views reversed: the same numbers from the other end.
  const ConstView back(memory.data() + (kRows - 1) * 8, {kRows, 8}, {-8, 1});
  std::vector<float> copy(memory.size());
  for (size_t r = 0; r < kRows; ++r) {
    std::copy_n(&memory[(kRows - 1 - r) * 8], 8, &copy[r * 8]);
  }
  const ConstView same(copy.data(), {kRows, 8});
  std::vector<float> y_back(kRows * 8);
  std::vector<float> y_same(kRows * 8);
  ASSERT_TRUE(Attention(back, back, back, {&y_back[(kRows - 1) * 8], {kRows, 8}, {-8, 1}}).ok());
  ASSERT_TRUE(Attention(same, same, same, {y_same.data(), {kRows, 8}}).ok());
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < 8; ++c) ASSERT_EQ(y_back[(kRows - 1 - r) * 8 + c], y_same[r * 8 + c]);
  }
}

}  // namespace
}  // namespace encore
