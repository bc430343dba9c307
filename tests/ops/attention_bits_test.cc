// SPDX-License-Identifier: Apache-2.0
//
// What holds for attention to the bit, or up to rounding, whatever the right result is (that is in
// attention_test.cc): rows that see nothing, hidden keys, the order of keys, executors and targets.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
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

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> Attend(const AttentionCase& c, const AttentionMask& mask = {},
                          const Executor& executor = {}) {
  Guarded out({c.queries, c.value_size});
  AttentionOptions options;
  options.mask = mask;
  options.executor = executor;
  const Status status = Attention(c.q_view(), c.k_view(), c.v_view(), out.view(), options);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(out.Intact());
  return Elements(out.view());
}

// Zeros, whatever hides the keys and whatever lies in the values; other rows are not disturbed.
TEST(AttentionBits, ARowThatSeesNothingIsZeros) {
  const size_t s = 70;
  ForEachTarget([&](const std::string&) {
    for (const size_t keys : {s, size_t{600}}) {
      for (const float poison : {0.0f, NAN, kInf}) {
        AttentionCase c(s, keys, 8, 12);
        if (poison != 0) c.v[5 * 12 + 3] = poison;
        // A mask that hides nothing: with a matrix scores are rounded once more than without.
        const std::vector<float> zeros(s * keys, 0.0f);
        AttentionMask nothing;
        nothing.additive = {zeros.data(), {s, keys}};
        const std::vector<float> open = Attend(c, nothing);
        std::vector<uint8_t> flags(s * keys, 0);
        std::vector<float> add(s * keys, 0.0f);
        for (size_t j = 0; j < keys; ++j) {
          flags[3 * keys + j] = true;
          add[66 * keys + j] = -kInf;
          if (j % 2 == 0) {
            add[7 * keys + j] = -kInf;
          } else {
            flags[7 * keys + j] = true;
          }
        }
        AttentionMask mask;
        mask.blocked = {reinterpret_cast<const bool*>(flags.data()), {s, keys}};
        mask.additive = {add.data(), {s, keys}};
        const std::vector<float> got = Attend(c, mask);
        for (size_t i = 0; i < s; ++i) {
          const bool none = i == 3 || i == 66 || i == 7;
          for (size_t n = 0; n < 12; ++n) {
            const float value = got[i * 12 + n];
            if (none) {
              ASSERT_EQ(value, 0.0f) << i << ", " << n;
            } else {
              ASSERT_TRUE(SameBits({&value, 1}, {&open[i * 12 + n], 1})) << i << ", " << n;
            }
          }
        }
        Guarded weights({s, keys});
        std::vector<float> out(s * 12);
        ASSERT_TRUE(Attention(c.q_view(), c.k_view(), c.v_view(), {out.data(), {s, 12}},
                              {.mask = mask, .weights = weights.view()})
                        .ok());
        for (size_t j = 0; j < keys; ++j) ASSERT_EQ(weights.view()(66, j), 0.0f);
      }
    }
    // No keys at all.
    Guarded out({3, 4});
    std::vector<float> q(12, 1.0f);
    ASSERT_TRUE(
        Attention({q.data(), {3, 4}}, {nullptr, {0, 4}}, {nullptr, {0, 4}}, out.view()).ok());
    EXPECT_EQ(Elements(out.view()), std::vector<float>(12, 0.0f));
  });
}

// Blocked keys and those with -inf added are hidden alike, to the bit; `causal` hides the same
// ones, and differs by the rounding of scores alone (values and weights are at most 1).
TEST(AttentionBits, CausalIsTheTriangularMask) {
  for (const size_t s : {1, 17, 64, 65, 200, 600}) {
    const AttentionCase c(s, s, 9, 9);
    std::vector<uint8_t> flags(s * s);
    std::vector<float> add(s * s);
    for (size_t i = 0; i < s; ++i) {
      for (size_t j = 0; j < s; ++j) {
        flags[i * s + j] = j > i;
        add[i * s + j] = j > i ? -kInf : 0.0f;
      }
    }
    ForEachTarget([&](const std::string&) {
      AttentionMask causal, blocked, additive;
      causal.causal = true;
      blocked.blocked = {reinterpret_cast<const bool*>(flags.data()), {s, s}};
      additive.additive = {add.data(), {s, s}};
      const std::vector<float> want = Attend(c, causal);
      const std::vector<float> got = Attend(c, blocked);
      EXPECT_TRUE(SameBits(Attend(c, additive), got)) << s;
      EXPECT_TRUE(NearEach(
          got, [&](size_t i) { return want[i]; }, [](size_t) { return 0x1p-20; }))
          << s;
    });
  }
}

