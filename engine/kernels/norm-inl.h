// SPDX-License-Identifier: Apache-2.0
//
// The LayerNorm and RMSNorm kernels of every SIMD target: passes over some rows at a time for their
// sums, and one that writes.

#if defined(ENCORE_ENGINE_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_NORM_INL_H_
#undef ENCORE_ENGINE_KERNELS_NORM_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_NORM_INL_H_
#endif

#include <cstddef>

#include "engine/kernels/dispatch.h"
#include "engine/kernels/norm.h"
#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

// Rows that are walked at a time: enough chains of additions to hide their latency.
constexpr size_t kRowsAtOnce = kLaneVecs <= 2 ? 4 : 1;

// Where registers allow twice as many: they and their results should fit into a first-level cache
// of 32 KiB.
constexpr size_t kMoreRowsAtOnce = kLaneVecs == 1 ? 8 : kRowsAtOnce;
constexpr size_t kMoreRowsCols = 512;

constexpr size_t kRegisters = ENCORE_32_REGISTERS ? 32 : 16;

// Rows as the passes below walk them.
struct Rows : NormArgs {
  float epsilon_f32;
  float share;  // 1 / cols

  HWY_INLINE explicit Rows(const NormArgs& args)
      : NormArgs(args),
        epsilon_f32(static_cast<float>(args.epsilon)),
        share(1.0f / static_cast<float>(args.cols)) {}
  // From row r on.
  HWY_INLINE Rows From(size_t r) const {
    Rows from = *this;
    from.x += r * ldx;
    from.y += r * ldy;
    if (residual != nullptr) from.residual += r * ld_residual;
    return from;
  }
};

// What is summed: terms, the squares of terms, or both.
enum class Sums { kTerms, kSquares, kBoth };
constexpr size_t CountOf(Sums sums) { return sums == Sums::kBoth ? 2 : 1; }

template <Sums kSums, size_t kRows>
HWY_INLINE void AddTerm(VecLanes value, size_t r, size_t j, Lanes16 (&acc)[CountOf(kSums)][kRows]) {
  VecLanes& first = acc[0][r].v[j];
  if constexpr (kSums == Sums::kSquares) {
    first = hn::MulAdd(value, value, first);
  } else {
    first = hn::Add(first, value);
  }
  if constexpr (kSums == Sums::kBoth) acc[1][r].v[j] = hn::MulAdd(value, value, acc[1][r].v[j]);
}

// The rows [first, first + kRows) of SumTerms.
template <size_t kRows, Sums kSums, size_t R, class Term>
HWY_INLINE void SumSomeRows(const Rows& args, size_t first, Term term,
                            Lanes16 (&sums)[CountOf(kSums)][R]) {
  const TagLanes d;
  constexpr size_t kCount = CountOf(kSums);
  Lanes16 acc[kCount][kRows];
  ENCORE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kCount; ++s) acc[s][r] = SetLanes(0.0f);
  }
  size_t c = 0;
  for (; c + kVirtualLanes <= args.cols; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes x = hn::LoadU(d, args.x + (first + r) * args.ldx + c + j * kLanes);
        AddTerm<kSums>(term(first + r, x), r, j, acc);
      }
    }
  }
  if (c < args.cols) {
    ENCORE_UNROLL
    for (size_t r = 0; r < kRows; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t count = CountBelow(args.cols - c, j * kLanes);
        const VecLanes x = hn::LoadN(d, args.x + (first + r) * args.ldx + c + j * kLanes, count);
        // Adding 0 changes no sum: they begin at 0, and so are never -0.
        const VecLanes value = hn::IfThenElseZero(hn::FirstN(d, count), term(first + r, x));
        AddTerm<kSums>(value, r, j, acc);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < kRows; ++r) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kCount; ++s) sums[s][first + r] = acc[s][r];
  }
}

