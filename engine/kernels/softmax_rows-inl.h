// SPDX-License-Identifier: Apache-2.0
//
// The two passes of every softmax over up to four rows at a time: the maximum, and exponentials
// with their sum; and which elements of a row they look at.

#include <algorithm>
#include <cstddef>
#include <limits>

#if defined(ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_
#undef ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_
#endif

#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/softmax_exp-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// What z is made of: x itself (its scale goes into the exponential), or x * scale + additive.
enum class ScoreKind { kPlain, kMasked };

// Which elements of a row are hidden: those at and after cols; at and after visible[r]; or those
// and the ones before first[r].
enum class Limits { kNone, kEnd, kBoth };

// A group of R rows: where z comes from and where results go. Multiples of 16 cut the elements into
// those that no row sees (before lead, and from some on), those that all rows see (from .. full),
// and two parts between these, where vectors are masked.
template <ScoreKind kKind, Limits kLimits, size_t R>
struct RowGroup {
  static constexpr bool kMasked = kKind == ScoreKind::kMasked;
  static constexpr bool kHasLimits = kLimits != Limits::kNone;
  static constexpr bool kHasFirst = kLimits == Limits::kBoth;
  static constexpr size_t kRows = R;

  const float* x[R];
  float* y[R];
  const float* additive[R];  // kMasked only
  float scale;               // kMasked: that of the scores
  size_t cols;
  bool whole_vectors;  // see ScoreTile
  size_t visible[R];   // kHasLimits only
  size_t first[R];     // kHasFirst only
  size_t lead;         // 0 without kHasFirst, as the next
  size_t from;
  size_t full;
  size_t some;

  HWY_INLINE size_t Visible(size_t r) const { return kHasLimits ? visible[r] : cols; }
  HWY_INLINE size_t From() const { return kHasFirst ? from : 0; }
};

template <class Group>
HWY_INLINE VecLanes AddMask(const Group& group, VecLanes x, VecLanes additive) {
  // -inf hides a key whatever its score is, NaN included.
  const VecLanes minus_inf = hn::Set(TagLanes(), kMinusInf);
  return hn::IfThenElse(hn::Eq(additive, minus_inf), minus_inf,
                        hn::MulAdd(x, hn::Set(TagLanes(), group.scale), additive));
}

// z of elements [c, c + kLanes) of row r.
template <class Group>
HWY_INLINE VecLanes LoadScores(const Group& group, size_t r, size_t c) {
  const TagLanes d;
  const VecLanes x = hn::LoadU(d, group.x[r] + c);
  if constexpr (!Group::kMasked) return x;
  return AddMask(group, x, hn::LoadU(d, group.additive[r] + c));
}

// Which of the elements [c, c + kLanes) row r sees.
template <class Group>
HWY_INLINE hn::Mask<TagLanes> SeenFrom(const Group& group, size_t r, size_t c) {
  const TagLanes d;
  const auto below = hn::FirstN(d, CountBelow(group.Visible(r), c));
  if constexpr (!Group::kHasFirst) return below;
  return hn::AndNot(hn::FirstN(d, CountBelow(group.first[r], c)), below);
}

// LoadScores of those that the row sees; -inf, which neither maximum nor sum notices, for the rest.
template <class Group>
HWY_INLINE VecLanes LoadScoresN(const Group& group, size_t r, size_t c) {
  const TagLanes d;
  const VecLanes minus_inf = hn::Set(d, kMinusInf);
  const float* x = group.x[r] + c;
  if constexpr (!Group::kMasked) {
    if (group.whole_vectors) {
      return hn::IfThenElse(SeenFrom(group, r, c), hn::LoadU(d, x), minus_inf);
    }
  }
  const size_t count = CountBelow(group.Visible(r), c);
  VecLanes z;
  if constexpr (Group::kMasked) {
    z = AddMask(group, hn::LoadN(d, x, count),
                hn::LoadNOr(minus_inf, d, group.additive[r] + c, count));
  } else {
    z = hn::LoadNOr(minus_inf, d, x, count);
  }
  if constexpr (!Group::kHasFirst) return z;
  return hn::IfThenElse(hn::FirstN(d, CountBelow(group.first[r], c)), minus_inf, z);
}

