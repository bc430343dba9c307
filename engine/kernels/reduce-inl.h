// SPDX-License-Identifier: Apache-2.0
//
// Reductions in the fixed order of the numeric contract: element i goes to virtual lane i mod 16,
// and the lanes combine in the tree l + 8, l + 4, l + 2, l + 1. Not here: what is summed
// (softmax.cc, layer_norm.cc).

#include <cstddef>

#if defined(ENCORE_ENGINE_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#undef ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#endif

#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kVirtualLanes = 16;

using TagLanes = hn::CappedTag<float, kVirtualLanes>;
using VecLanes = hn::Vec<TagLanes>;

// Vectors that hold the 16 lanes: 1 on AVX-512, 2 on AVX2, 4 where vectors have four lanes, 16
// without SIMD.
inline constexpr size_t kLaneVecs = kVirtualLanes / hn::MaxLanes(TagLanes());

// Rows that a kernel walks at a time: four chains of additions in flight hide most of the latency
// that the fixed order costs.
inline constexpr size_t kRowsAtOnce = kLaneVecs >= 4 ? 1 : 4 / kLaneVecs;

// 16 consecutive elements. Loops over `v` have a constant count and unroll.
struct Lanes16 {
  // Written out because an implicit constructor does not get the target's attributes, and g++ then
  // refuses to inline that of Highway's NEON vectors into it.
  HWY_INLINE Lanes16() {}  // NOLINT(modernize-use-equals-default)
  VecLanes v[kLaneVecs];
};

// Elements of vector j that lie below n, where n counts from the first of the 16 lanes.
HWY_INLINE size_t LanesBelow(size_t n, size_t j) {
  constexpr size_t kLanes = hn::MaxLanes(TagLanes());
  return n <= j * kLanes ? 0 : HWY_MIN(n - j * kLanes, kLanes);
}

HWY_INLINE Lanes16 SetLanes(float value) {
  Lanes16 lanes;
  ENCORE_UNROLL
  for (size_t j = 0; j < kLaneVecs; ++j) lanes.v[j] = hn::Set(TagLanes(), value);
  return lanes;
}

// Combines the lanes of one vector: the upper half onto the lower one, down to a single lane.
template <class D, class Op>
HWY_INLINE float CombineVec(D /*d*/, hn::Vec<D> v, Op op) {
#if HWY_TARGET != HWY_SCALAR  // vectors of one lane know no UpperHalf
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return CombineVec(half, op(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), op);
  }
#endif
  (void)op;
  return hn::GetLane(v);
}

// Combines all 16 in the tree; op(a, b) takes vectors of any size.
template <class Op>
HWY_INLINE float CombineLanes(Lanes16 lanes, Op op) {
  for (size_t half = kLaneVecs / 2; half != 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes.v[j] = op(lanes.v[j], lanes.v[j + half]);
  }
  return CombineVec(TagLanes(), lanes.v[0], op);
}

HWY_INLINE float SumLanes(const Lanes16& lanes) {
  return CombineLanes(lanes, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Of the numbers; a NaN may be lost, and has to reach the result on another way.
HWY_INLINE float MaxLanes16(const Lanes16& lanes) {
  return CombineLanes(lanes, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// The vector of elements [c, c + lanes) of a row of n; those past n are zeros.
HWY_INLINE VecLanes LoadBelow(const float* row, size_t c, size_t n) {
  const TagLanes d;
  if (c + hn::MaxLanes(d) <= n) return hn::LoadU(d, row + c);
  return c < n ? hn::LoadN(d, row + c, n - c) : hn::Zero(d);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