// sums[0][r] = sum of term(r, x), or of its square, over the elements x of each of R rows; with
// kBoth, sums[1][r] is that of the squares.
template <Sums kSums, size_t R, class Term>
HWY_INLINE void SumTerms(const Rows& args, Term term, float (&sums)[CountOf(kSums)][R]) {
  // As many rows as registers hold the sums of.
  constexpr size_t kCount = CountOf(kSums);
  constexpr size_t kRows = R > 1 && R * kLaneVecs * kCount > 3 * kRegisters / 4 ? R / 2 : R;
  Lanes16 acc[kCount][R];
  ENCORE_UNROLL
  for (size_t first = 0; first < R; first += kRows) {
    SumSomeRows<kRows, kSums>(args, first, term, acc);
  }
  constexpr size_t kStep = R < 4 ? R : 4;
  ENCORE_UNROLL
  for (size_t s = 0; s < kCount; ++s) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; r += kStep) {
      Lanes16 some[kStep];
      ENCORE_UNROLL
      for (size_t i = 0; i < kStep; ++i) some[i] = acc[s][r + i];
      StoreRows<kStep>(SumLanes(some), sums[s] + r);
    }
  }
}

// y = z * weight + bias, and then + residual, of R rows; z(r, x) is the norm of x. kAffine: weight
// and bias are given and residual is not.
template <bool kAffine, size_t R, class Norm>
HWY_INLINE void WriteSomeRows(const Rows& args, Norm z) {
  const TagLanes d;
  const VecLanes one = hn::Set(d, 1.0f);
  size_t c = 0;
  for (; c + kLanes <= args.cols; c += kLanes) {
    const VecLanes weight = kAffine || args.weight != nullptr ? hn::LoadU(d, args.weight + c) : one;
    const VecLanes bias =
        kAffine || args.bias != nullptr ? hn::LoadU(d, args.bias + c) : hn::Zero(d);
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      VecLanes y = hn::MulAdd(z(r, hn::LoadU(d, args.x + r * args.ldx + c)), weight, bias);
      if (!kAffine && args.residual != nullptr) {
        y = hn::Add(y, hn::LoadU(d, args.residual + r * args.ld_residual + c));
      }
      hn::StoreU(y, d, args.y + r * args.ldy + c);
    }
  }
  const size_t left = args.cols - c;
  if (left == 0) return;
  const VecLanes weight = args.weight != nullptr ? hn::LoadN(d, args.weight + c, left) : one;
  const VecLanes bias = args.bias != nullptr ? hn::LoadN(d, args.bias + c, left) : hn::Zero(d);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    VecLanes y = hn::MulAdd(z(r, hn::LoadN(d, args.x + r * args.ldx + c, left)), weight, bias);
    if (args.residual != nullptr) {
      y = hn::Add(y, hn::LoadN(d, args.residual + r * args.ld_residual + c, left));
    }
    hn::StoreN(y, d, args.y + r * args.ldy + c, left);
  }
}

template <size_t R, class Norm>
HWY_INLINE void WriteRows(const Rows& args, Norm z) {
  if (args.weight != nullptr && args.bias != nullptr && args.residual == nullptr) {
    WriteSomeRows<true, R>(args, z);
  } else {
    WriteSomeRows<false, R>(args, z);
  }
}

