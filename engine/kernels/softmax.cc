// SPDX-License-Identifier: Apache-2.0
//
// The softmax kernels of every SIMD target: whole rows, the online form, and attention weights, by
// the two passes of softmax_rows-inl.h. Tiles of up to 16 keys have one of their own
// (ShortTileStrip).

#include "engine/kernels/softmax.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/strict_math.h"
#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/softmax_exp-inl.h"
#include "engine/kernels/softmax_rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

// Rows that are walked at a time: enough chains of additions to hide their latency, few enough for
// their sums and the constants of the exponential to stay in registers.
constexpr size_t kRowsAtOnce = kLaneVecs <= 2 ? 4 : 1;

// What is subtracted from each z. Where all of a row is -inf, -inf - -inf would be NaN: 0 makes its
// exponentials 0 instead.
HWY_INLINE VecRows ShiftFor(VecRows max) {
  return hn::IfThenZeroElse(hn::Eq(max, hn::Set(TagRows(), kMinusInf)), max);
}

template <class Strip, size_t R = Strip::kRows>
HWY_NOINLINE void SoftmaxStrip(const Strip& given) {
  const Strip strip = given;
  const TagLanes d;
  float shift[R];
  float inverse[R];
  StoreRows<R>(ShiftFor(LargestScores(strip)), shift);
  StoreRows<R>(InverseOrZero(ExpRows<false>(strip, ExpConstants(1.0f), shift, nullptr)), inverse);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const VecLanes factor = hn::Set(d, inverse[r]);
    float* y = strip.y[r];
    size_t c = 0;
    for (; c + kLanes <= strip.cols; c += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, y + c), factor), d, y + c);
    }
    const size_t left = strip.cols - c;
    if (left != 0) hn::StoreN(hn::Mul(hn::LoadN(d, y + c, left), factor), d, y + c, left);
  }
}

// Of the exponential: the scale of the scores is in z already where there is a mask.
ExpConstants ConstantsOf(const ScoreTile& tile) {
  return ExpConstants(tile.additive == nullptr ? tile.scale : 1.0f);
}

// Raises each row's maximum m to `max`, the tile's, where that is larger. Returns what to subtract
// from z; factor becomes what the sums of earlier tiles are to be multiplied with.
HWY_INLINE VecRows UpdateMaxima(VecRows max, const ExpConstants& constants, VecRows& m,
                                VecRows& factor) {
  const TagRows d;
  const VecRows old_m = m;
  m = hn::IfThenElse(hn::Gt(old_m, max), old_m, max);
  const VecRows shift = ShiftFor(m);
  factor = ExpNonPositive(d, ExpVectors<TagRows>(d, constants), hn::Sub(old_m, shift));
  return shift;
}

// The first half of a tile's step: m and factor, and what to subtract from z in the second.
template <class Strip, size_t R = Strip::kRows>
HWY_NOINLINE void TileMaxima(const Strip& given, const ExpConstants& constants, float* m,
                             float* factor, float* shift) {
  const Strip strip = given;
  VecRows new_m = LoadRows<R>(m), new_factor;
  StoreRows<R>(UpdateMaxima(LargestScores(strip), constants, new_m, new_factor), shift);
  StoreRows<R>(new_m, m);
  StoreRows<R>(new_factor, factor);
}

// And the second: p and l.
template <class Strip, size_t R = Strip::kRows>
HWY_NOINLINE void TileExponentials(const Strip& given, const ExpConstants& constants,
                                   const float* shift, const float* factor, float* l) {
  const Strip strip = given;
  const VecRows sums = ExpRows<false>(strip, constants, shift, nullptr);
  StoreRows<R>(hn::MulAdd(LoadRows<R>(l), LoadRows<R>(factor), sums), l);
}

