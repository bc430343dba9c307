// SPDX-License-Identifier: Apache-2.0
//
// Attention in a sliding window and with a bias by distance, against the double-precision reference
// on every SIMD target, and what holds to the bit.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/attention.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using reference::ByDistance;
using reference::Matrix;
using reference::Rounded;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Biases of all distances in a sequence of so many, some of which hide their keys.
struct DistanceBias {
  explicit DistanceBias(size_t size) : zero(size), values(RandomFloats(2 * size + 1, 9)) {
    for (size_t i = 0; i < values.size(); i += 7) values[i] = -kInfinity;
    values[zero] = 0.5f;
  }
  const float* data() const { return values.data() + zero; }
  size_t zero;
  std::vector<float> values;
};

// The engine's attention of the active target, queries begin .. end in parts of `part`.
std::vector<float> AttendWindow(const AttentionCase& c, const AttentionMask& mask,
                                const ByDistance& distance, size_t part, MutableView weights = {},
                                const std::vector<size_t>& positions = {}) {
  const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
  const internal::PackedView key_panels = internal::KeyPanels(kernel, c.keys, c.head_size);
  const internal::PackedView value_panels = internal::ValuePanels(kernel, c.keys, c.value_size);
  internal::AlignedBuffer<std::byte> keys, values;
  internal::AlignedBuffer<float> scratch;
  EXPECT_TRUE(keys.Allocate(key_panels.packed_bytes()) &&
              values.Allocate(value_panels.packed_bytes()) &&
              scratch.Allocate(internal::AttentionScratchFloats(c.keys, c.value_size, true)));
  PackInto(key_panels, c.k.data(), 1, static_cast<ptrdiff_t>(c.head_size), keys.data());
  PackInto(value_panels, c.v.data(), static_cast<ptrdiff_t>(c.value_size), 1, values.data());
  Guarded out({c.queries, c.value_size});
  internal::AttentionHead head{};
  head.keys = key_panels;
  head.keys.data = keys.data();
  head.softmax = &internal::GetSoftmaxKernels();
  head.q = {c.q.data(), c.head_size};
  head.values = value_panels;
  head.values.data = values.data();
  head.out = {out.view().data(), c.value_size};
  head.weights = weights;
  head.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_size)));
  head.mask = mask;
  head.window = distance.window.value_or(internal::kNoWindow);
  head.distance_bias = distance.bias;
  if (!positions.empty()) head.query_positions = head.key_positions = positions.data();
  for (size_t begin = 0; begin < c.queries; begin += part) {
    internal::Attend(head, begin, std::min(c.queries, begin + part), scratch.data());
  }
  EXPECT_TRUE(out.Intact());
  return Elements(out.view());
}

struct Options {
  bool causal, blocked, additive, bias;
};

