// SPDX-License-Identifier: Apache-2.0
//
// The search for a group's scale and the packing of its integers, of every SIMD target.

#if defined(ENCORE_ENGINE_KERNELS_INT4_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_INT4_GROUPS_INL_H_
#undef ENCORE_ENGINE_KERNELS_INT4_GROUPS_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_INT4_GROUPS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/base/bf16.h"
#include "engine/kernels/dispatch.h"
#include "engine/kernels/int4_groups.h"
#include "engine/kernels/round_magic.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Sums over a group are in eight lanes on every target: one vector, or more.
constexpr size_t kSumLanes = 8;
using TagGroup = hn::CappedTag<float, kSumLanes>;
using VecGroup = hn::Vec<TagGroup>;
constexpr size_t kGroupLanes = hn::MaxLanes(TagGroup());
constexpr size_t kGroupVectors = kInt4Group / kGroupLanes;
constexpr size_t kSumVectors = kSumLanes / kGroupLanes;

constexpr float kLeastWeight = 0x1p-100f;
// Scales that are tried: the extreme at -7, -7.25 ... -8.75 steps.
constexpr size_t kTries = 8;

HWY_INLINE float SumOfLanes(const VecGroup (&sums)[kSumVectors]) {
  alignas(64) float lanes[kSumLanes];
  for (size_t v = 0; v < kSumVectors; ++v) hn::Store(sums[v], TagGroup(), lanes + v * kGroupLanes);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// round(w * inverse), -8 .. 7.
HWY_INLINE VecGroup RoundToNibble(VecGroup w, VecGroup inverse) {
  const TagGroup d;
  const VecGroup magic = hn::Set(d, kRoundMagic);
  const VecGroup scaled =
      hn::Min(hn::Max(hn::Mul(w, inverse), hn::Set(d, -8.0f)), hn::Set(d, 7.0f));
  return hn::Sub(hn::Add(scaled, magic), magic);
}

// The number of the largest magnitude, the first of equal ones.
HWY_INLINE float ExtremeOf(const float* w) {
  const TagGroup d;
  VecGroup largest = hn::Zero(d);
  for (size_t i = 0; i < kInt4Group; i += kGroupLanes) {
    largest = hn::Max(largest, hn::Abs(hn::LoadU(d, w + i)));
  }
  largest = hn::MaxOfLanes(d, largest);
  for (size_t i = 0; i < kInt4Group; i += kGroupLanes) {
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(hn::Abs(hn::LoadU(d, w + i)), largest));
    if (at >= 0) return w[i + static_cast<size_t>(at)];
  }
  return 0;
}

Int4Group QuantizeInt4Group(const float* w) {
  const TagGroup d;
  Int4Group group{};
  VecGroup not_finite = hn::Zero(d);
  for (size_t i = 0; i < kInt4Group; i += kGroupLanes) {
    not_finite = hn::Add(not_finite, hn::Mul(hn::LoadU(d, w + i), hn::Zero(d)));
  }
  group.scale = hn::ReduceSum(d, not_finite);
  if (std::isnan(group.scale)) return group;
  const float extreme = ExtremeOf(w);
  if (std::fabs(extreme) < kLeastWeight) return group;

  // In units of the extreme, so that squares neither overflow nor underflow.
  VecGroup unit[kGroupVectors];
  for (size_t v = 0; v < kGroupVectors; ++v) {
    unit[v] = hn::Div(hn::LoadU(d, w + v * kGroupLanes), hn::Set(d, extreme));
  }
  alignas(64) float product[kTries];
  alignas(64) float square[kTries];
  for (size_t t = 0; t < kTries; ++t) {
    const VecGroup inverse = hn::Set(d, -7.0f - 0.25f * static_cast<float>(t));
    VecGroup products[kSumVectors];
    VecGroup squares[kSumVectors];
    for (size_t v = 0; v < kSumVectors; ++v) products[v] = squares[v] = hn::Zero(d);
    ENCORE_UNROLL
    for (size_t v = 0; v < kGroupVectors; ++v) {
      const VecGroup q = RoundToNibble(unit[v], inverse);
      VecGroup& of_products = products[v % kSumVectors];
      VecGroup& of_squares = squares[v % kSumVectors];
      of_products = hn::Add(of_products, hn::Mul(unit[v], q));
      of_squares = hn::Add(of_squares, hn::Mul(q, q));
    }
    product[t] = SumOfLanes(products);
    square[t] = SumOfLanes(squares);
  }
  // A try's squared error, with its best scale, is the sum of w * w minus its gain: the largest
  // gain has the least error.
  float gain[kTries];
  for (size_t t = 0; t < kTries; ++t) gain[t] = product[t] * product[t] / square[t];
  size_t best = 0;
  for (size_t t = 1; t < kTries; ++t) {
    if (gain[t] > gain[best]) best = t;
  }
  group.scale = Bf16ToF32(F32ToBf16(product[best] / square[best] * extreme));
  const hn::Rebind<int32_t, TagGroup> d32;
  const hn::Rebind<int8_t, TagGroup> d8;
  const VecGroup inverse = hn::Set(d, 1.0f / group.scale);
  for (size_t i = 0; i < kInt4Group; i += kGroupLanes) {
    const VecGroup q = RoundToNibble(hn::LoadU(d, w + i), inverse);
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(d32, q)), d8, group.q.data() + i);
  }
  return group;
}

bool PackInt4Group(const float* in, size_t rows, size_t nr, std::byte* out, float* sums) {
  constexpr uint32_t kOffset = 0x08080808u;
  constexpr uint32_t kNibbles = 0x0F0F0F0Fu;
  std::memset(out, 0, nr * kInt4GroupBytes);
  for (size_t r = 0; r < rows; ++r) {
    const Int4Group group = QuantizeInt4Group(in + r * kInt4Group);
    if (std::isnan(group.scale)) return false;
    int sum = 0;
    for (const int8_t q : group.q) sum += q;
    sums[r] += group.scale * static_cast<float>(sum);
    for (size_t s = 0; s < 4; ++s) {
      uint32_t low, high;  // of q + 8, a byte each
      std::memcpy(&low, group.q.data() + 8 * s, sizeof low);
      std::memcpy(&high, group.q.data() + 8 * s + 4, sizeof high);
      low = (low ^ kOffset) & kNibbles;
      high = (high ^ kOffset) & kNibbles;
      const uint32_t both = low | high << 4;
      std::memcpy(out + (s * nr + r) * sizeof both, &both, sizeof both);
    }
    const uint16_t scale = F32ToBf16(group.scale);
    std::memcpy(out + kInt4Group / 2 * nr + r * sizeof scale, &scale, sizeof scale);
  }
  return true;
}

constexpr Int4Kernels kInt4Kernels = {.quantize = &QuantizeInt4Group, .pack = &PackInt4Group};

const Int4Kernels* TargetInt4Kernels() { return &kInt4Kernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetInt4Kernels);

const Int4Kernels& GetInt4Kernels() { return *ENCORE_DISPATCH(TargetInt4Kernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