// All of the step for up to 16 keys, which stay in registers in between. `rows` of the strip's rows
// count; those after are the last one again.
template <class Strip, size_t R = Strip::kRows>
HWY_INLINE void ShortTileStrip(const Strip& strip, size_t rows, const ExpConstants& constants,
                               float* m, float* l, float* factor) {
  const TagLanes d;
  const TagRows d_rows;
  const ExpVectors<TagLanes> exp(d, constants);
  Lanes16 z[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    ENCORE_UNROLL
    for (size_t j = 0; j < kLaneVecs; ++j) {
      z[r].v[j] = LoadScoresN(strip, r, j * kLanes);
    }
  }
  VecRows new_m = hn::Set(d_rows, m[rows - 1]);
  if constexpr (R > 1) new_m = hn::LoadNOr(new_m, d_rows, m, rows);
  VecRows new_factor;
  float shift[R];
  StoreRows<R>(UpdateMaxima(MaxLanes16(z), constants, new_m, new_factor), shift);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const VecLanes largest = hn::Set(d, shift[r]);
    ENCORE_UNROLL
    for (size_t j = 0; j < kLaneVecs; ++j) {
      const size_t begin = j * kLanes;
      VecLanes p = ExpNonPositive(d, exp, hn::Sub(z[r].v[j], largest));
      if constexpr (Strip::kHasLimits) {
        p = hn::IfThenElseZero(SeenFrom(strip, r, begin), p);
      }
      StoreScores(strip, r, begin, p);
      z[r].v[j] = p;
    }
  }
  const VecRows old_l = R == 1 ? hn::Set(d_rows, *l) : hn::LoadN(d_rows, l, rows);
  const VecRows new_l = hn::MulAdd(old_l, new_factor, SumLanes(z));
  if constexpr (R == 1) {
    *m = hn::GetLane(new_m);
    *l = hn::GetLane(new_l);
    *factor = hn::GetLane(new_factor);
  } else if (rows == R) {
    hn::StoreU(new_m, d_rows, m);
    hn::StoreU(new_l, d_rows, l);
    hn::StoreU(new_factor, d_rows, factor);
  } else {
    hn::StoreN(new_m, d_rows, m, rows);
    hn::StoreN(new_l, d_rows, l, rows);
    hn::StoreN(new_factor, d_rows, factor, rows);
  }
}

template <class Strip, size_t R = Strip::kRows>
HWY_NOINLINE void WeightsStrip(const Strip& given, const ExpConstants& constants, const float* m,
                               const float* l) {
  const Strip strip = given;
  float shift[R];
  float inverse[R];
  StoreRows<R>(ShiftFor(LoadRows<R>(m)), shift);
  StoreRows<R>(InverseOrZero(LoadRows<R>(l)), inverse);
  (void)ExpRows<true>(strip, constants, shift, inverse);
}

constexpr size_t RoundDown(size_t n) { return n / kVirtualLanes * kVirtualLanes; }
constexpr size_t RoundUp(size_t n) { return RoundDown(n + kVirtualLanes - 1); }

// Rows [row, row + R) of a tile; past its end, the last row again.
template <ScoreKind kKind, Limits kLimits, size_t R>
HWY_INLINE RowStrip<kKind, kLimits, R> StripOf(const ScoreTile& tile, size_t row) {
  RowStrip<kKind, kLimits, R> strip;
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const size_t at = R == 1 ? row : std::min(row + r, tile.rows - 1);
    strip.x[r] = strip.y[r] = tile.scores + at * tile.ld_scores;
    if constexpr (kKind == ScoreKind::kMasked) {
      strip.additive[r] = tile.additive + static_cast<ptrdiff_t>(at) * tile.ld_additive;
    }
    if constexpr (kLimits != Limits::kNone) {
      const size_t end = tile.visible == nullptr ? tile.cols : tile.visible[at];
      strip.visible[r] = std::min(end, tile.cols);
    }
    if constexpr (kLimits == Limits::kBoth) strip.first[r] = tile.first[at];
  }
  strip.scale = tile.scale;
  strip.cols = tile.cols;
  strip.whole_vectors = tile.whole_vectors;
  size_t least = tile.cols;
  size_t most = tile.cols;
  if constexpr (kLimits != Limits::kNone) {
    most = 0;
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      least = std::min(least, strip.visible[r]);
      most = std::max(most, strip.visible[r]);
    }
  }
  strip.full = RoundDown(least);
  strip.some = std::min(RoundUp(most), RoundUp(tile.cols));
  if constexpr (kLimits == Limits::kBoth) {
    size_t earliest = tile.cols;
    size_t latest = 0;
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      earliest = std::min(earliest, strip.first[r]);
      latest = std::max(latest, strip.first[r]);
    }
    strip.lead = std::min(RoundDown(earliest), strip.some);
    strip.from = std::min(RoundUp(std::min(latest, tile.cols)), strip.some);
    strip.full = std::max(strip.full, strip.from);
  }
  return strip;
}

// Calls f<kRowsAtOnce>(row) for as many strips of so many rows as there are from `begin` on, and
// f<1>(row) for the rest.
template <class F>
HWY_INLINE void ForStrips(size_t begin, size_t end, F f) {
  size_t r = begin;
  for (; r + kRowsAtOnce <= end; r += kRowsAtOnce) f.template operator()<kRowsAtOnce>(r);
  for (; r < end; ++r) f.template operator()<1>(r);
}

