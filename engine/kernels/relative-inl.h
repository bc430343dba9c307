// SPDX-License-Identifier: Apache-2.0
//
// The kernels of relative embeddings of every SIMD target.

#if defined(ENCORE_ENGINE_KERNELS_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_RELATIVE_INL_H_
#undef ENCORE_ENGINE_KERNELS_RELATIVE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_RELATIVE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/kernels/dispatch.h"
#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/relative.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagIndex = hn::RebindToSigned<TagLanes>;

// Neighbouring keys' indices rise by at most one: what a vector of them names lies within a vector
// from the first one on, and a permute of it is all.
template <bool kAdd>
void OfQueries(const RelativeArgs& given) {
  const TagLanes d;
  const TagIndex di;
  const RelativeArgs args = given;
  for (size_t r = 0; r < args.rows; ++r) {
    const int32_t* const index = args.index - r;
    const float* const products = args.products + r * args.ld_products;
    const float* const add = args.add + (kAdd ? r * args.ld_add : 0);
    float* const out = args.out + r * args.ld_out;
    for (size_t j = 0; j < args.cols; j += kLanes) {
      // Lanes behind the last key may hold anything.
      const auto lane = hn::And(hn::Sub(hn::LoadU(di, index + j), hn::Set(di, index[j])),
                                hn::Set(di, static_cast<int32_t>(kLanes - 1)));
      auto v = hn::LoadU(d, products + (index[j] - args.low));
      v = hn::TableLookupLanes(v, hn::IndicesFromVec(d, lane));
      if constexpr (kAdd) v = hn::Add(v, hn::LoadU(d, add + j));
      hn::StoreU(v, d, out + j);
    }
  }
}

void OfQueriesOrBoth(const RelativeArgs& args) {
  args.add == nullptr ? OfQueries<false>(args) : OfQueries<true>(args);
}

// A diagonal through kLanes rows, one float of each, in two steps of blends: of 4 neighbouring rows
// first, which the diagonals of 4 queries share, then of every fourth of these.
void OfKeys(const RelativeArgs& given) {
  constexpr size_t kNear = 4;
  constexpr size_t kFar = kLanes / kNear;
  static_assert(kLanes % kNear == 0);
  const TagLanes d;
  const TagIndex di;
  const RelativeArgs args = given;
  HWY_ALIGN float near[(kRelativeRows + kLanes) * kLanes];
  const auto lane = hn::Iota(di, 0);
  const auto within = hn::And(lane, hn::Set(di, static_cast<int32_t>(kNear - 1)));
  const auto is_lane = [&](auto lanes, size_t i) HWY_ATTR {
    return hn::RebindMask(d, hn::Eq(lanes, hn::Set(di, static_cast<int32_t>(i))));
  };
  const auto near1 = is_lane(within, 1);
  const auto near2 = is_lane(within, 2);
  const auto near3 = is_lane(within, 3);
  const auto far = hn::ShiftRight<2>(lane);
  const auto last = static_cast<ptrdiff_t>(args.cols) - 1;
  for (size_t j = 0; j < args.cols; j += kLanes) {
    // Of the last query and the first key on.
    const ptrdiff_t first = static_cast<ptrdiff_t>(j) - static_cast<ptrdiff_t>(args.rows - 1);
    const auto row = [&](size_t t) HWY_ATTR {
      const ptrdiff_t distance = std::min(first + static_cast<ptrdiff_t>(t), last);
      return args.products +
             static_cast<size_t>(args.index[distance] - args.low) * args.ld_products + j;
    };
    const float* a = row(0);
    const float* b = row(1);
    const float* c = row(2);
    for (size_t t = 0; t < args.rows + kLanes - kNear; ++t) {
      const float* const e = row(t + 3);
      auto v = hn::LoadU(d, a);
      v = hn::IfThenElse(near1, hn::LoadU(d, b), v);
      v = hn::IfThenElse(near2, hn::LoadU(d, c), v);
      v = hn::IfThenElse(near3, hn::LoadU(d, e), v);
      hn::Store(v, d, near + t * kLanes);
      a = b;
      b = c;
      c = e;
    }
    for (size_t r = 0; r < args.rows; ++r) {
      const float* const from = near + (args.rows - 1 - r) * kLanes;
      auto v = hn::Load(d, from);
      if constexpr (kFar > 1)
        v = hn::IfThenElse(is_lane(far, 1), hn::Load(d, from + kNear * kLanes), v);
      if constexpr (kFar > 2) {
        v = hn::IfThenElse(is_lane(far, 2), hn::Load(d, from + 2 * kNear * kLanes), v);
        v = hn::IfThenElse(is_lane(far, 3), hn::Load(d, from + 3 * kNear * kLanes), v);
      }
      hn::StoreU(v, d, args.out + r * args.ld_out + j);
    }
  }
}

constexpr RelativeKernels kRelativeKernels = {.of_queries = &OfQueriesOrBoth, .of_keys = &OfKeys};

const RelativeKernels* TargetRelativeKernels() { return &kRelativeKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetRelativeKernels);

const RelativeKernels& GetRelativeKernels() { return *ENCORE_DISPATCH(TargetRelativeKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
