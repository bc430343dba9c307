// SPDX-License-Identifier: Apache-2.0
//
// The LayerNorm kernels of every SIMD target (Ba, Kiros & Hinton 2016, arXiv:1607.06450).

#include "engine/kernels/layer_norm.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

constexpr size_t kLanes = hn::MaxLanes(TagLanes());

// Rows that are walked at a time: enough chains of additions to hide their latency.
constexpr size_t kRowsAtOnce = kLaneVecs <= 2 ? 4 : 1;

// Where registers allow twice as many: they and their results should fit into a first-level cache
// of 32 KiB.
constexpr size_t kMoreRowsAtOnce = kLaneVecs == 1 ? 8 : kRowsAtOnce;
constexpr size_t kMoreRowsCols = 512;

// Vector registers.
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
constexpr size_t kRegisters = 32;
#else
constexpr size_t kRegisters = 16;
#endif

struct NormArgs {
  const float* x;
  size_t ldx;
  const float* weight;  // [cols] or null
  const float* bias;    // [cols] or null
  float epsilon;
  float* y;
  size_t ldy;
  size_t cols;
  float share;  // 1 / cols
};

// The rows [first, first + kRows) of SumTerms.
template <size_t kRows, size_t kSums, size_t R, class Term>
HWY_INLINE void SumSomeRows(const NormArgs& args, size_t first, Term term,
                            Lanes16 (&sums)[kSums][R]) {
  const TagLanes d;
  Lanes16 acc[kSums][kRows];
  ENCORE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kSums; ++s) acc[s][r] = SetLanes(0.0f);
  }
  size_t c = 0;
  for (; c + kVirtualLanes <= args.cols; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes x = hn::LoadU(d, args.x + (first + r) * args.ldx + c + j * kLanes);
        const VecLanes value = term(first + r, x);
        acc[0][r].v[j] = hn::Add(acc[0][r].v[j], value);
        if constexpr (kSums == 2) acc[1][r].v[j] = hn::MulAdd(value, value, acc[1][r].v[j]);
      }
    }
  }
  if (c < args.cols) {
    ENCORE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t count = LanesBelow(args.cols - c, j);
        const VecLanes x = hn::LoadN(d, args.x + (first + r) * args.ldx + c + j * kLanes, count);
        // Adding 0 changes no sum: they begin at 0, and so are never -0.
        const VecLanes value = hn::IfThenElseZero(hn::FirstN(d, count), term(first + r, x));
        acc[0][r].v[j] = hn::Add(acc[0][r].v[j], value);
        if constexpr (kSums == 2) acc[1][r].v[j] = hn::MulAdd(value, value, acc[1][r].v[j]);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kSums; ++s) sums[s][first + r] = acc[s][r];
  }
}

// sums[0][r] = sum of term(r, x) over the elements x of each of R rows; with kSums = 2, sums[1][r]
// is that of the squares.
template <size_t kSums, size_t R, class Term>
HWY_INLINE void SumTerms(const NormArgs& args, Term term, float (&sums)[kSums][R]) {
  // As many rows as registers hold the sums of.
  constexpr size_t kRows = R > 1 && R * kLaneVecs * kSums > 3 * kRegisters / 4 ? R / 2 : R;
  Lanes16 acc[kSums][R];
  ENCORE_UNROLL
  for (size_t first = 0; first < R; first += kRows) {
    SumSomeRows<kRows>(args, first, term, acc);
  }
  constexpr size_t kStep = R < 4 ? R : 4;
  ENCORE_UNROLL
  for (size_t s = 0; s < kSums; ++s) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; r += kStep) {
      Lanes16 some[kStep];
      ENCORE_UNROLL
      for (size_t i = 0; i < kStep; ++i) some[i] = acc[s][r + i];
      StoreRows<kStep>(SumLanes(some), sums[s] + r);
    }
  }
}

// What is known of each of R rows.
template <size_t R>
struct Moments {
  float near[R];   // a number near the mean: the mean but for rounding
  float rest[R];   // mean - near
  float scale[R];  // 1 / sqrt(variance + epsilon)
};