// A query does not notice later keys under a causal mask: those of a longer sequence change no bit,
// nor does NaN in them (where the value is finite, since 0 times NaN is NaN).
TEST(AttentionBits, HiddenKeysChangeNoBit) {
  ForEachTarget([](const std::string&) {
    AttentionCase c(40, 40, 8, 8);
    AttentionMask mask;
    mask.causal = true;
    const std::vector<float> want = Attend(c, mask);
    AttentionCase poisoned = c;
    for (size_t n = 0; n < 8; ++n) poisoned.k[25 * 8 + n] = n % 2 == 0 ? NAN : kInf;
    const std::vector<float> got = Attend(poisoned, mask);
    EXPECT_TRUE(SameBits({got.data(), 25 * 8}, {want.data(), 25 * 8}));
    for (size_t i = 25 * 8; i < got.size(); ++i) EXPECT_TRUE(std::isnan(got[i])) << i;

    // The same through a matrix.
    std::vector<uint8_t> flags(40 * 40, 0);
    for (size_t i = 0; i < 40; ++i) flags[i * 40 + 25] = 1;
    AttentionMask blocked;
    blocked.blocked = {reinterpret_cast<const bool*>(flags.data()), {40, 40}};
    EXPECT_TRUE(SameBits(Attend(poisoned, blocked), Attend(c, blocked)));

    // NaN in a query reaches its own row alone.
    AttentionCase one = c;
    one.q[7 * 8 + 2] = NAN;
    const std::vector<float> rows = Attend(one, mask);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i / 8 == 7) {
        EXPECT_TRUE(std::isnan(rows[i]));
      } else {
        EXPECT_TRUE(SameBits({&rows[i], 1}, {&want[i], 1})) << i;
      }
    }
  });
}

TEST(AttentionBits, PermutingKeysAndValuesChangesOnlyRounding) {
  double worst = 0;
  for (const size_t keys : {5, 64, 700}) {
    const AttentionCase c(10, keys, 8, 8);
    std::vector<size_t> order(keys);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = 0; i < keys; ++i) std::swap(order[i], order[i * 7919 % keys]);
    AttentionCase permuted = c;
    for (size_t j = 0; j < keys; ++j) {
      for (size_t n = 0; n < 8; ++n) {
        permuted.k[j * 8 + n] = c.k[order[j] * 8 + n];
        permuted.v[j * 8 + n] = c.v[order[j] * 8 + n];
      }
    }
    Matrix<Rounded> ignored;
    const Matrix<Rounded> bounds = reference::Attention<Rounded>(
        Matrix<Rounded>(c.q_view()), Matrix<Rounded>(c.k_view()), Matrix<Rounded>(c.v_view()),
        1 / std::sqrt(8.0), {}, {}, &ignored);
    ForEachTarget([&](const std::string&) {
      const std::vector<float> a = Attend(c);
      const std::vector<float> b = Attend(permuted);
      // Each lies within the bound of the same exact result.
      ASSERT_TRUE(NearEach(
          b, [&](size_t i) { return static_cast<double>(a[i]); },
          [&](size_t i) { return 2 * bounds.data[i].Bound(); }, &worst));
    });
  }
  std::printf("worst difference %.3f of the bound\n", worst);
}

// Executors, and targets with FMA, change no bit; nor do the other queries.
TEST(AttentionBits, TheSameBitsEverywhere) {
  const Executors executors;
  for (const std::array<size_t, 3>& sizes : std::vector<std::array<size_t, 3>>{
           {1, 1, 8}, {65, 65, 14}, {130, 513, 64}, {64, 1100, 80}, {512, 512, 32}}) {
    const size_t queries = sizes[0], keys = sizes[1], size = sizes[2];
    const AttentionCase c(queries, keys, size, size);
    const Masks masks(queries, keys);
    for (const bool masked : {false, true}) {
      AttentionMask mask;
      mask.causal = masked;
      if (masked) mask.additive = masks.additive();
      std::vector<float> want;
      ForEachTarget([&](const std::string& target) {
        if (!reference::TargetHasFma(target)) return;
        if (want.empty()) want = Attend(c, mask);
        for (const auto& [name, executor] : executors) {
          EXPECT_TRUE(SameBits(Attend(c, mask, executor), want))
              << name << ", " << queries << " queries, " << keys << " keys, size " << size;
        }
        if (masked) return;
        AttentionCase last = c;
        last.queries = 1;
        last.q.erase(last.q.begin(), last.q.end() - static_cast<ptrdiff_t>(size));
        EXPECT_TRUE(SameBits(Attend(last), {want.data() + (queries - 1) * size, size}));
      });
    }
  }
}

}  // namespace
}  // namespace encore
