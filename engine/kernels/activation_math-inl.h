// SPDX-License-Identifier: Apache-2.0
//
// The activations of a block, of a vector of f32: cheaper than those of vec_math-inl.h, right to an
// absolute error and not to ulps of small results.
//
// All are relu(x) - |x| f(|x|) with an f that falls from 1/2 to 0, out of a table of polynomials
// (activation_tables.h). The error before the last rounding stays below half an f32 ulp of x, so
// that all of it is below one. Exact at 0 and +-inf, 0 (of either sign) far below zero, x far
// above; NaN stays NaN. Only FMA, add, multiply, minima, compare, select, integer steps and
// look-ups, so every target with FMA gives the same bits. The largest errors below, in ulps of x
// (not of the result), are over all floats as printed by `encore verify`; targets without FMA
// round the polynomial twice as often, and are listed apart.

#include "engine/base/activations.h"
#include "engine/kernels/activation_tables.h"
#include "engine/kernels/round_magic.h"

#if defined(ENCORE_ENGINE_KERNELS_ACTIVATION_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_ACTIVATION_MATH_INL_H_
#undef ENCORE_ENGINE_KERNELS_ACTIVATION_MATH_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_ACTIVATION_MATH_INL_H_
#endif

#include "engine/kernels/lookup16-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f(x) of a vector: a specialisation for each row of base/activations.h.
template <Activation>
struct TileForm;

// max(x, 0); -0 and NaN stay as they are.
template <>
struct TileForm<Activation::kRelu> {
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
    return hn::Max(hn::Zero(d), x);  // the second where one is NaN or both are zeros
#else
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
#endif
  }
};

// The polynomial of the interval `index`, at u.
template <class D, class Index, class V = hn::Vec<D>>
HWY_INLINE V TailPolynomial(D d, const float (*power)[kTailIntervals], Index index, V u) {
  V p = Lookup16(d, power[kTailDegree], index);
  ENCORE_UNROLL
  for (int k = kTailDegree - 1; k >= 0; --k) p = hn::MulAdd(p, u, Lookup16(d, power[k], index));
  return p;
}

// relu(x) - |x| f(|x|), f given by a table.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinusEvenTail(D d, const EvenTail& table, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, kRoundMagic);
  const V a = hn::Min(hn::Abs(x), hn::Set(d, table.limit));
  const V rounded = hn::MulAdd(a, hn::Set(d, table.inverse_step), magic);
  const V u = hn::NegMulAdd(hn::Sub(rounded, magic), hn::Set(d, table.step), a);
  const V f = TailPolynomial(d, table.power, Index16(d, hn::BitCast(di, rounded)), u);
  return hn::NegMulAdd(a, f, TileForm<Activation::kRelu>::Of(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinusOctaveTail(D d, const OctaveTail& table, V x) {
  const hn::RebindToSigned<D> di;
  const V a = hn::Min(hn::Abs(x), hn::Set(d, table.limit));
  const V scaled = hn::MulAdd(a, hn::Set(d, table.scale), hn::Set(d, 2.0f));
  const auto index = Index16(d, hn::ShiftRight<21>(hn::BitCast(di, scaled)));
  const V u = hn::Sub(a, Lookup16(d, table.centre, index));
  return hn::NegMulAdd(a, TailPolynomial(d, table.power, index, u),
                       TileForm<Activation::kRelu>::Of(d, x));
}

// x Phi(x), Phi the normal distribution function. Largest error 0.8906 ulp of x, 0.3914 before the
// last rounding (without FMA 1.1659).
template <>
struct TileForm<Activation::kGelu> {
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
    return MinusEvenTail(d, kGeluTail, x);
  }
};

// x / (1 + e^-y), y = 2 sqrt(2 / pi) (x + 0.044715 x^3). Largest error 0.8542 ulp of x, 0.3542
// before the last rounding (without FMA 1.1298).
template <>
struct TileForm<Activation::kGeluTanh> {
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
    return MinusEvenTail(d, kGeluTanhTail, x);
  }
};

// x / (1 + e^-x). Largest error 0.7825 ulp of x, 0.2938 before the last rounding (without FMA
// 1.0644).
template <>
struct TileForm<Activation::kSilu> {
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
    return MinusOctaveTail(d, kSiluTail, x);
  }
};

// x / (1 + e^-(1.702 x)). Largest error 0.8009 ulp of x, 0.3047 before the last rounding (without
// FMA 1.0093).
template <>
struct TileForm<Activation::kQuickGelu> {
  template <class D, class V>
  static HWY_INLINE V Of(D d, V x) {
    return MinusOctaveTail(d, kQuickGeluTail, x);
  }
};

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_ACTIVATION_MATH_INL_H_
