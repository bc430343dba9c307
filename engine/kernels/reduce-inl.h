// SPDX-License-Identifier: Apache-2.0
//
// Reductions in the fixed order of the numeric contract: element i goes to virtual lane i mod 16,
// and the lanes combine in the tree l + 8, l + 4, l + 2, l + 1.

#include <cstddef>
#include <cstdint>

#if defined(ENCORE_ENGINE_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#undef ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
#endif

#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kVirtualLanes = 16;

using TagLanes = hn::CappedTag<float, kVirtualLanes>;
using VecLanes = hn::Vec<TagLanes>;

inline constexpr size_t kLanes = hn::MaxLanes(TagLanes());  // of a vector
// Vectors that hold the 16 lanes: 1 on AVX-512, 2 on AVX2, 4 where vectors have four lanes.
inline constexpr size_t kLaneVecs = kVirtualLanes / kLanes;

// One number for each of up to four rows.
using TagRows = hn::CappedTag<float, 4>;
using VecRows = hn::Vec<TagRows>;

// 16 consecutive elements. Loops over `v` have a constant count and unroll.
struct Lanes16 {
  // Written out because an implicit constructor does not get the target's attributes, and g++ then
  // refuses to inline that of Highway's NEON vectors into it.
  HWY_INLINE Lanes16() {}  // NOLINT(modernize-use-equals-default)
  VecLanes v[kLaneVecs];
};

// How many of the elements [c, c + kLanes) are below `end`.
HWY_INLINE size_t CountBelow(size_t end, size_t c) {
  return c >= end ? 0 : HWY_MIN(end - c, kLanes);
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

// Combines all 16 in the tree; op(a, b) for vectors of any size.
template <class Op>
HWY_INLINE float CombineLanes(Lanes16 lanes, Op op) {
  for (size_t half = kLaneVecs / 2; half != 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) lanes.v[j] = op(lanes.v[j], lanes.v[j + half]);
  }
  return CombineVec(TagLanes(), lanes.v[0], op);
}

// Lanes 0, 1, 2, 3 times kStep of v.
template <size_t kStep, class D>
HWY_INLINE VecRows EachNth(D d, hn::Vec<D> v) {
  alignas(64) static constexpr int32_t kIndices[16] = {0, kStep, 2 * kStep % int{hn::MaxLanes(D())},
                                                       3 * kStep % int{hn::MaxLanes(D())}};
  const hn::RebindToSigned<D> di;
  const auto indices = hn::IndicesFromVec(d, hn::Load(di, kIndices));
  return hn::ResizeBitCast(TagRows(), hn::TableLookupLanes(v, indices));
}

// The 16 lanes of each of R rows (4 where vectors are wide, else 1), combined in the same tree as
// CombineLanes': the rows share vectors once half of their lanes are left.
template <size_t R, class Op, class D = TagLanes>
HWY_INLINE VecRows CombineRows(const Lanes16 (&rows)[R], Op op) {
  const D d;
  if constexpr (R == 4 && hn::MaxLanes(D()) == 16) {
    // 8 of rows 0 and 2, and of 1 and 3; 4 of each row; then inside of blocks of four.
    const auto a = rows[0].v[0], b = rows[1].v[0], c = rows[2].v[0], e = rows[3].v[0];
    const auto ac = op(hn::ConcatLowerLower(d, c, a), hn::ConcatUpperUpper(d, c, a));
    const auto be = op(hn::ConcatLowerLower(d, e, b), hn::ConcatUpperUpper(d, e, b));
    auto all = op(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(be), ac),
                  hn::OddEvenBlocks(be, hn::SwapAdjacentBlocks(ac)));
    all = op(all, hn::Shuffle1032(all));
    all = op(all, hn::Shuffle2301(all));
    return EachNth<4>(d, all);
  } else if constexpr (R == 4 && hn::MaxLanes(D()) == 8) {
    const hn::Repartition<double, D> d64;
    const auto a = op(rows[0].v[0], rows[0].v[1]), b = op(rows[1].v[0], rows[1].v[1]);
    const auto c = op(rows[2].v[0], rows[2].v[1]), e = op(rows[3].v[0], rows[3].v[1]);
    const auto ac =
        hn::BitCast(d64, op(hn::ConcatLowerLower(d, c, a), hn::ConcatUpperUpper(d, c, a)));
    const auto be =
        hn::BitCast(d64, op(hn::ConcatLowerLower(d, e, b), hn::ConcatUpperUpper(d, e, b)));
    auto all = op(hn::BitCast(d, hn::InterleaveLower(d64, ac, be)),
                  hn::BitCast(d, hn::InterleaveUpper(d64, ac, be)));
    all = op(all, hn::Shuffle2301(all));
    return EachNth<2>(d, all);
  } else {
    static_assert(R == 1);
    return hn::Set(TagRows(), CombineLanes(rows[0], op));
  }
}

template <size_t R>
HWY_INLINE VecRows SumLanes(const Lanes16 (&rows)[R]) {
  return CombineRows(rows, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Of numbers: a NaN may be lost, and has to reach the result in another way.
template <size_t R>
HWY_INLINE VecRows MaxLanes16(const Lanes16 (&rows)[R]) {
  return CombineRows(rows, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// The numbers of R = 1 or 4 rows, from and to memory.
template <size_t R>
HWY_INLINE VecRows LoadRows(const float* from) {
  const TagRows d;
  return R == 1 ? hn::Set(d, *from) : hn::LoadU(d, from);
}

template <size_t R>
HWY_INLINE void StoreRows(VecRows v, float* to) {
  const TagRows d;
  if constexpr (R == 1) {
    *to = hn::GetLane(v);
  } else {
    hn::StoreU(v, d, to);
  }
}

// 1 / v, and 0 where v is 0.
HWY_INLINE VecRows InverseOrZero(VecRows v) {
  const TagRows d;
  return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), v));
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_REDUCE_INL_H_
