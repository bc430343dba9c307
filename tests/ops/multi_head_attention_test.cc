// SPDX-License-Identifier: Apache-2.0
//
// MultiHeadAttention against the double-precision reference, and its errors. Attention itself is in
// attention_test.cc.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "reference/multi_head_attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using reference::Matrix;
using reference::Rounded;

struct Projections {
  explicit Projections(size_t d)
      : in_weight(RandomFloats(3 * d * d, 11, 1 / std::sqrt(static_cast<float>(d)))),
        in_bias(RandomFloats(3 * d, 12, 0.1f)),
        out_weight(RandomFloats(d * d, 13, 1 / std::sqrt(static_cast<float>(d)))),
        out_bias(RandomFloats(d, 14, 0.1f)),
        width(d) {}
  MultiHeadAttentionWeights Weights(size_t heads, bool biases) const {
    MultiHeadAttentionWeights w;
    w.num_heads = heads;
    w.in_proj_weight = {in_weight.data(), {3 * width, width}};
    w.out_proj_weight = {out_weight.data(), {width, width}};
    if (biases) {
      w.in_proj_bias = {in_bias.data(), Shape(3 * width)};
      w.out_proj_bias = {out_bias.data(), Shape(width)};
    }
    return w;
  }
  std::vector<float> in_weight, in_bias, out_weight, out_bias;
  size_t width;
};

