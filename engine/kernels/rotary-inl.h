// SPDX-License-Identifier: Apache-2.0
//
// The rotary kernels of every SIMD target. Each step is one multiplication, addition or
// subtraction, so elements past the last whole vector are done one by one in plain C++ with the
// same bits.

#if defined(ENCORE_ENGINE_KERNELS_ROTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_ROTARY_INL_H_
#undef ENCORE_ENGINE_KERNELS_ROTARY_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_ROTARY_INL_H_
#endif

#include <cstddef>

#include "engine/kernels/dispatch.h"
#include "engine/kernels/rotary.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using TagWide = hn::CappedTag<float, 16>;
using TagNarrow = hn::CappedTag<float, 4>;  // for heads of few pairs

// (a, b) turned by an angle.
template <class V>
HWY_INLINE void Turn(V& a, V& b, V cos, V sin) {
  const V turned = hn::Sub(hn::Mul(a, cos), hn::Mul(b, sin));
  b = hn::Add(hn::Mul(b, cos), hn::Mul(a, sin));
  a = turned;
}

HWY_INLINE void Turn(float& a, float& b, float cos, float sin) {
  const float turned = a * cos - b * sin;
  b = b * cos + a * sin;
  a = turned;
}

// Pairs [i, pairs) of a row, as far as whole vectors go; gives the first one left.
template <bool kInterleaved, class D>
HWY_INLINE size_t TurnVectors(D d, size_t i, size_t pairs, float* x, const float* cos,
                              const float* sin) {
  const size_t lanes = hn::Lanes(d);
  for (; i + lanes <= pairs; i += lanes) {
    hn::Vec<D> a, b;
    if constexpr (kInterleaved) {
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
    } else {
      a = hn::LoadU(d, x + i);
      b = hn::LoadU(d, x + pairs + i);
    }
    Turn(a, b, hn::LoadU(d, cos + i), hn::LoadU(d, sin + i));
    if constexpr (kInterleaved) {
      hn::StoreInterleaved2(a, b, d, x + 2 * i);
    } else {
      hn::StoreU(a, d, x + i);
      hn::StoreU(b, d, x + pairs + i);
    }
  }
  return i;
}

template <bool kInterleaved>
void TurnRows(const RotaryArgs& given) {
  const RotaryArgs args = given;
  const size_t pairs = args.size / 2;
  for (size_t r = 0; r < args.rows; ++r) {
    float* x = args.x + r * args.ldx;
    const float* cos = args.cos + r * args.ld_table;
    const float* sin = args.sin + r * args.ld_table;
    size_t i = TurnVectors<kInterleaved>(TagWide(), 0, pairs, x, cos, sin);
    i = TurnVectors<kInterleaved>(TagNarrow(), i, pairs, x, cos, sin);
    for (; i < pairs; ++i) {
      float* a = kInterleaved ? x + 2 * i : x + i;
      Turn(*a, a[kInterleaved ? 1 : pairs], cos[i], sin[i]);
    }
  }
}

constexpr RotaryKernels kRotaryKernels = {.half = &TurnRows<false>, .interleaved = &TurnRows<true>};

const RotaryKernels* TargetRotaryKernels() { return &kRotaryKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetRotaryKernels);

const RotaryKernels& GetRotaryKernels() { return *ENCORE_DISPATCH(TargetRotaryKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
