// SPDX-License-Identifier: Apache-2.0
//
// Exp, Tanh, Gelu, GeluTanh, Silu of a vector of f32: the formulas, their ranges and largest
// errors. Not here: loops over arrays (elementwise.cc) and rows (softmax.cc).
//
// Only add, multiply, FMA, divide, min/max, compare, select and integer steps are used, so every
// target with FMA gives the same bits. Errors are over all floats, measured by `encore-ulp`, which
// tries every one of them; targets without FMA (SSE4, SSE2, EMU128) are listed apart. Unless said
// otherwise results may be subnormal and then hold the same bound, in ulps of the subnormal. The
// rounding mode must be to nearest, denormals must not be flushed. Coefficients come from
// tools/vec_math_coefficients.py.

#include <cstdint>

#include "engine/kernels/mills_table.h"

#if defined(ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#undef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Parts -------------------------------------------------------------------------------------

// Adding 1.5 * 2^23 rounds a float below 2^22 in magnitude to an integer (to nearest even), which
// the low bits of the sum then hold.
inline constexpr float kRoundMagic = 12582912.0f;

// a b - product, exactly, where product is the rounded a b: the error of a multiplication. Without
// FMA by Dekker's product (Numer. Math. 18, 1971) with both factors cut in halves by masking.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ProductError(D d, V a, V b, V product) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulSub(a, b, product);
#else
  const hn::RebindToUnsigned<D> du;
  const V upper_half = hn::BitCast(d, hn::Set(du, 0xFFFFF000u));
  const V a_high = hn::And(a, upper_half);
  const V b_high = hn::And(b, upper_half);
  const V a_low = hn::Sub(a, a_high);
  const V b_low = hn::Sub(b, b_high);
  V error = hn::Sub(hn::Mul(a_high, b_high), product);
  error = hn::Add(error, hn::Mul(a_high, b_low));
  error = hn::Add(error, hn::Mul(a_low, b_high));
  return hn::Add(error, hn::Mul(a_low, b_low));
#endif
}

// 2^i for integers i in [-126, 127], given the bits of kRoundMagic + 127 + i.
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI bits) {
  return hn::BitCast(d, hn::ShiftLeft<23>(bits));
}

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| <= 111. `rounded` is kRoundMagic + bias + n.
template <class V>
struct ExpReduction {
  V rounded;
  V n;
  V r_high;  // r = r_high - r_low, where |r_low| < 2^-12
  V r_low;
  V r;  // the same, rounded: off by 2^-26 at most
};

// Of x = x_high + x_low, |x_low| <= half an ulp of x_high. The product n * kLn2High is exact (8 and
// 16 bits), and so is the subtraction from x_high.
template <class D, class V = hn::Vec<D>>
HWY_INLINE ExpReduction<V> ReduceExp(D d, float bias, V x_high, V x_low) {
  const V log2_e = hn::Set(d, 1.442695022f);
  const V ln2_high = hn::Set(d, 0.693145751953125f);
  const V ln2_low = hn::Set(d, 1.428606765e-6f);
  const V magic = hn::Set(d, kRoundMagic + bias);
  const V rounded = hn::MulAdd(x_high, log2_e, magic);
  const V n = hn::Sub(rounded, magic);
  const V r_high = hn::NegMulAdd(n, ln2_high, x_high);
  const V r_low = hn::MulSub(n, ln2_low, x_low);
  return {rounded, n, r_high, r_low, hn::Sub(r_high, r_low)};
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; e^r made from it is off by 3.1e-9 of itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTail(D d, V r) {
  V q = hn::Set(d, 0.001381454756f);
  q = hn::MulAdd(q, r, hn::Set(d, 0.008368717507f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.04166838899f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.1666652113f));
  return hn::MulAdd(q, r, hn::Set(d, 0.4999999404f));
}

// e^r for |r| <= ln 2 / 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpSmall(D d, V r) {
  const V one = hn::Set(d, 1.0f);
  return hn::MulAdd(hn::MulAdd(ExpTail(d, r), r, one), r, one);
}

// e^r - 1 + extra for the r of a reduction and a tiny `extra`: rounded once, as
// r_high + (r^2 tail - r_low + extra).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1Small(D d, const ExpReduction<V>& x, V extra) {
  const V low = hn::Sub(x.r_low, extra);
  return hn::Add(x.r_high, hn::MulSub(hn::Mul(x.r, x.r), ExpTail(d, x.r), low));
}

// Where n may be as low as -159, 2^n is applied as 2^(n + 64) and then 2^-64: only the second
// product can be subnormal, so the result is rounded once.
inline constexpr float kDeepBias = 127 + 64;
inline constexpr float kDeepScale = 0x1p-64f;

// ---- Functions ---------------------------------------------------------------------------------