// y = (x - near - rest) * scale * weight + bias of R rows.
template <bool kAffine, size_t R>
HWY_INLINE void ScaleRows(const NormArgs& args, const Moments<R>& moments) {
  const TagLanes d;
  VecLanes near[R], rest[R], scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    near[r] = hn::Set(d, moments.near[r]);
    rest[r] = hn::Set(d, moments.rest[r]);
    scale[r] = hn::Set(d, moments.scale[r]);
  }
  const auto apply = [&](size_t r, VecLanes x, VecLanes weight, VecLanes bias) HWY_ATTR {
#if defined(ENCORE_TEST_BREAK_CONTRACTION) && HWY_TARGET == HWY_AVX2
    // Only for a library that `encore verify` must refuse: one rounding less, on one target.
    const VecLanes off = hn::Mul(rest[r], scale[r]);
    return hn::MulAdd(hn::MulSub(hn::Sub(x, near[r]), scale[r], off), weight, bias);
#endif
    const VecLanes centred = hn::Sub(hn::Sub(x, near[r]), rest[r]);
    return hn::MulAdd(hn::Mul(centred, scale[r]), weight, bias);
  };
  const VecLanes one = hn::Set(d, 1.0f);
  size_t c = 0;
  for (; c + kLanes <= args.cols; c += kLanes) {
    const VecLanes weight = kAffine || args.weight != nullptr ? hn::LoadU(d, args.weight + c) : one;
    const VecLanes bias =
        kAffine || args.bias != nullptr ? hn::LoadU(d, args.bias + c) : hn::Zero(d);
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const VecLanes x = hn::LoadU(d, args.x + r * args.ldx + c);
      hn::StoreU(apply(r, x, weight, bias), d, args.y + r * args.ldy + c);
    }
  }
  const size_t left = args.cols - c;
  if (left == 0) return;
  const VecLanes weight = args.weight != nullptr ? hn::LoadN(d, args.weight + c, left) : one;
  const VecLanes bias = args.bias != nullptr ? hn::LoadN(d, args.bias + c, left) : hn::Zero(d);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const VecLanes x = hn::LoadN(d, args.x + r * args.ldx + c, left);
    hn::StoreN(apply(r, x, weight, bias), d, args.y + r * args.ldy + c, left);
  }
}

// A mean is off by some units in its last place, which is much where it is large beside the row's
// deviation. So the rows are centred twice: what the differences from the first mean have for a
// mean themselves is taken off as well, from them and from the variance (Chan, Golub & LeVeque
// 1983, doi:10.1080/00031305.1983.10483115). The sum for the first mean is of differences from the
// first element: a constant row becomes exactly 0.
template <size_t R>
HWY_NOINLINE void NormRows(const NormArgs& all, size_t row) {
  NormArgs args = all;
  args.x += row * args.ldx;
  args.y += row * args.ldy;
  const TagLanes d;
  const TagRows d_rows;
  const VecRows share = hn::Set(d_rows, args.share);
  constexpr size_t kStep = R < 4 ? R : 4;
  Moments<R> moments;

  float first[R];
  VecLanes shift[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    first[r] = args.x[r * args.ldx];
    shift[r] = hn::Set(d, first[r]);
  }
  float sums[1][R];
  const auto from_shift = [&shift](size_t r, VecLanes x) HWY_ATTR { return hn::Sub(x, shift[r]); };
  SumTerms(args, from_shift, sums);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows mean =
        hn::MulAdd(LoadRows<kStep>(sums[0] + r), share, LoadRows<kStep>(first + r));
    StoreRows<kStep>(mean, moments.near + r);
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) shift[r] = hn::Set(d, moments.near[r]);
  float powers[2][R];
  SumTerms(args, from_shift, powers);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows sum = LoadRows<kStep>(powers[0] + r);
    const VecRows rest = hn::Mul(sum, share);
    const VecRows squares = hn::NegMulAdd(sum, rest, LoadRows<kStep>(powers[1] + r));
    // Rounding may leave less than 0.
    const VecRows positive = hn::IfThenZeroElse(hn::Lt(squares, hn::Zero(d_rows)), squares);
    const VecRows deviation = hn::Sqrt(hn::MulAdd(positive, share, hn::Set(d_rows, args.epsilon)));
    StoreRows<kStep>(rest, moments.rest + r);
    // A constant row without an epsilon: its differences are 0 whatever they are multiplied with.
    const VecRows scale = hn::IfThenZeroElse(hn::Eq(deviation, hn::Zero(d_rows)),
                                             hn::Div(hn::Set(d_rows, 1.0f), deviation));
    StoreRows<kStep>(scale, moments.scale + r);
  }
  if (args.weight != nullptr && args.bias != nullptr) {
    ScaleRows<true>(args, moments);
  } else {
    ScaleRows<false>(args, moments);
  }
}

void LayerNormRows(const float* x, size_t ldx, const float* weight, const float* bias,
                   double epsilon, float* y, size_t ldy, size_t rows, size_t cols) {
  const NormArgs args{x,
                      ldx,
                      weight,
                      bias,
                      static_cast<float>(epsilon),
                      y,
                      ldy,
                      cols,
                      1.0f / static_cast<float>(cols)};
  size_t r = 0;
  if (kMoreRowsAtOnce > kRowsAtOnce && cols <= kMoreRowsCols) {
    for (; r + kMoreRowsAtOnce <= rows; r += kMoreRowsAtOnce) NormRows<kMoreRowsAtOnce>(args, r);
  }
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) NormRows<kRowsAtOnce>(args, r);
  for (; r < rows; ++r) NormRows<1>(args, r);
}

constexpr LayerNormKernels kKernels = {.rows = &LayerNormRows};

const LayerNormKernels* TargetLayerNormKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetLayerNormKernels);

const LayerNormKernels& GetLayerNormKernels() {
  return *HWY_DYNAMIC_DISPATCH(TargetLayerNormKernels)();
}

}  // namespace encore::internal
#endif  // HWY_ONCE
