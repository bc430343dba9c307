// SPDX-License-Identifier: Apache-2.0
//
// The a-priori bounds that encore/ops.h documents, held against what every SIMD target computes, on
// drawn inputs and on hard ones: sums that cancel, rows with a large mean or a single value, one
// huge score, hidden keys. Prints the largest error of each.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "reference/bounded.h"
#include "reference/multi_head_attention.h"
#include "tests/support/compare.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using reference::Bounded;

constexpr float kNoBound = std::numeric_limits<float>::infinity();

// Holds what compute() gives on each target within the bound of every element.
void Hold(const std::string& name, const Bounded& wanted,
          const std::function<void(MutableView)>& compute) {
  const Shape shape(wanted.value.rows, wanted.value.cols);
  for (const double error : wanted.error.data) {
    ASSERT_TRUE(std::isfinite(error)) << name << ": a bound that allows anything";
  }
  ForEachTarget([&](const std::string& target) {
    std::vector<float> got(wanted.value.data.size(), NAN);
    compute(MutableView(got.data(), shape));
    double worst = 0;
    EXPECT_TRUE(Near(got, wanted.value.data, wanted.error.data, &worst)) << name;
    double largest = 0;
    double allowed = 0;
    double size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double value = wanted.value.data[i];
      largest = std::max(largest, std::fabs(static_cast<double>(got[i]) - value));
      allowed = std::max(allowed, wanted.error.data[i]);
      size = std::max(size, std::fabs(value));
    }
    std::printf("%-40s %-10s values to %.1e, errors to %.1e, bounds to %.1e, at most %.2g of it\n",
                name.c_str(), target.c_str(), size, largest, allowed, worst);
  });
}

void CheckBound(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

TEST(ErrorBounds, MatMul) {
  const size_t m = 13, n = 50;
  for (const size_t k : {1, 16, 384, 3072}) {
    for (const bool cancels : {false, true}) {
      std::vector<float> a = RandomFloats(m * k, 1);
      std::vector<float> b = RandomFloats(k * n, 2);
      if (cancels) {
        // The second half of each sum takes the first off again.
        for (size_t i = 0; i < m; ++i) {
          for (size_t l = k / 2; l < k; ++l) a[i * k + l] = -a[i * k + l - k / 2];
        }
        for (size_t l = k / 2; l < k; ++l) {
          for (size_t j = 0; j < n; ++j) b[l * n + j] = b[(l - k / 2) * n + j];
        }
      }
      const std::vector<float> bias = RandomFloats(n, 3);
      const ConstView av(a.data(), {m, k}), bv(b.data(), {k, n}), biasv(bias.data(), {n});
      Hold("matmul, K = " + std::to_string(k) + (cancels ? ", cancelling" : ""),
           reference::BoundedMatMul(av, bv, biasv),
           [&](MutableView y) { CheckBound(MatMul(av, bv, y, {.bias = biasv})); });
    }
  }
}

TEST(ErrorBounds, Softmax) {
  const size_t rows = 9, cols = 1003;
  const std::vector<float> drawn = RandomFloats(rows * cols, 4, 5);
  const auto hold = [&](const std::string& name, const std::vector<float>& x) {
    const ConstView view(x.data(), {rows, x.size() / rows});
    Hold("softmax, " + name, reference::BoundedSoftmax(view),
         [&](MutableView y) { CheckBound(Softmax(view, y)); });
  };
  hold("drawn", drawn);
  std::vector<float> x = drawn;
  for (float& v : x) v *= 10;  // most weights vanish
  hold("far apart", x);
  x = drawn;
  for (size_t r = 0; r < rows; ++r) x[r * cols + 100 * r] = r % 2 == 0 ? 3e38f : 90.0f;
  hold("one huge score", x);
  x = drawn;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 3 != 0 || i < 2 * cols) x[i] = -kNoBound;  // the first two rows altogether
  }
  hold("scores of -inf", x);
  hold("equal scores", std::vector<float>(rows * cols, -7.3f));
  hold("long rows", RandomFloats(rows * 20011, 5, 3, 100));
}