// e^x. 0 below -103.98, inf above 88.73. Largest error 1 ulp (measured 0.8942; without FMA 1.1641,
// promised 1.25).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Beyond these the result is 0 and inf; n stays within [-150, 128].
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const auto reduced = ReduceExp(d, 2 * 127, clamped, hn::Zero(d));
  // 2^n as 2^(n / 2) and the rest. The low bits hold n + 254, whose halves are biased by 127 each.
  const auto bits = hn::BitCast(di, reduced.rounded);
  const auto half = hn::ShiftRight<1>(bits);
  const V y = hn::Mul(hn::Mul(ExpSmall(d, reduced.r), PowerOfTwo(d, half)),
                      PowerOfTwo(d, hn::Sub(bits, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);  // min and max lose NaN on some targets
}

// e^x for x <= 0: softmax's own. Exactly 0 below -87 and at -inf, 1 at 0; NaN stays NaN. Right to
// 1.2 ulp + 3e-9 |x| of itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNonPositive(D d, V x) {
  const hn::RebindToSigned<D> di;
#if HWY_NATIVE_FMA
  // f32 ln 2 is right to 2.8e-9 of itself and the FMA rounds once: one step is enough.
  const V magic = hn::Set(d, kRoundMagic + 127);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.442695022f), magic);
  const V r = hn::NegMulAdd(hn::Sub(rounded, magic), hn::Set(d, 0.6931471825f), x);
#else
  const auto reduced = ReduceExp(d, 127, x, hn::Zero(d));
  const V rounded = reduced.rounded;
  const V r = reduced.r;
#endif
  const V y = hn::Mul(ExpSmall(d, r), PowerOfTwo(d, hn::BitCast(di, rounded)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), y);
}

// tanh x. Largest error 1.5 ulp (measured 1.0204; without FMA 1.0781).
//   |x| < 0.9:  x + x^3 P(x^2), P of degree 6, off by 1.1e-9 of tanh x
//   else:       1 - 2 / (e^(2 |x|) + 1) with the sign of x; from 9.02 on it is 1
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Abs(x);
  const V u = hn::Mul(a, a);
  V p = hn::Set(d, -0.0004554581246f);
  p = hn::MulAdd(p, u, hn::Set(d, 0.002582662273f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.008264536038f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.02166353725f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.05392929912f));
  p = hn::MulAdd(p, u, hn::Set(d, 0.1333297789f));
  p = hn::MulAdd(p, u, hn::Set(d, -0.3333332241f));
  const V small = hn::MulAdd(hn::Mul(a, u), p, a);

  const V clamped = hn::Min(a, hn::Set(d, 10.0f));
  const auto reduced = ReduceExp(d, 127, hn::Add(clamped, clamped), hn::Zero(d));
  const V power = PowerOfTwo(d, hn::BitCast(di, reduced.rounded));
  const V e = hn::Mul(ExpSmall(d, reduced.r), power);
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));

  // NaN compares false and goes through `small`.
  return hn::CopySign(hn::IfThenElse(hn::Ge(a, hn::Set(d, 0.9f)), large, small), x);
}

// table[index] in each lane; 0 <= index < 16.
template <class D, class VI>
HWY_INLINE hn::Vec<D> Lookup16(D d, const float* HWY_RESTRICT table, VI index) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::TableLookupLanes(hn::Load(d, table), hn::IndicesFromVec(d, index));
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    return hn::TwoTablesLookupLanes(d, hn::Load(d, table), hn::Load(d, table + 8),
                                    hn::IndicesFromVec(d, index));
  } else {
    return hn::GatherIndex(d, table, index);
  }
}

// high + low
template <class V>
struct TwoFloats {
  V high;
  V low;
};

// M(a) = Phi(-a) e^(a^2 / 2) for 0 <= a <= 14.5, off by 2^-26 of itself; anything for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE TwoFloats<V> Mills(D d, V a) {
  const hn::RebindToSigned<D> di;
  const V two = hn::Set(d, 2.0f);
  const auto bits = hn::BitCast(di, hn::MulAdd(a, two, two));
  const auto index = hn::And(hn::ShiftRight<21>(bits), hn::Set(di, kMillsIntervals - 1));
  const V u = hn::Sub(a, Lookup16(d, kMillsTable[0], index));
  V tail = Lookup16(d, kMillsTable[1 + kMillsDegree], index);
  for (int k = kMillsDegree - 1; k > 0; --k) {
    tail = hn::MulAdd(tail, u, Lookup16(d, kMillsTable[1 + k], index));
  }
  const V first = Lookup16(d, kMillsTable[1], index);
  const V high = hn::MulAdd(tail, u, first);
  return {high, hn::MulAdd(tail, u, hn::Sub(first, high))};
}

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)), the exact form of GELU (Hendrycks & Gimpel 2016,
// arXiv:1606.08415). Largest error 2 ulp (measured 1.6998; without FMA 1.9239). -0 below -14.4, x
// above 5.6.
//   Phi(-a) = M(a) e^(-a^2 / 2) with a^2 to twice the precision, so that nothing cancels
//   x < 0:  -a Phi(-a), the product a M(a) to twice the precision
//   x >= 0: x - x Phi(-x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const hn::RebindToSigned<D> di;
  // At 14.5 a Phi(-a) is 8e-47, and rounds to 0.
  const V a = hn::Min(hn::Abs(x), hn::Set(d, 14.5f));
  const V square = hn::Mul(a, a);
  const V square_low = ProductError(d, a, a, square);
  const V minus_half = hn::Set(d, -0.5f);
  const auto reduced =
      ReduceExp(d, kDeepBias, hn::Mul(square, minus_half), hn::Mul(square_low, minus_half));
  const V p = Expm1Small(d, reduced, hn::Zero(d));
  const V power = PowerOfTwo(d, hn::BitCast(di, reduced.rounded));

  const auto negative = hn::Lt(x, hn::Zero(d));  // false for NaN, which then comes out of x - ...
  const TwoFloats<V> mills = Mills(d, a);
  const V product = hn::Mul(mills.high, a);
  const V product_low = hn::MulAdd(mills.low, a, ProductError(d, mills.high, a, product));
  const V factor = hn::IfThenElse(negative, product, mills.high);
  const V factor_low = hn::IfThenElse(negative, product_low, mills.low);
  V tail = hn::Add(factor, hn::MulAdd(factor, p, factor_low));
  tail = hn::Mul(hn::Mul(tail, power), hn::Set(d, kDeepScale));
  return hn::IfThenElse(negative, hn::Neg(tail), hn::NegMulAdd(a, tail, x));
}