void CheckWindow(size_t queries, size_t keys, std::optional<size_t> window, const Options& options,
                 double* worst) {
  SCOPED_TRACE(testing::Message() << queries << " x " << keys << ", window " << window.value_or(0)
                                  << ", causal " << options.causal << ", blocked "
                                  << options.blocked << ", additive " << options.additive
                                  << ", bias " << options.bias);
  const AttentionCase c(queries, keys, 10, 12);
  const Masks masks(queries, keys);
  const DistanceBias bias(std::max(queries, keys));
  AttentionMask mask;
  mask.causal = options.causal;
  if (options.blocked) mask.blocked = masks.blocked();
  if (options.additive) mask.additive = masks.additive();
  const ByDistance distance{window, options.bias ? bias.data() : nullptr};
  // Keys that a bias of -inf hides are those that a mask with the same -inf hides.
  std::vector<float> hides(queries * keys, 0.0f);
  AttentionMask seen = mask;
  if (options.bias) {
    for (size_t i = 0; i < queries; ++i) {
      for (size_t j = 0; j < keys; ++j) {
        hides[i * keys + j] = options.additive ? mask.additive(i, j) : 0.0f;
        if (std::isinf(distance.Bias(i, j))) hides[i * keys + j] = -kInfinity;
      }
    }
    seen.additive = ConstView(hides.data(), {queries, keys});
  }
  const auto sees = [&](size_t i, size_t j) { return reference::Sees(seen, {}, i, j, distance); };
  Matrix<Rounded> want_weights;
  const Matrix<Rounded> want = reference::Attention<Rounded>(
      Matrix<Rounded>(c.q_view()), Matrix<Rounded>(c.k_view()), Matrix<Rounded>(c.v_view()),
      1 / std::sqrt(10.0), seen, {}, &want_weights, distance);
  std::vector<float> first;
  ForEachTarget([&](const std::string& target) {
    const std::vector<float> whole = AttendWindow(c, mask, distance, queries);
    ASSERT_TRUE(NearRounded(whole, want, worst));
    if (reference::TargetHasFma(target)) {
      if (first.empty()) first = whole;
      ASSERT_TRUE(SameBits(whole, first)) << target;
    }
    for (const size_t part : {1, 7, 64}) {
      if (queries > 200 && part == 1) continue;
      Guarded weights({queries, keys});
      ASSERT_TRUE(SameBits(AttendWindow(c, mask, distance, part, weights.view()), whole)) << part;
      ASSERT_TRUE(weights.Intact());
      ASSERT_TRUE(NearRounded(Elements(weights.view()), want_weights, worst));
      for (size_t i = 0; i < queries; ++i) {
        for (size_t j = 0; j < keys; ++j) {
          if (sees(i, j)) continue;
          ASSERT_EQ(weights.view()(i, j), 0.0f) << i << ", " << j;
        }
      }
    }
    if (options.bias) return;
    std::vector<float> out(queries * 12);
    ASSERT_TRUE(Attention(c.q_view(), c.k_view(), c.v_view(), {out.data(), {queries, 12}},
                          {.mask = mask, .window = window})
                    .ok());
    ASSERT_TRUE(SameBits(out, whole)) << "the public operation";
  });
}