TEST(ErrorBounds, LayerNorm) {
  const size_t rows = 9, cols = 771;
  const std::vector<float> weight = RandomFloats(cols, 6, 0.3f, 1);
  const std::vector<float> bias = RandomFloats(cols, 7);
  const ConstView w(weight.data(), {cols}), b(bias.data(), {cols});
  const auto hold = [&](const std::string& name, const std::vector<float>& x) {
    const ConstView view(x.data(), {rows, cols});
    Hold("layer_norm, " + name, reference::BoundedLayerNorm(view, w, b, 1e-5),
         [&](MutableView y) { CheckBound(LayerNorm(view, w, b, 1e-5, y)); });
  };
  hold("drawn", RandomFloats(rows * cols, 8));
  hold("a mean of 100", RandomFloats(rows * cols, 9, 1, 100));
  hold("a mean of 10000", RandomFloats(rows * cols, 10, 1, 10000));
  hold("constant rows", std::vector<float>(rows * cols, 0.3f));
  hold("constant rows of 1e6", std::vector<float>(rows * cols, 1e6f / 3));
  hold("a variance below epsilon", RandomFloats(rows * cols, 11, 1e-5f));
  std::vector<float> x = RandomFloats(rows * cols, 12);
  for (size_t r = 0; r < rows; ++r) x[r * cols + 80 * r] = 1e4f;
  hold("one large element", x);
}

TEST(ErrorBounds, RmsNorm) {
  const size_t rows = 9;
  const auto hold = [&](const std::string& name, size_t cols, const std::vector<float>& x,
                        double epsilon) {
    const std::vector<float> weight = RandomFloats(cols, 6, 0.3f, 1);
    const ConstView view(x.data(), {rows, cols}), w(weight.data(), {cols});
    Hold("rms_norm, " + name, reference::BoundedRmsNorm(view, w, epsilon),
         [&](MutableView y) { CheckBound(RmsNorm(view, w, epsilon, y)); });
  };
  hold("drawn", 771, RandomFloats(rows * 771, 8), 1e-6);
  hold("heads", 64, RandomFloats(rows * 64, 13), 1e-6);
  hold("long rows", 20011, RandomFloats(rows * 20011, 14), 1e-6);
  hold("equal elements", 4099, std::vector<float>(rows * 4099, 0.3f), 0);
  hold("zeros", 771, std::vector<float>(rows * 771, 0.0f), 1e-6);
  hold("squares below epsilon", 771, RandomFloats(rows * 771, 11, 1e-5f), 1e-5);
  hold("squares that vanish beside epsilon", 771, RandomFloats(rows * 771, 11, 1e-30f), 1e-5);
  hold("subnormals", 771, RandomFloats(rows * 771, 11, 1e-40f), 1e-5);
  std::vector<float> x = RandomFloats(rows * 771, 12);
  for (size_t r = 0; r < rows; ++r) x[r * 771 + 80 * r] = 1e4f;
  hold("one large element", 771, x, 1e-6);
}

TEST(ErrorBounds, Attention) {
  struct Case {
    const char* name;
    size_t queries, keys, size;
    float scale;  // of q
    bool causal;
    bool additive;
  };
  for (const Case& c :
       {Case{"drawn", 70, 70, 64, 1, false, false}, Case{"causal", 90, 90, 32, 1, true, false},
        Case{"several tiles of keys", 12, 1700, 40, 1.5f, false, false},
        Case{"large scores", 33, 300, 64, 6, false, false},
        Case{"masked", 65, 600, 24, 1, false, true}}) {
    const std::vector<float> q = RandomFloats(c.queries * c.size, 13, c.scale);
    const std::vector<float> k = RandomFloats(c.keys * c.size, 14);
    const std::vector<float> v = RandomFloats(c.keys * c.size, 15);
    std::vector<float> additive = RandomFloats(c.queries * c.keys, 16, 2);
    for (size_t i = 0; i < additive.size(); ++i) {
      if (i % 5 == 1 || i < c.keys) additive[i] = -kNoBound;  // the first query sees no key
    }
    AttentionMask mask{.causal = c.causal};
    if (c.additive) mask.additive = ConstView(additive.data(), {c.queries, c.keys});
    const ConstView qv(q.data(), {c.queries, c.size}), kv(k.data(), {c.keys, c.size}),
        vv(v.data(), {c.keys, c.size});
    Bounded weights(0, 0);
    const Bounded wanted =
        reference::BoundedAttention(qv, kv, vv, reference::DefaultScale(c.size), mask, &weights);
    Hold(std::string("attention, ") + c.name, wanted,
         [&](MutableView y) { CheckBound(Attention(qv, kv, vv, y, {.mask = mask})); });
    std::vector<float> y(c.queries * c.size);
    Hold(std::string("attention weights, ") + c.name, weights, [&](MutableView tap) {
      CheckBound(
          Attention(qv, kv, vv, {y.data(), {c.queries, c.size}}, {.mask = mask, .weights = tap}));
    });
  }
}

}  // namespace
}  // namespace encore