// x / (1 + e^y), y = y_high + y_low within [-110, 110] and of the other sign than x. With
// e^y = 2^n (1 + p) and s = 2^-|n| that is
//   n <= 0: x / ((1 + s) + s p)
//   n > 0:  x / ((1 + s) + p) s, which may become subnormal
// so that the divisor is rounded once. What 1 + s loses, for |n| >= 24, goes along with p.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V DivideByOnePlusExp(D d, V x, V y_high, V y_low) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const auto reduced = ReduceExp(d, 0.0f, y_high, y_low);
  const V deep_power = PowerOfTwo(
      d, hn::BitCast(di, hn::Sub(hn::Set(d, kRoundMagic + kDeepBias), hn::Abs(reduced.n))));
  const V deep_scale = hn::Set(d, kDeepScale);
  const V s = hn::Mul(deep_power, deep_scale);  // not below 2^-126 where it matters
  const V one_plus_s = hn::Add(one, s);
  const V lost = hn::Sub(s, hn::Sub(one_plus_s, one));
  const V p = Expm1Small(d, reduced, lost);
  const auto positive = hn::Gt(reduced.n, hn::Zero(d));
  const V divisor = hn::MulAdd(hn::IfThenElse(positive, one, s), p, one_plus_s);
  const V quotient = hn::Div(x, divisor);
  return hn::IfThenElse(positive, hn::Mul(hn::Mul(quotient, deep_power), deep_scale), quotient);
}

// x / (1 + e^-x) (also known as swish). Largest error 2 ulp (measured 1.6160; without FMA 1.6245).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Silu(D d, V x) {
  const V limit = hn::Set(d, 110.0f);  // 110 e^-110 rounds to 0
  const V low = hn::Neg(limit);
  const V numerator = hn::IfThenElse(hn::Lt(x, low), low, x);  // NaN stays
  const V y = hn::Max(hn::Min(hn::Neg(x), limit), low);
  return DivideByOnePlusExp(d, numerator, y, hn::Zero(d));
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + e^-y) with y = x (c1 + c3 x^2),
// which does not cancel in the negative tail. y is computed to twice the precision. Largest error 2
// ulp (measured 1.5686; without FMA 1.6120).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  // c1 = 2 sqrt(2 / pi), c3 = 0.044715 c1. 12 bits of c1_high leave room for exact differences.
  const V c1_high = hn::Set(d, 1.595703125f);
  const V c1_low = hn::Set(d, 6.599660264e-5f);
  const V c3_high = hn::Set(d, 0.0713548138738f);
  const V c3_low = hn::Set(d, 2.398832466e-9f);
  const V limit = hn::Set(d, 10.8f);  // 10.8 e^-y rounds to 0 there
  const V low = hn::Neg(limit);
  const V numerator = hn::IfThenElse(hn::Lt(x, low), low, x);  // NaN stays
  const V z = hn::Max(hn::Min(hn::Neg(x), limit), low);
  const V square = hn::Mul(z, z);
  const V square_low = ProductError(d, z, z, square);
  const V product = hn::Mul(square, c3_high);
  const V q_high = hn::Add(product, c1_high);
  V q_low = hn::Add(ProductError(d, square, c3_high, product), c1_low);
  q_low = hn::MulAdd(square_low, c3_high, hn::MulAdd(square, c3_low, q_low));
  q_low = hn::Add(q_low, hn::Sub(product, hn::Sub(q_high, c1_high)));
  const V y_high = hn::Mul(z, q_high);
  const V y_low = hn::MulAdd(z, q_low, ProductError(d, z, q_high, y_high));
  return DivideByOnePlusExp(d, numerator, y_high, y_low);
}

// max(x, 0); -0 and NaN stay as they are. Exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
