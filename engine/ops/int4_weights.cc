// SPDX-License-Identifier: Apache-2.0
//
// The search for a group's scale, in f32 steps that are the same on every machine.

#include "engine/ops/int4_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/bf16.h"
#include "engine/base/strict_math.h"
#include "engine/kernels/round_magic.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr float kLeastWeight = 0x1p-100f;
// Sums over a group in so many lanes, which the compiler makes vectors of.
constexpr size_t kSumLanes = 8;

float SumOf(const float (&lanes)[kSumLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// round(w * inverse), -8 .. 7.
void Round(const float* w, float inverse, float* q) {
  for (size_t i = 0; i < kInt4Group; ++i) {
    const float scaled = std::min(std::max(w[i] * inverse, -8.0f), 7.0f);
    q[i] = (scaled + kRoundMagic) - kRoundMagic;
  }
}

}  // namespace

Int4Group QuantizeInt4Group(const float* w) {
  Int4Group group{};
  float extreme = 0;  // the number of the largest magnitude
  float not_finite = 0;
  for (size_t i = 0; i < kInt4Group; ++i) {
    if (std::fabs(w[i]) > std::fabs(extreme)) extreme = w[i];
    not_finite += w[i] * 0.0f;
  }
  group.scale = not_finite;
  if (!(std::fabs(extreme) >= kLeastWeight) || !std::isfinite(not_finite)) return group;
  // In units of the extreme, so that squares neither overflow nor underflow.
  float unit[kInt4Group];
  for (size_t i = 0; i < kInt4Group; ++i) unit[i] = w[i] / extreme;
  float best = 0;
  float best_scale = 1;
  float q[kInt4Group];
  for (int step = 0; step < 8; ++step) {
    Round(unit, -7.0f - 0.25f * static_cast<float>(step), q);
    float products[kSumLanes] = {};
    float squares[kSumLanes] = {};
    for (size_t i = 0; i < kInt4Group; i += kSumLanes) {
      for (size_t lane = 0; lane < kSumLanes; ++lane) {
        products[lane] += unit[i + lane] * q[i + lane];
        squares[lane] += q[i + lane] * q[i + lane];
      }
    }
    // The error is what is left of the squares of w: the more this is, the less is left.
    const float product = SumOf(products);
    const float square = SumOf(squares);
    const float gain = product * product / square;
    if (gain > best) {
      best = gain;
      best_scale = product / square;
    }
  }
  group.scale = Bf16ToF32(F32ToBf16(best_scale * extreme));
  Round(w, 1.0f / group.scale, q);
  for (size_t i = 0; i < kInt4Group; ++i) group.q[i] = static_cast<int8_t>(q[i]);
  return group;
}

bool PackInt4Group(const float* in, size_t ld_in, size_t rows, size_t count, size_t nr,
                   std::byte* out, float* sums) {
  std::memset(out, 0, nr * kInt4GroupBytes);
  for (size_t r = 0; r < rows; ++r) {
    float w[kInt4Group] = {};
    std::copy_n(in + r * ld_in, count, w);
    const Int4Group group = QuantizeInt4Group(w);
    if (!std::isfinite(group.scale)) return false;
    int sum = 0;
    for (const int8_t q : group.q) sum += q;
    sums[r] += group.scale * static_cast<float>(sum);
    for (size_t s = 0; s < 4; ++s) {
      for (size_t i = 0; i < 4; ++i) {
        const int low = group.q[8 * s + i] + 8;
        const int high = group.q[8 * s + 4 + i] + 8;
        out[(s * nr + r) * 4 + i] = static_cast<std::byte>(low | high << 4);
      }
    }
    const uint16_t scale = F32ToBf16(group.scale);
    std::memcpy(out + kInt4Group / 2 * nr + r * sizeof scale, &scale, sizeof scale);
  }
  return true;
}

}  // namespace encore::internal