// A mean is off by some units in its last place, which is much where it is large beside the row's
// deviation. So the rows are centred twice: what the differences from the first mean have for a
// mean themselves is taken off as well, from them and from the variance (Chan, Golub & LeVeque
// 1983, doi:10.1080/00031305.1983.10483115). The sum for the first mean is of differences from the
// first element: a constant row becomes exactly 0.
template <size_t R>
HWY_NOINLINE void LayerNormRows(const Rows& all, size_t row) {
  const Rows args = all.From(row);
  const TagLanes d;
  const TagRows d_rows;
  const VecRows share = hn::Set(d_rows, args.share);
  constexpr size_t kStep = R < 4 ? R : 4;

  float first[R];
  VecLanes
      near[R];  // a number near the mean: the first element, and then the mean but for rounding
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    first[r] = args.x[r * args.ldx];
    near[r] = hn::Set(d, first[r]);
  }
  const auto from_near = [&near](size_t r, VecLanes x) HWY_ATTR { return hn::Sub(x, near[r]); };
  float sums[1][R];
  SumTerms<Sums::kTerms>(args, from_near, sums);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows mean =
        hn::MulAdd(LoadRows<kStep>(sums[0] + r), share, LoadRows<kStep>(first + r));
    StoreRows<kStep>(mean, first + r);
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) near[r] = hn::Set(d, first[r]);
  float powers[2][R];
  SumTerms<Sums::kBoth>(args, from_near, powers);
  float rests[R];   // mean - near
  float scales[R];  // 1 / sqrt(variance + epsilon)
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows sum = LoadRows<kStep>(powers[0] + r);
    const VecRows rest = hn::Mul(sum, share);
    const VecRows squares = hn::NegMulAdd(sum, rest, LoadRows<kStep>(powers[1] + r));
    // Rounding may leave less than 0.
    const VecRows positive = hn::IfThenZeroElse(hn::Lt(squares, hn::Zero(d_rows)), squares);
    const VecRows epsilon = hn::Set(d_rows, args.epsilon_f32);
    StoreRows<kStep>(rest, rests + r);
    // A constant row without an epsilon: what is to be scaled is 0 then.
    StoreRows<kStep>(InverseOrZero(hn::Sqrt(hn::MulAdd(positive, share, epsilon))), scales + r);
  }
  VecLanes rest[R], scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    rest[r] = hn::Set(d, rests[r]);
    scale[r] = hn::Set(d, scales[r]);
  }
  WriteRows<R>(args, [&](size_t r, VecLanes x) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::Sub(x, near[r]), rest[r]), scale[r]);
  });
}

template <size_t R>
HWY_NOINLINE void RmsNormRows(const Rows& all, size_t row) {
  const Rows args = all.From(row);
  const TagLanes d;
  const TagRows d_rows;
  constexpr size_t kStep = R < 4 ? R : 4;
  float squares[1][R];
  SumTerms<Sums::kSquares>(
      args, [](size_t, VecLanes x) HWY_ATTR { return x; }, squares);
  float scales[R];  // 1 / sqrt(mean of squares + epsilon)
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows square = hn::MulAdd(LoadRows<kStep>(squares[0] + r), hn::Set(d_rows, args.share),
                                      hn::Set(d_rows, args.epsilon_f32));
    StoreRows<kStep>(InverseOrZero(hn::Sqrt(square)), scales + r);
  }
  VecLanes scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) scale[r] = hn::Set(d, scales[r]);
  WriteRows<R>(args, [&](size_t r, VecLanes x) HWY_ATTR { return hn::Mul(x, scale[r]); });
}

// Calls many(args, row), some(args, row) or one(args, row) until all rows are done.
using NormRows = void (*)(const Rows& args, size_t row);
HWY_INLINE void ForRows(const NormArgs& given, NormRows many, NormRows some, NormRows one) {
  const Rows args(given);
  size_t r = 0;
  if (kMoreRowsAtOnce > kRowsAtOnce && args.cols <= kMoreRowsCols) {
    for (; r + kMoreRowsAtOnce <= args.rows; r += kMoreRowsAtOnce) many(args, r);
  }
  for (; r + kRowsAtOnce <= args.rows; r += kRowsAtOnce) some(args, r);
  for (; r < args.rows; ++r) one(args, r);
}

void LayerNorm(const NormArgs& args) {
  ForRows(args, &LayerNormRows<kMoreRowsAtOnce>, &LayerNormRows<kRowsAtOnce>, &LayerNormRows<1>);
}

void RmsNorm(const NormArgs& args) {
  ForRows(args, &RmsNormRows<kMoreRowsAtOnce>, &RmsNormRows<kRowsAtOnce>, &RmsNormRows<1>);
}

constexpr NormKernels kNormKernels = {.layer_norm = &LayerNorm, .rms_norm = &RmsNorm};

const NormKernels* TargetNormKernels() { return &kNormKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetNormKernels);

const NormKernels& GetNormKernels() { return *ENCORE_DISPATCH(TargetNormKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