TEST(AttentionWindow, EveryWindowAndMask) {
  double worst = 0;
  for (const auto& [queries, keys] : std::vector<std::pair<size_t, size_t>>{
           {1, 1}, {17, 17}, {65, 65}, {200, 200}, {300, 40}, {40, 300}, {150, 700}}) {
    if (kSanitized && queries * keys > 20'000) continue;  // the reference takes minutes
    for (const size_t window : {1, 15, 64, 100, 5000}) {
      for (const bool causal : {false, true}) {
        CheckWindow(queries, keys, window, {causal, false, false, false}, &worst);
        if (HasFatalFailure()) return;
        CheckWindow(queries, keys, window, {causal, false, true, false}, &worst);
        if (HasFatalFailure()) return;
      }
      CheckWindow(queries, keys, window, {false, true, true, true}, &worst);
      CheckWindow(queries, keys, window, {true, false, false, true}, &worst);
      if (HasFatalFailure()) return;
    }
  }
  if (kSanitized) return;
  CheckWindow(1300, 1300, 300, {false, false, false, false}, &worst);
  CheckWindow(1300, 1300, 600, {true, false, false, true}, &worst);
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(AttentionDistanceBias, AloneAndWithEveryMask) {
  double worst = 0;
  for (const auto& [queries, keys] : std::vector<std::pair<size_t, size_t>>{
           {1, 1}, {17, 17}, {65, 65}, {130, 130}, {70, 40}, {40, 70}, {6, 600}}) {
    for (const int masks : {0, 1, 2, 3, 4, 5, 6, 7}) {
      CheckWindow(queries, keys, {}, {(masks & 1) != 0, (masks & 2) != 0, (masks & 4) != 0, true},
                  &worst);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

// A bias gives the bits of the matrix that it stands for, and a window hides without a trace.
TEST(AttentionDistanceBias, IsItsMatrix) {
  const size_t s = 150;
  const AttentionCase c(s, s, 16, 16);
  const DistanceBias bias(s);
  std::vector<float> matrix(s * s);
  for (size_t i = 0; i < s; ++i) {
    for (size_t j = 0; j < s; ++j) matrix[i * s + j] = bias.values[bias.zero + j - i];
  }
  AttentionMask mask;
  mask.additive = ConstView(matrix.data(), {s, s});
  ForEachTarget([&](const std::string&) {
    for (const std::optional<size_t> window : {std::optional<size_t>{}, {20}, {64}}) {
      EXPECT_TRUE(SameBits(AttendWindow(c, {}, {window, bias.data()}, s),
                           AttendWindow(c, mask, {window, nullptr}, s)));
    }
    AttentionCase poisoned = c;
    for (size_t n = 0; n < 16; ++n) poisoned.k[10 * 16 + n] = NAN;
    const std::vector<float> want = AttendWindow(c, {}, {20, nullptr}, s);
    const std::vector<float> got = AttendWindow(poisoned, {}, {20, nullptr}, s);
    for (size_t i = 0; i < got.size(); ++i) {
      if (i / 16 <= 30) {
        ASSERT_TRUE(std::isnan(got[i])) << i;
      } else {
        ASSERT_EQ(got[i], want[i]) << i;
      }
    }
  });
}

// Whatever way the mask's matrices lie in memory and positions pick from them.
TEST(AttentionMasks, LayoutsAndPositionsChangeNoBit) {
  const size_t s = 130, all = 200;
  const AttentionCase c(s, s, 16, 16);
  const Masks masks(all, all);
  const DistanceBias bias(all);
  std::vector<size_t> consecutive(s), apart(s);
  for (size_t i = 0; i < s; ++i) {
    consecutive[i] = i + 31;
    apart[i] = i + i / 3;
  }
  for (const std::vector<size_t>& positions : {std::vector<size_t>{}, consecutive, apart}) {
    const auto at = [&](size_t i) { return positions.empty() ? i : positions[i]; };
    for (const bool blocks : {false, true}) {
      for (const float* add : {static_cast<const float*>(nullptr), bias.data()}) {
        // What all of it adds, as one dense matrix.
        std::vector<float> sums(s * s), transposed(all * all);
        std::vector<uint8_t> flags(all * all);
        for (size_t i = 0; i < all; ++i) {
          for (size_t j = 0; j < all; ++j) {
            transposed[j * all + i] = masks.additive()(i, j);
            flags[j * all + i] = masks.blocked()(i, j);
          }
        }
        for (size_t i = 0; i < s; ++i) {
          for (size_t j = 0; j < s; ++j) {
            float& sum = sums[i * s + j];
            sum = masks.additive()(at(i), at(j));
            if (add != nullptr) sum += bias.values[bias.zero + j - i];
            if (blocks && masks.blocked()(at(i), at(j))) sum = -kInfinity;
          }
        }
        AttentionMask dense, given, turned;
        dense.additive = ConstView(sums.data(), {s, s});
        given.additive = masks.additive();
        turned.additive = ConstView(transposed.data(), {all, all}, {1, all});
        if (blocks) {
          given.blocked = masks.blocked();
          turned.blocked = {reinterpret_cast<const bool*>(flags.data()), {all, all}, {1, all}};
        }
        ForEachTarget([&](const std::string&) {
          const std::vector<float> want = AttendWindow(c, dense, {}, s);
          EXPECT_TRUE(SameBits(AttendWindow(c, given, {{}, add}, s, {}, positions), want));
          EXPECT_TRUE(SameBits(AttendWindow(c, turned, {{}, add}, s, {}, positions), want));
        });
      }
    }
  }
}

TEST(AttentionWindow, RefusesAWindowOfNothing) {
  const AttentionCase c(3, 3, 4, 4);
  Guarded out({3, 4});
  EXPECT_TRUE(FailsWith(Attention(c.q_view(), c.k_view(), c.v_view(), out.view(), {.window = 0}),
                        {"window is 0"}));
  EXPECT_TRUE(out.Untouched());
}

}  // namespace
}  // namespace encore
