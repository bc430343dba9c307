// SPDX-License-Identifier: Apache-2.0
//
// The softmax kernels of every SIMD target: whole rows, the online form, and attention weights, all
// made of two passes over up to four rows at a time: the maximum, and exponentials with their sum.

#include "engine/kernels/softmax.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/softmax.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/vec_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr size_t kLanes = hn::MaxLanes(TagLanes());

// What z is made of: x itself, x * scale, or x * scale + additive.
enum class ScoreKind { kPlain, kScaled, kMasked };

// A group of R rows: where z comes from and where results go. Elements at and after visible[r] are
// hidden; `full` is a multiple of 16 that no row's `visible` lies below.
template <size_t R>
struct RowGroup {
  const float* x;
  size_t ldx;
  float* y;
  size_t ldy;
  float scale;
  const float* additive;
  size_t ld_additive;
  size_t cols;
  size_t visible[R];
  size_t full;
};

template <ScoreKind kKind>
HWY_INLINE VecLanes ToScore(VecLanes x, VecLanes scale, VecLanes additive) {
  if constexpr (kKind == ScoreKind::kPlain) {
    return x;
  } else if constexpr (kKind == ScoreKind::kScaled) {
    return hn::Mul(x, scale);
  } else {
    // -inf hides a key whatever its score is, NaN included.
    const VecLanes minus_inf = hn::Set(TagLanes(), kMinusInf);
    return hn::IfThenElse(hn::Eq(additive, minus_inf), minus_inf, hn::MulAdd(x, scale, additive));
  }
}

// z of elements [c, c + kLanes) of row r.
template <ScoreKind kKind, size_t R>
HWY_INLINE VecLanes LoadScores(const RowGroup<R>& group, size_t r, size_t c) {
  const TagLanes d;
  const VecLanes x = hn::LoadU(d, group.x + r * group.ldx + c);
  if constexpr (kKind == ScoreKind::kMasked) {
    const VecLanes additive = hn::LoadU(d, group.additive + r * group.ld_additive + c);
    return ToScore<kKind>(x, hn::Set(d, group.scale), additive);
  } else {
    return ToScore<kKind>(x, hn::Set(d, group.scale), x);
  }
}

// The same for the first `count` of them; -inf, which neither maximum nor sum notices, for the
// rest.
template <ScoreKind kKind, size_t R>
HWY_INLINE VecLanes LoadScoresN(const RowGroup<R>& group, size_t r, size_t c, size_t count) {
  const TagLanes d;
  const VecLanes x = hn::LoadN(d, group.x + r * group.ldx + c, count);
  VecLanes additive = x;
  if constexpr (kKind == ScoreKind::kMasked) {
    additive = hn::LoadN(d, group.additive + r * group.ld_additive + c, count);
  }
  return hn::IfThenElse(hn::FirstN(d, count), ToScore<kKind>(x, hn::Set(d, group.scale), additive),
                        hn::Set(d, kMinusInf));
}

// max z of each row; -inf for a row without visible elements. NaN may be lost.
template <ScoreKind kKind, size_t R>
HWY_INLINE void MaxRows(const RowGroup<R>& group, float* max) {
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(kMinusInf);
  for (size_t c = 0; c < group.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        acc[r].v[j] = hn::Max(acc[r].v[j], LoadScores<kKind>(group, r, c + j * kLanes));
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    for (size_t c = group.full; c < group.visible[r]; c += kLanes) {
      const size_t count = std::min(kLanes, group.visible[r] - c);
      acc[r].v[0] = hn::Max(acc[r].v[0], LoadScoresN<kKind>(group, r, c, count));
    }
    max[r] = MaxLanes16(acc[r]);
  }
}

// y = e^(z - shift) * factor, and their sums without the factor. Hidden elements become 0.
template <ScoreKind kKind, bool kScaleResult, size_t R>
HWY_INLINE void ExpRows(const RowGroup<R>& group, const float* shift, const float* factor,
                        float* sums) {
  const TagLanes d;
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(0.0f);
  for (size_t c = 0; c < group.full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes z = LoadScores<kKind>(group, r, c + j * kLanes);
        VecLanes p = ExpNonPositive(d, hn::Sub(z, hn::Set(d, shift[r])));
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) p = hn::Mul(p, hn::Set(d, factor[r]));
        hn::StoreU(p, d, group.y + r * group.ldy + c + j * kLanes);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    float* y = group.y + r * group.ldy;
    const size_t visible = group.visible[r];
    for (size_t c = group.full; c < visible; c += kVirtualLanes) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t count = LanesBelow(visible - c, j);
        const size_t begin = c + j * kLanes;
        if (count == 0) break;
        const VecLanes z = LoadScoresN<kKind>(group, r, begin, count);
        VecLanes p = ExpNonPositive(d, hn::Sub(z, hn::Set(d, shift[r])));
        acc[r].v[j] = hn::Add(acc[r].v[j], p);
        if constexpr (kScaleResult) p = hn::Mul(p, hn::Set(d, factor[r]));
        hn::StoreN(p, d, y + begin, count);
      }
    }
    std::fill(y + visible, y + group.cols, 0.0f);
    sums[r] = SumLanes(acc[r]);
  }
}

// What is subtracted from each z. Where all of a row is -inf, -inf - -inf would be NaN: 0 makes its
// exponentials 0 instead.
HWY_INLINE float ShiftFor(float max) { return max == kMinusInf ? 0.0f : max; }