void SoftmaxRows(const float* x, size_t ldx, float* y, size_t ldy, size_t rows, size_t cols) {
  ForStrips(0, rows, [=]<size_t R>(size_t row) HWY_ATTR {
    RowStrip<ScoreKind::kPlain, Limits::kNone, R> g{};
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      g.x[r] = x + (row + r) * ldx;
      g.y[r] = y + (row + r) * ldy;
    }
    g.cols = cols;
    g.full = RoundDown(cols);
    g.some = RoundUp(cols);
    SoftmaxStrip(g);
  });
}

// A scale outside the range of the exponential (negative, 0, NaN, out of range) is multiplied in,
// and becomes 1.
ScoreTile WithGoodScale(const ScoreTile& tile) {
  if (tile.additive != nullptr ||
      (tile.scale >= kLeastExpScale && tile.scale <= kLargestExpScale)) {
    return tile;
  }
  for (size_t r = 0; r < tile.rows; ++r) {
    float* row = tile.scores + r * tile.ld_scores;
    for (size_t c = 0; c < tile.cols; ++c) row[c] *= tile.scale;
  }
  ScoreTile scaled = tile;
  scaled.scale = 1.0f;
  return scaled;
}

// Rows whose maxima are found before their exponentials: the second half of one strip need not wait
// for its first half then, and 16 rows of 512 scores stay in the first-level cache in between.
constexpr size_t kBlockRows = 16;

template <ScoreKind kKind, Limits kLimits>
void TileOf(const ScoreTile& tile, float* m, float* l, float* factor) {
  const ExpConstants constants = ConstantsOf(tile);
  if (tile.cols <= kVirtualLanes) {
    for (size_t r = 0; r < tile.rows; r += kRowsAtOnce) {
      ShortTileStrip(StripOf<kKind, kLimits, kRowsAtOnce>(tile, r),
                     std::min(kRowsAtOnce, tile.rows - r), constants, m + r, l + r, factor + r);
    }
    return;
  }
  float shift[kBlockRows];
  for (size_t begin = 0; begin < tile.rows; begin += kBlockRows) {
    const size_t end = std::min(begin + kBlockRows, tile.rows);
    ForStrips(begin, end, [&]<size_t R>(size_t r) HWY_ATTR {
      TileMaxima(StripOf<kKind, kLimits, R>(tile, r), constants, m + r, factor + r,
                 shift + (r - begin));
    });
    ForStrips(begin, end, [&]<size_t R>(size_t r) HWY_ATTR {
      TileExponentials(StripOf<kKind, kLimits, R>(tile, r), constants, shift + (r - begin),
                       factor + r, l + r);
    });
  }
}

// Calls run<kind, limits>() for what the tile has.
template <class Run>
HWY_INLINE void ForKind(const ScoreTile& tile, Run run) {
  const auto with = [&]<ScoreKind kKind>() HWY_ATTR {
    if (tile.first != nullptr) {
      run.template operator()<kKind, Limits::kBoth>();
    } else if (tile.visible != nullptr) {
      run.template operator()<kKind, Limits::kEnd>();
    } else {
      run.template operator()<kKind, Limits::kNone>();
    }
  };
  if (tile.additive == nullptr) {
    with.template operator()<ScoreKind::kPlain>();
  } else {
    with.template operator()<ScoreKind::kMasked>();
  }
}

void SoftmaxTile(const ScoreTile& given, float* m, float* l, float* factor) {
  const ScoreTile tile = WithGoodScale(given);
  ForKind(tile, [&]<ScoreKind kKind, Limits kLimits>()
                    HWY_ATTR { TileOf<kKind, kLimits>(tile, m, l, factor); });
}

template <ScoreKind kKind, Limits kLimits>
void WeightsOf(const ScoreTile& tile, const float* m, const float* l) {
  const ExpConstants constants = ConstantsOf(tile);
  ForStrips(0, tile.rows, [&]<size_t R>(size_t r) HWY_ATTR {
    WeightsStrip(StripOf<kKind, kLimits, R>(tile, r), constants, m + r, l + r);
  });
}

void AttentionWeights(const ScoreTile& given, const float* m, const float* l) {
  const ScoreTile tile = WithGoodScale(given);
  ForKind(tile, [&]<ScoreKind kKind, Limits kLimits>()
                    HWY_ATTR { WeightsOf<kKind, kLimits>(tile, m, l); });
}

constexpr SoftmaxKernels kKernels = {
    .rows = &SoftmaxRows, .tile = &SoftmaxTile, .weights = &AttentionWeights};

const SoftmaxKernels* TargetSoftmaxKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetSoftmaxKernels);

const SoftmaxKernels& GetSoftmaxKernels() { return *ENCORE_DISPATCH(TargetSoftmaxKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
