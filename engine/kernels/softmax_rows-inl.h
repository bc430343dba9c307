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

// A strip is R rows: pointers to z and to the results. Multiples of 16 cut the elements into
// those that no row sees (before lead, and from some on), those that all rows see (from .. full),
// and two parts between these, where vectors are masked.
template <ScoreKind kKind, Limits kLimits, size_t R>
struct RowStrip {
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

template <class Strip>
HWY_INLINE VecLanes AddMask(const Strip& strip, VecLanes x, VecLanes additive) {
  // -inf hides a key whatever its score is, NaN included.
  const VecLanes minus_inf = hn::Set(TagLanes(), kMinusInf);
  return hn::IfThenElse(hn::Eq(additive, minus_inf), minus_inf,
                        hn::MulAdd(x, hn::Set(TagLanes(), strip.scale), additive));
}

// z of elements [c, c + kLanes) of row r.
template <class Strip>
HWY_INLINE VecLanes LoadScores(const Strip& strip, size_t r, size_t c) {
  const TagLanes d;
  const VecLanes x = hn::LoadU(d, strip.x[r] + c);
  if constexpr (!Strip::kMasked) return x;
  return AddMask(strip, x, hn::LoadU(d, strip.additive[r] + c));
}

// Which of the elements [c, c + kLanes) row r sees.
template <class Strip>
HWY_INLINE hn::Mask<TagLanes> SeenFrom(const Strip& strip, size_t r, size_t c) {
  const TagLanes d;
  const auto below = hn::FirstN(d, CountBelow(strip.Visible(r), c));
  if constexpr (!Strip::kHasFirst) return below;
  return hn::AndNot(hn::FirstN(d, CountBelow(strip.first[r], c)), below);
}

// LoadScores of those that the row sees; -inf, which neither maximum nor sum notices, for the
// others.
template <class Strip>
HWY_INLINE VecLanes LoadScoresN(const Strip& strip, size_t r, size_t c) {
  const TagLanes d;
  const VecLanes minus_inf = hn::Set(d, kMinusInf);
  const float* x = strip.x[r] + c;
  if constexpr (!Strip::kMasked) {
    if (strip.whole_vectors) {
      return hn::IfThenElse(SeenFrom(strip, r, c), hn::LoadU(d, x), minus_inf);
    }
  }
  const size_t count = CountBelow(strip.Visible(r), c);
  VecLanes z;
  if constexpr (Strip::kMasked) {
    z = AddMask(strip, hn::LoadN(d, x, count),
                hn::LoadNOr(minus_inf, d, strip.additive[r] + c, count));
  } else {
    z = hn::LoadNOr(minus_inf, d, x, count);
  }
  if constexpr (!Strip::kHasFirst) return z;
  return hn::IfThenElse(hn::FirstN(d, CountBelow(strip.first[r], c)), minus_inf, z);
}

// Stores elements [c, c + kLanes) of row r, as far as the row goes.
template <class Strip>
HWY_INLINE void StoreScores(const Strip& strip, size_t r, size_t c, VecLanes p) {
  const TagLanes d;
  if (strip.whole_vectors) {
    hn::StoreU(p, d, strip.y[r] + c);
  } else {
    hn::StoreN(p, d, strip.y[r] + c, CountBelow(strip.cols, c));
  }
}

// acc = max(acc, z) of the elements [begin, end) that rows see.
template <class Strip, size_t R>
HWY_INLINE void MaskedMaxima(const Strip& strip, size_t begin, size_t end, Lanes16 (&acc)[R]) {
  for (size_t c = begin; c < end; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        acc[r].v[j] = hn::Max(acc[r].v[j], LoadScoresN(strip, r, c + j * kLanes));
      }
    }
  }
}

// max z of each row; -inf for a row without visible elements. NaN may be lost.
template <class Strip, size_t R = Strip::kRows>
HWY_INLINE VecRows LargestScores(const Strip& strip) {
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(kMinusInf);
  if constexpr (Strip::kHasFirst) MaskedMaxima(strip, strip.lead, strip.from, acc);
  for (size_t c = strip.From(); c < strip.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        acc[r].v[j] = hn::Max(acc[r].v[j], LoadScores(strip, r, c + j * kLanes));
      }
    }
  }
  MaskedMaxima(strip, strip.full, strip.some, acc);
  return MaxLanes16(acc);
}

// ExpRows of the elements [begin, end), some of which are hidden.
template <bool kScaleResult, class Strip, size_t R>
HWY_INLINE void MaskedExponentials(const Strip& strip, size_t begin, size_t end,
                                   const ExpVectors<TagLanes>& exp, const VecLanes (&shifts)[R],
                                   const float* factor, Lanes16 (&acc)[R]) {
  const TagLanes d;
  for (size_t c = begin; c < end; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t at = c + j * kLanes;
        const VecLanes z = LoadScoresN(strip, r, at);
        VecLanes p = ExpNonPositive(d, exp, hn::Sub(z, shifts[r]));
        // Where the shift is NaN, those past the limits would be NaN too.
        if constexpr (Strip::kHasLimits) p = hn::IfThenElseZero(SeenFrom(strip, r, at), p);
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) {
          p = hn::Mul(p, hn::Set(d, factor[r]));
          // And where the factor is.
          if constexpr (Strip::kHasLimits) p = hn::IfThenElseZero(SeenFrom(strip, r, at), p);
        }
        StoreScores(strip, r, at, p);
      }
    }
  }
}

// y = e^(z - shift) * factor, and their sums without the factor. Hidden elements become 0.
template <bool kScaleResult, class Strip, size_t R = Strip::kRows>
HWY_INLINE VecRows ExpRows(const Strip& strip, const ExpConstants& constants, const float* shift,
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
  if constexpr (Strip::kHasFirst) {
    for (size_t r = 0; r < R; ++r) std::fill_n(strip.y[r], std::min(strip.lead, strip.cols), 0.0f);
    MaskedExponentials<kScaleResult>(strip, strip.lead, strip.from, exp, shifts, factor, acc);
  }
  for (size_t c = strip.From(); c < strip.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes z = LoadScores(strip, r, c + j * kLanes);
        VecLanes p = ExpNonPositive(d, exp, hn::Sub(z, shifts[r]));
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) p = hn::Mul(p, hn::Set(d, factor[r]));
        hn::StoreU(p, d, strip.y[r] + c + j * kLanes);
      }
    }
  }
  MaskedExponentials<kScaleResult>(strip, strip.full, strip.some, exp, shifts, factor, acc);
  if constexpr (Strip::kHasLimits) {
    if (strip.some < strip.cols) {
      for (size_t r = 0; r < R; ++r) {
        float* y = strip.y[r];
        std::fill(y + strip.some, y + strip.cols, 0.0f);
      }
    }
  }
  return SumLanes(acc);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_SOFTMAX_ROWS_INL_H_