HWY_INLINE float InverseOrZero(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

template <size_t R>
HWY_NOINLINE void SoftmaxGroup(const RowGroup<R>& group) {
  const TagLanes d;
  float shift[R];
  float sums[R];
  MaxRows<ScoreKind::kPlain>(group, shift);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) shift[r] = ShiftFor(shift[r]);
  ExpRows<ScoreKind::kPlain, false>(group, shift, nullptr, sums);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const VecLanes inverse = hn::Set(d, InverseOrZero(sums[r]));
    float* y = group.y + r * group.ldy;
    size_t c = 0;
    for (; c + kLanes <= group.cols; c += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, y + c), inverse), d, y + c);
    }
    const size_t left = group.cols - c;
    if (left != 0) hn::StoreN(hn::Mul(hn::LoadN(d, y + c, left), inverse), d, y + c, left);
  }
}

template <ScoreKind kKind, size_t R>
HWY_NOINLINE void TileGroup(const RowGroup<R>& group, float* m, float* l, float* factor) {
  const hn::CappedTag<float, 4> d4;
  float max[R];
  MaxRows<kKind>(group, max);
  float shift[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const float new_m = m[r] > max[r] ? m[r] : max[r];
    shift[r] = ShiftFor(new_m);
    factor[r] = m[r] - shift[r];
    m[r] = new_m;
  }
  hn::StoreN(ExpNonPositive(d4, hn::LoadN(d4, factor, R)), d4, factor, R);
  float sums[R];
  ExpRows<kKind, false>(group, shift, nullptr, sums);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) l[r] = l[r] * factor[r] + sums[r];
}

template <ScoreKind kKind, size_t R>
HWY_NOINLINE void WeightsGroup(const RowGroup<R>& group, const float* m, const float* l) {
  float shift[R];
  float inverse[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    shift[r] = ShiftFor(m[r]);
    inverse[r] = InverseOrZero(l[r]);
  }
  float sums[R];
  ExpRows<kKind, true>(group, shift, inverse, sums);
}

// Rows [row, row + R) of a tile.
template <size_t R>
HWY_INLINE RowGroup<R> GroupOf(const ScoreTile& tile, size_t row) {
  RowGroup<R> group;
  group.x = tile.scores + row * tile.ld_scores;
  group.ldx = tile.ld_scores;
  group.y = tile.scores + row * tile.ld_scores;
  group.ldy = tile.ld_scores;
  group.scale = tile.scale;
  group.additive = tile.additive == nullptr ? nullptr : tile.additive + row * tile.ld_additive;
  group.ld_additive = tile.ld_additive;
  group.cols = tile.cols;
  size_t least = tile.cols;
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    group.visible[r] =
        tile.visible == nullptr ? tile.cols : std::min(tile.visible[row + r], tile.cols);
    least = std::min(least, group.visible[r]);
  }
  group.full = least / kVirtualLanes * kVirtualLanes;
  return group;
}

// Calls many(row) for as many groups of kRowsAtOnce rows as there are, and one(row) for the rest.
template <class Many, class One>
HWY_INLINE void ForGroups(size_t rows, Many many, One one) {
  size_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) many(r);
  for (; r < rows; ++r) one(r);
}

void SoftmaxRows(const float* x, size_t ldx, float* y, size_t ldy, size_t rows, size_t cols) {
  const auto group = [=]<size_t R>(size_t row) HWY_ATTR {
    RowGroup<R> g{};
    g.x = x + row * ldx;
    g.ldx = ldx;
    g.y = y + row * ldy;
    g.ldy = ldy;
    g.cols = cols;
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) g.visible[r] = cols;
    g.full = cols / kVirtualLanes * kVirtualLanes;
    SoftmaxGroup<R>(g);
  };
  ForGroups(
      rows, [&](size_t r) HWY_ATTR { group.template operator()<kRowsAtOnce>(r); },
      [&](size_t r) HWY_ATTR { group.template operator()<1>(r); });
}

template <ScoreKind kKind>
void TileOf(const ScoreTile& tile, float* m, float* l, float* factor) {
  ForGroups(
      tile.rows,
      [&](size_t r)
          HWY_ATTR { TileGroup<kKind>(GroupOf<kRowsAtOnce>(tile, r), m + r, l + r, factor + r); },
      [&](size_t r) HWY_ATTR { TileGroup<kKind>(GroupOf<1>(tile, r), m + r, l + r, factor + r); });
}

void SoftmaxTile(const ScoreTile& tile, float* m, float* l, float* factor) {
  if (tile.additive == nullptr) {
    TileOf<ScoreKind::kScaled>(tile, m, l, factor);
  } else {
    TileOf<ScoreKind::kMasked>(tile, m, l, factor);
  }
}

template <ScoreKind kKind>
void WeightsOf(const ScoreTile& tile, const float* m, const float* l) {
  ForGroups(
      tile.rows,
      [&](size_t r) HWY_ATTR { WeightsGroup<kKind>(GroupOf<kRowsAtOnce>(tile, r), m + r, l + r); },
      [&](size_t r) HWY_ATTR { WeightsGroup<kKind>(GroupOf<1>(tile, r), m + r, l + r); });
}

void AttentionWeights(const ScoreTile& tile, const float* m, const float* l) {
  if (tile.additive == nullptr) {
    WeightsOf<ScoreKind::kScaled>(tile, m, l);
  } else {
    WeightsOf<ScoreKind::kMasked>(tile, m, l);
  }
}

constexpr SoftmaxKernels kKernels = {
    .rows = &SoftmaxRows, .tile = &SoftmaxTile, .weights = &AttentionWeights};

const SoftmaxKernels* TargetSoftmaxKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetSoftmaxKernels);

const SoftmaxKernels& GetSoftmaxKernels() { return *HWY_DYNAMIC_DISPATCH(TargetSoftmaxKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