TEST(MultiHeadAttention, AgainstTheReference) {
  double worst = 0;
  const Executors executors;
  using Pairs = std::vector<std::pair<size_t, size_t>>;
  for (const auto& model : Pairs{{8, 1}, {28, 2}, {64, 4}}) {
    const size_t d = model.first, heads = model.second;
    const Projections projections(d);
    for (const auto& lengths : Pairs{{1, 1}, {10, 7}, {7, 20}, {66, 66}}) {
      const size_t queries = lengths.first, keys = lengths.second;
      if (kSlow && queries == 66 && heads == 4) continue;
      const std::vector<float> q = RandomFloats(2 * queries * d, 1);
      const std::vector<float> k = RandomFloats(2 * keys * d, 2);
      const std::vector<float> v = RandomFloats(2 * keys * d, 3);
      const Masks masks(queries, keys);
      for (const bool biases : {false, true}) {
        AttentionMask mask;
        mask.causal = biases;
        if (biases) mask.additive = masks.additive();
        const MultiHeadAttentionWeights w = projections.Weights(heads, biases);
        std::vector<Matrix<Rounded>> want(2);
        std::vector<std::vector<Matrix<Rounded>>> want_weights(2);
        const Shape q_shape(2, queries, d), k_shape(2, keys, d);
        for (size_t b = 0; b < 2; ++b) {
          const auto part = [&](const std::vector<float>& x, const Shape& shape) {
            return Matrix<Rounded>(ConstView(x.data(), shape)[b]);
          };
          want[b] = reference::MultiHeadAttention(
              part(q, q_shape), part(k, k_shape), part(v, k_shape), w,
              reference::DefaultScale(d / heads), mask, {}, &want_weights[b]);
        }
        ForEachTarget([&](const std::string& target) {
          for (const auto& [name, executor] : executors) {
            if (name != "inline" && target != SupportedTargets().front()) continue;
            SCOPED_TRACE(testing::Message() << name << ", d_model " << d << ", " << queries
                                            << " queries, " << keys << " keys");
            Guarded out(q_shape);
            Guarded weights({2, heads, queries, keys});
            AttentionOptions options;
            options.mask = mask;
            options.weights = weights.view();
            options.executor = executor;
            const Status status = MultiHeadAttention({q.data(), q_shape}, {k.data(), k_shape},
                                                     {v.data(), k_shape}, w, out.view(), options);
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_TRUE(out.Intact());
            ASSERT_TRUE(weights.Intact());
            for (size_t b = 0; b < 2; ++b) {
              ASSERT_TRUE(NearRounded(Elements(out.view()[b]), want[b], &worst));
              for (size_t h = 0; h < heads; ++h) {
                ASSERT_TRUE(
                    NearRounded(Elements(weights.view()[b][h]), want_weights[b][h], &worst));
              }
              // A sequence without a batch axis gives the same bits.
              Guarded single({queries, d}, {static_cast<ptrdiff_t>(d) + 3, 1});
              Guarded single_weights({heads, queries, keys});
              options.weights = single_weights.view();
              ASSERT_TRUE(MultiHeadAttention(
                              ConstView(q.data(), q_shape)[b], ConstView(k.data(), k_shape)[b],
                              ConstView(v.data(), k_shape)[b], w, single.view(), options)
                              .ok());
              ASSERT_TRUE(SameBits(Elements(single.view()), Elements(out.view()[b])));
              ASSERT_TRUE(
                  SameBits(Elements(single_weights.view()[0]), Elements(weights.view()[b][0])));
              ASSERT_TRUE(single.Intact());
              ASSERT_TRUE(single_weights.Intact());
            }
          }
        });
      }
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(MultiHeadAttention, InputsAndWeightsOfAnyStrides) {
  const size_t d = 12, s = 9;
  const Projections projections(d);
  const std::vector<float> x = RandomFloats(s * d, 1);
  std::vector<float> want(s * d);
  const MultiHeadAttentionWeights w = projections.Weights(3, true);
  const ConstView dense(x.data(), {s, d});
  ASSERT_TRUE(MultiHeadAttention(dense, dense, dense, w, {want.data(), {s, d}}).ok());

  const auto turned = [](ConstView m) {
    Guarded* copy = new Guarded({m.dim(0), m.dim(1)}, {1, static_cast<ptrdiff_t>(m.dim(0)) + 1});
    for (size_t i = 0; i < m.dim(0); ++i) {
      for (size_t j = 0; j < m.dim(1); ++j) copy->view()(i, j) = m(i, j);
    }
    return std::unique_ptr<Guarded>(copy);
  };
  const auto x_turned = turned(dense);
  const auto in_turned = turned(w.in_proj_weight);
  const auto out_turned = turned(w.out_proj_weight);
  MultiHeadAttentionWeights strided = w;
  strided.in_proj_weight = in_turned->view();
  strided.out_proj_weight = out_turned->view();
  Guarded y({s, d}, {1, 20});
  const ConstView xs = x_turned->view();
  ASSERT_TRUE(MultiHeadAttention(xs, xs, xs, strided, y.view()).ok());
  EXPECT_TRUE(y.Intact());
  EXPECT_TRUE(SameBits(Elements(y.view()), want));
}

// A batch whose sequences are evenly spaced goes through the projections as one matrix, any other
// sequence by sequence: the same bits, of every sequence.
TEST(MultiHeadAttention, BatchesOfAnyStrides) {
  const size_t batch = 3, s = 5, d = 8;
  const Projections projections(d);
  const MultiHeadAttentionWeights w = projections.Weights(2, true);
  const Shape shape(batch, s, d);
  const std::vector<float> x = RandomFloats(batch * s * d, 1);
  const ConstView dense(x.data(), shape);
  std::vector<float> want(x.size());
  const MutableView wanted(want.data(), shape);
  ASSERT_TRUE(MultiHeadAttention(dense, dense, dense, w, wanted).ok());
  for (const ptrdiff_t in_row : {8, 11}) {
    for (const ptrdiff_t in_gap : {0, 3}) {
      for (const ptrdiff_t out_row : {8, 9}) {
        for (const ptrdiff_t out_gap : {0, 7}) {
          SCOPED_TRACE(testing::Message() << "x: rows of " << in_row << " and a gap of " << in_gap
                                          << ", out: " << out_row << " and " << out_gap);
          Guarded in(shape, {5 * in_row + in_gap, in_row, 1});
          for (size_t b = 0; b < batch; ++b) {
            for (size_t i = 0; i < s; ++i) {
              for (size_t j = 0; j < d; ++j) in.view()(b, i, j) = dense(b, i, j);
            }
          }
          Guarded out(shape, {5 * out_row + out_gap, out_row, 1});
          const ConstView spaced = in.view();
          ASSERT_TRUE(MultiHeadAttention(spaced, spaced, spaced, w, out.view()).ok());
          EXPECT_TRUE(out.Intact());
          for (size_t b = 0; b < batch; ++b) {
            EXPECT_TRUE(SameBits(Elements(out.view()[b]), Elements(wanted[b])));
          }
        }
      }
    }
  }
}

TEST(MultiHeadAttention, ErrorsNameTheTensor) {
  const Projections p(8);
  const std::vector<float> x(1000, 1.0f);
  std::vector<float> memory(1000);
  Guarded out({2, 3, 8});
  struct Call {
    Shape query{2, 3, 8}, key{2, 5, 8}, value{2, 5, 8};
    MultiHeadAttentionWeights w;
    AttentionOptions options;
  };
  const auto fails = [&](const auto& change, const std::vector<std::string>& parts) {
    Call c;
    c.w = p.Weights(2, true);
    change(c);
    const testing::AssertionResult result =
        FailsWith(MultiHeadAttention({x.data(), c.query}, {x.data(), c.key}, {x.data(), c.value},
                                     c.w, out.view(), c.options),
                  parts);
    EXPECT_TRUE(out.Untouched()) << "an error, and yet the output was written";
    return result;
  };
  EXPECT_TRUE(fails([](Call& c) { c.query = Shape(8); }, {"query has shape [8]", "wanted"}));
  EXPECT_TRUE(fails(
      [](Call& c) {
        c.query = {1, 2, 3, 8};
      },
      {"query has shape [1, 2, 3, 8]", "wanted"}));
  EXPECT_TRUE(fails([](Call& c) { c.key = {5, 8}; }, {"key has shape [5, 8]", "rank 3"}));
  EXPECT_TRUE(fails(
      [](Call& c) {
        c.key = {2, 5, 7};
      },
      {"key has shape [2, 5, 7]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(fails(
      [](Call& c) {
        c.key = {1, 5, 8};
      },
      {"key has shape [1, 5, 8]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(fails(
      [](Call& c) {
        c.value = {2, 4, 8};
      },
      {"value has shape [2, 4, 8]", "wanted [2, 5, 8]"}));
  EXPECT_TRUE(fails(
      [](Call& c) {
        c.query = {2, 4, 8};
      },
      {"out has shape [2, 3, 8]", "wanted [2, 4, 8]"}));
  EXPECT_TRUE(fails([](Call& c) { c.w.num_heads = 0; }, {"num_heads is 0", "d_model 8"}));
  EXPECT_TRUE(fails([](Call& c) { c.w.num_heads = 3; }, {"num_heads is 3", "d_model 8"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.w.in_proj_weight = {x.data(), {8, 24}};
      },
      {"in_proj_weight has shape [8, 24]", "wanted [24, 8]"}));
  EXPECT_TRUE(
      fails([](Call& c) { c.w.in_proj_weight = {}; }, {"in_proj_weight", "wanted [24, 8]"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.w.out_proj_weight = {x.data(), {8, 7}};
      },
      {"out_proj_weight has shape [8, 7]", "wanted [8, 8]"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.w.in_proj_bias = {x.data(), Shape(8)};
      },
      {"in_proj_bias has shape [8]", "wanted [24]"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.w.out_proj_bias = {x.data(), Shape(24)};
      },
      {"out_proj_bias has shape [24]", "wanted [8]"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.options.weights = {memory.data(), {2, 3, 5}};
      },
      {"weights has shape [2, 3, 5]", "wanted [2, 2, 3, 5]"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.options.weights = {memory.data(), {2, 2, 3, 5}, {0, 0, 0, 0}};
      },
      {"weights is an output", "stride 0"}));
  EXPECT_TRUE(fails(
      [&](Call& c) {
        c.options.mask.additive = {x.data(), {5, 5}};
      },
      {"mask.additive has shape [5, 5]", "wanted [3, 5]"}));
  EXPECT_TRUE(fails([](Call& c) { c.options.scale = NAN; }, {"scale is nan"}));
}

TEST(MultiHeadAttention, NothingToDo) {
  const Projections p(8);
  const std::vector<float> x(1000, 1.0f);
  EXPECT_TRUE(MultiHeadAttention({nullptr, {0, 8}}, {x.data(), {5, 8}}, {x.data(), {5, 8}},
                                 p.Weights(2, true), {nullptr, {0, 8}})
                  .ok());
  EXPECT_TRUE(MultiHeadAttention({nullptr, {0, 3, 8}}, {nullptr, {0, 5, 8}}, {nullptr, {0, 5, 8}},
                                 p.Weights(2, true), {nullptr, {0, 3, 8}})
                  .ok());
  // No keys: the context is zeros, and the output projection's bias is left.
  Guarded out({3, 8});
  ASSERT_TRUE(MultiHeadAttention({x.data(), {3, 8}}, {nullptr, {0, 8}}, {nullptr, {0, 8}},
                                 p.Weights(2, true), out.view())
                  .ok());
  for (size_t i = 0; i < 3; ++i) {
    for (size_t c = 0; c < 8; ++c) EXPECT_EQ(out.view()(i, c), p.out_bias[c]);
  }
}

}  // namespace
}  // namespace encore
