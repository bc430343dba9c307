// SPDX-License-Identifier: Apache-2.0
//
// The exponential of softmax: e^(scale x) of a vector of x <= 0 for a scale that is the same for a
// whole tile, and is part of the polynomial's coefficients, so that scores need no multiplication.

#include <cstdint>

#include "engine/kernels/round_magic.h"

#if defined(ENCORE_ENGINE_KERNELS_SOFTMAX_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_SOFTMAX_EXP_INL_H_
#undef ENCORE_ENGINE_KERNELS_SOFTMAX_EXP_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_SOFTMAX_EXP_INL_H_
#endif

#include "engine/kernels/lookup16-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The bits of f32 2^(i / 8) minus i << 20, for i mod 8 = 0 .. 7: adding N << 20, N = 8 n + i, makes
// 2^(N / 8) of them. The rounding of the powers costs 0.34 ulp at most. Twice, for vectors of 16.
alignas(64) inline constexpr int32_t kEighthPowerWords[16] = {
    0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7, 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7,
    0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7, 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7,
};

// The range of scales of ExpNonPositive; their cubes are far from the ends of f32's range.
inline constexpr float kLeastExpScale = 0x1p-20f;
inline constexpr float kLargestExpScale = 0x1p20f;

// y where not (x < lowest), so that NaN stays, and 0 elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ZeroBelow(D /*d*/, V x, V lowest, V y) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // g++ makes this a zeroing mask of y's last step, and of what Highway offers one step more.
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::Mask<D> keep{_mm512_cmp_ps_mask(x.raw, lowest.raw, _CMP_NLT_UQ)};
    return hn::IfThenElseZero(keep, y);
  }
#endif
  return hn::IfThenZeroElse(hn::Lt(x, lowest), y);
}

// What ExpNonPositive needs to know of a scale s.
struct ExpConstants {
  explicit ExpConstants(float s)
      : to_eighths(11.54156017f * s),
        square(0.5000644922f * (s * s)),
        cube(0.166668579f * (s * s * s)),
        scale(s),
        lowest(-87.0f / s) {
#if HWY_NATIVE_FMA
    eighth = 0.08664339781f / s;
    eighth_low = 0.0f;
#else
    // Upper bits and the rest: the product of the upper ones, at most 12, and N, at most 11, is
    // exact.
    const double exact = 0.086643397569993164 / static_cast<double>(s);
    const float rounded = static_cast<float>(exact);
    const float cut = rounded * 4097.0f;
    eighth = cut - (cut - rounded);
    eighth_low = static_cast<float>(exact - static_cast<double>(eighth));
#endif
  }

  float to_eighths;  // 8 s / ln 2
  float eighth;      // ln 2 / (8 s)
  float eighth_low;  // without FMA: what `eighth` lacks
  float square;      // e^(s r) = 1 + s r + square r^2 + cube r^3
  float cube;
  float scale;
  float lowest;  // below it the result is 0
};

// The same in vectors.
template <class D>
struct ExpVectors {
  HWY_INLINE ExpVectors(D d, const ExpConstants& c)
      : to_eighths(hn::Set(d, c.to_eighths)),
        eighth(hn::Set(d, c.eighth)),
        eighth_low(hn::Set(d, c.eighth_low)),
        square(hn::Set(d, c.square)),
        cube(hn::Set(d, c.cube)),
        scale(hn::Set(d, c.scale)),
        lowest(hn::Set(d, c.lowest)) {}

  hn::Vec<D> to_eighths, eighth, eighth_low, square, cube, scale, lowest;
};

// e^(s x) for x <= 0. Exactly 0 below -87 / s and at -inf, 1 at 0; NaN stays NaN. Right to 1.2 ulp
// + 3e-9 |s x| of itself where s is a power of two, and 6.3e-8 |s x| for any other s.
//   x = N ln 2 / (8 s) + r,  e^(s x) = 2^(N / 8) e^(s r), |s r| <= ln 2 / 16
// e^(s r) by a polynomial that is off by 2.6e-8, the power from a table of 8.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, const ExpVectors<D>& s, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, kRoundMagic);
  const V rounded = hn::MulAdd(x, s.to_eighths, magic);
  const V n = hn::Sub(rounded, magic);
#if HWY_NATIVE_FMA
  const V r = hn::NegMulAdd(n, s.eighth, x);
#else
  const V r = hn::Sub(hn::Sub(x, hn::Mul(n, s.eighth)), hn::Mul(n, s.eighth_low));
#endif
  const auto bits = hn::BitCast(di, rounded);
  const V power = hn::BitCast(
      d, hn::Add(Lookup8(di, kEighthPowerWords, Index8(di, bits)), hn::ShiftLeft<20>(bits)));
  const V tail = hn::MulAdd(hn::MulAdd(s.cube, r, s.square), r, s.scale);
  const V y = hn::MulAdd(power, hn::Mul(tail, r), power);
  return ZeroBelow(d, x, s.lowest, y);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_SOFTMAX_EXP_INL_H_