// Stores elements [c, c + kLanes) of row r, as far as the row goes.
template <class Group>
HWY_INLINE void StoreScores(const Group& group, size_t r, size_t c, VecLanes p) {
  const TagLanes d;
  if (group.whole_vectors) {
    hn::StoreU(p, d, group.y[r] + c);
  } else {
    hn::StoreN(p, d, group.y[r] + c, CountBelow(group.cols, c));
  }
}

// acc = max(acc, z) of the elements [begin, end) that rows see.
template <class Group, size_t R>
HWY_INLINE void MaskedMaxima(const Group& group, size_t begin, size_t end, Lanes16 (&acc)[R]) {
  for (size_t c = begin; c < end; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        acc[r].v[j] = hn::Max(acc[r].v[j], LoadScoresN(group, r, c + j * kLanes));
      }
    }
  }
}

// max z of each row; -inf for a row without visible elements. NaN may be lost.
template <class Group, size_t R = Group::kRows>
HWY_INLINE VecRows LargestScores(const Group& group) {
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(kMinusInf);
  if constexpr (Group::kHasFirst) MaskedMaxima(group, group.lead, group.from, acc);
  for (size_t c = group.From(); c < group.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        acc[r].v[j] = hn::Max(acc[r].v[j], LoadScores(group, r, c + j * kLanes));
      }
    }
  }
  MaskedMaxima(group, group.full, group.some, acc);
  return MaxLanes16(acc);
}

// ExpRows of the elements [begin, end), some of which are hidden.
template <bool kScaleResult, class Group, size_t R>
HWY_INLINE void MaskedExponentials(const Group& group, size_t begin, size_t end,
                                   const ExpVectors<TagLanes>& exp, const VecLanes (&shifts)[R],
                                   const float* factor, Lanes16 (&acc)[R]) {
  const TagLanes d;
  for (size_t c = begin; c < end; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t at = c + j * kLanes;
        const VecLanes z = LoadScoresN(group, r, at);
        VecLanes p = ExpNonPositive(d, exp, hn::Sub(z, shifts[r]));
        // Where the shift is NaN, those past the limits would be NaN too.
        if constexpr (Group::kHasLimits) p = hn::IfThenElseZero(SeenFrom(group, r, at), p);
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) {
          p = hn::Mul(p, hn::Set(d, factor[r]));
          // And where the factor is.
          if constexpr (Group::kHasLimits) p = hn::IfThenElseZero(SeenFrom(group, r, at), p);
        }
        StoreScores(group, r, at, p);
      }
    }
  }
}

// y = e^(z - shift) * factor, and their sums without the factor. Hidden elements become 0.
template <bool kScaleResult, class Group, size_t R = Group::kRows>
HWY_INLINE VecRows ExpRows(const Group& group, const ExpConstants& constants, const float* shift,
                           const float* factor) {
  const TagLanes d;
  const ExpVectors<TagLanes> exp(d, constants);
  VecLanes shifts[R];
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    shifts[r] = hn::Set(d, shift[r]);
    acc[r] = SetLanes(0.0f);
  }
  if constexpr (Group::kHasFirst) {
    for (size_t r = 0; r < R; ++r) std::fill_n(group.y[r], std::min(group.lead, group.cols), 0.0f);
    MaskedExponentials<kScaleResult>(group, group.lead, group.from, exp, shifts, factor, acc);
  }
  for (size_t c = group.From(); c < group.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes z = LoadScores(group, r, c + j * kLanes);
        VecLanes p = ExpNonPositive(d, exp, hn::Sub(z, shifts[r]));
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) p = hn::Mul(p, hn::Set(d, factor[r]));
        hn::StoreU(p, d, group.y[r] + c + j * kLanes);
      }
    }
  }
  MaskedExponentials<kScaleResult>(group, group.full, group.some, exp, shifts, factor, acc);
  if constexpr (Group::kHasLimits) {
    if (group.some < group.cols) {
      for (size_t r = 0; r < R; ++r) {
        float* y = group.y[r];
        std::fill(y + group.some, y + group.cols, 0.0f);
      }
    }
  }
  return SumLanes(acc);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_
