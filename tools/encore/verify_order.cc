// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: the orders of operations that the contract fixes, each against the same order in
// plain scalar code, to the bit; and the published hashes. Targets without FMA have no part in it.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {
namespace {

void CompareFloats(Finding& finding, float found, float wanted, const std::string& where) {
  const bool same = std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(wanted);
  char text[96] = "";
  if (!same) {
    std::snprintf(text, sizeof(text), ": found %.9g, wanted %.9g", static_cast<double>(found),
                  static_cast<double>(wanted));
  }
  finding.Compare(same, where + text);
}

// The sum in 16 virtual lanes: element i in virtual lane i mod 16, then the tree l + 8, l + 4, l +
// 2, l + 1.
float SumIn16Lanes(const std::vector<float>& x) {
  float lanes[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] += x[i];
  for (size_t half = 8; half != 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// c[m, n] = fma(a[m, K - 1], b[K - 1, n], ... fma(a[m, 0], b[0, n], bias[n])).
void CheckProducts(const VerifyContext& context, const std::string& target) {
  Finding& finding = context.report.Bits("products are one chain of FMAs", target);
  for (const size_t k_size : {1, 2, 7, 64, 333, 2501}) {
    const size_t m_size = 19;
    const size_t n_size = k_size > 1000 ? 33 : 117;
    const std::vector<float> a = RandomFloats(m_size * k_size, 21);
    const std::vector<float> b = RandomFloats(k_size * n_size, 22);
    const std::vector<float> bias = RandomFloats(n_size, 23);
    std::vector<float> c(m_size * n_size);
    Check(MatMul({a.data(), {m_size, k_size}}, {b.data(), {k_size, n_size}},
                 {c.data(), {m_size, n_size}}, {.bias = ConstView(bias.data(), {n_size})}));
    for (size_t m = 0; m < m_size; ++m) {
      for (size_t n = 0; n < n_size; ++n) {
        float sum = bias[n];
        for (size_t k = 0; k < k_size; ++k) {
          sum = std::fma(a[m * k_size + k], b[k * n_size + n], sum);
        }
        CompareFloats(finding, c[m * n_size + n], sum,
                      "element " + std::to_string(m) + ", " + std::to_string(n) +
                          " of a product with K = " + std::to_string(k_size));
      }
    }
  }
}

// Kernels may take rows singly or several at a time: so many in a call have both.
constexpr size_t kRowsInCall = 7;

// Beside a 0, scores of about -18 have exponentials too small to change the sum 1 of a row of two,
// so such rows give them as they are. In a longer row the score 0 gives 1 / sum, with a sum to
// which each order gives other bits.
void CheckSoftmaxSums(const VerifyContext& context, const std::string& target) {
  Finding& finding = context.report.Bits("softmax sums in 16 virtual lanes", target);
  for (size_t call = 0; call < 12; ++call) {
    const size_t n = 100 + 411 * call;
    const size_t count = kRowsInCall * n;
    std::vector<float> scores = RandomFloats(count, static_cast<uint32_t>(30 + call), 0.2f, -18.2f);
    std::vector<float> pairs(2 * count, 0.0f);
    for (size_t i = 0; i < count; ++i) pairs[2 * i + 1] = scores[i];
    Check(Softmax({pairs.data(), {count, 2}}, {pairs.data(), {count, 2}}));
    const auto top = [n](size_t row) { return (row * 29 + 3) % n; };
    for (size_t row = 0; row < kRowsInCall; ++row) scores[row * n + top(row)] = 0;
    Check(Softmax({scores.data(), {kRowsInCall, n}}, {scores.data(), {kRowsInCall, n}}));
    for (size_t row = 0; row < kRowsInCall; ++row) {
      std::vector<float> exponentials(n);
      for (size_t i = 0; i < n; ++i) exponentials[i] = pairs[2 * (row * n + i) + 1];
      exponentials[top(row)] = 1;
      CompareFloats(finding, scores[row * n + top(row)], 1.0f / SumIn16Lanes(exponentials),
                    "1 / sum of a softmax over " + std::to_string(n));
    }
  }
}

// The squares of x in the same 16 virtual lanes, each one chain of FMAs.
float SquaresIn16Lanes(const std::vector<float>& x) {
  std::vector<float> lanes(16, 0.0f);
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  return SumIn16Lanes(lanes);
}

// A row centred around a first mean, and then around the mean of what that leaves.
std::vector<float> NormInOrder(std::vector<float> x, float epsilon) {
  const float share = 1.0f / static_cast<float>(x.size());
  const auto subtract = [&x](float shift) {
    std::vector<float> y = x;
    for (float& v : y) v -= shift;
    return y;
  };
  const float near = std::fma(SumIn16Lanes(subtract(x[0])), share, x[0]);
  x = subtract(near);
  const float sum = SumIn16Lanes(x);
  const float rest = sum * share;
  const float squares = std::fma(-sum, rest, SquaresIn16Lanes(x));
  const float scale = 1.0f / std::sqrt(std::fma(squares, share, epsilon));
  for (float& v : x) v = (v - rest) * scale;
  return x;
}

void CheckLayerNormSums(const VerifyContext& context, const std::string& target) {
  Finding& finding = context.report.Bits("layer_norm sums in 16 virtual lanes", target);
  for (const size_t n : {16, 33, 64, 256, 771, 4096}) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
      const std::vector<float> x = RandomFloats(kRowsInCall * n, 40 + seed, 10, 1);
      std::vector<float> y(x.size());
      const Shape shape(kRowsInCall, n);
      Check(LayerNorm({x.data(), shape}, {}, {}, 0.5, {y.data(), shape}));
      for (size_t row = 0; row < kRowsInCall; ++row) {
        const auto begin = x.begin() + static_cast<ptrdiff_t>(row * n);
        const std::vector<float> wanted =
            NormInOrder({begin, begin + static_cast<ptrdiff_t>(n)}, 0.5f);
        for (size_t i = 0; i < n; ++i) {
          CompareFloats(finding, y[row * n + i], wanted[i],
                        "element " + std::to_string(i) + " of a row of " + std::to_string(n));
        }
      }
    }
  }
}

}  // namespace

void VerifyOrder(const VerifyContext& context) {
  ForEachVerifyTarget(context, [&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    CheckProducts(context, target);
    CheckSoftmaxSums(context, target);
    CheckLayerNormSums(context, target);
  });
}

void VerifyPublished(const VerifyContext& context) {
  ForEachVerifyTarget(context, [&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
      const uint64_t hash = reference::ComputeGoldenHash(golden.name);
      char detail[80];
      std::snprintf(detail, sizeof(detail), "found %016llx, wanted %016llx",
                    static_cast<unsigned long long>(hash),
                    static_cast<unsigned long long>(golden.hash));
      context.report.Add({.section = VerifySection::kPublished,
                          .check = std::string(golden.name),
                          .target = target,
                          .kept = hash == golden.hash,
                          .hash = hash,
                          .detail = hash == golden.hash ? "" : detail});
    }
  });
}

}  // namespace encore::tool
