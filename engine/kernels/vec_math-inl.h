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

#include "engine/kernels/vec_math_tables.h"

#if defined(ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#undef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#endif

#include "engine/kernels/lookup16-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Parts -------------------------------------------------------------------------------------

// Adding 1.5 * 2^23 rounds a float below 2^22 in magnitude to an integer (to nearest even), which
// the low bits of the sum then hold.
inline constexpr float kRoundMagic = 12582912.0f;

inline constexpr float kLog2E = 1.442695022f;
inline constexpr float kLn2High = 0.693145751953f;  // 16 bits
inline constexpr float kLn2Low = 1.428606765e-6f;

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

// min(x, high) and max(x, low); NaN stays NaN, and max(+-0, -0) = +-0. Of two zeros, or where one
// is NaN, x86 gives the second operand; other targets differ.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MinKeepNaN(D d, V x, float high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return hn::Min(hn::Set(d, high), x);
#else
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, high)), hn::Set(d, high), x);
#endif
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MaxKeepNaN(D d, V x, float low) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return hn::Max(hn::Set(d, low), x);
#else
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, low)), hn::Set(d, low), x);
#endif
}

// Whether there is an instruction for y 2^n of any n, rounded once.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
inline constexpr bool kHasScale = true;
HWY_INLINE hn::Vec512<float> Scale(hn::Vec512<float> y, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(y.raw, n.raw)};
}
#else
inline constexpr bool kHasScale = false;
template <class V>
V Scale(V y, V n);
#endif

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
  const V magic = hn::Set(d, kRoundMagic + bias);
  const V rounded = hn::MulAdd(x_high, hn::Set(d, kLog2E), magic);
  const V n = hn::Sub(rounded, magic);
  const V r_high = hn::NegMulAdd(n, hn::Set(d, kLn2High), x_high);
  const V r_low = hn::MulSub(n, hn::Set(d, kLn2Low), x_low);
  return {rounded, n, r_high, r_low, hn::Sub(r_high, r_low)};
}

inline constexpr float kExpTail[] = {0.4999999404f, 0.1666652113f, 0.04166838899f, 0.008368717507f,
                                     0.001381454756f};

// (-2)^k
constexpr float MinusTwoPower(int k) {
  return (k % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(1 << k);
}

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; e^r made from it is off by 3.1e-9 of itself.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpTail(D d, V r) {
  V q = hn::Set(d, kExpTail[4]);
  q = hn::MulAdd(q, r, hn::Set(d, kExpTail[3]));
  q = hn::MulAdd(q, r, hn::Set(d, kExpTail[2]));
  q = hn::MulAdd(q, r, hn::Set(d, kExpTail[1]));
  return hn::MulAdd(q, r, hn::Set(d, kExpTail[0]));
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

// e^x. 0 below -103.98, inf above 88.73. Largest error 1 ulp (measured 0.8750; without FMA 0.8949).
// Monotone.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Beyond these the result is 0 and inf; n stays within [-150, 128].
  const V clamped = MinKeepNaN(d, MaxKeepNaN(d, x, -104.0f), 89.0f);
  const V magic = hn::Set(d, kRoundMagic + 2 * 127);
  const V rounded = hn::MulAdd(clamped, hn::Set(d, kLog2E), magic);
  const V n = hn::Sub(rounded, magic);
  const V r_high = hn::NegMulAdd(n, hn::Set(d, kLn2High), clamped);  // exact
  const V r_low = hn::Mul(n, hn::Set(d, kLn2Low));
  const V r = hn::Sub(r_high, r_low);
  // r_high goes in unrounded, and what else is rounded before the sums is too small to break the
  // order of the results.
  const V p = hn::Add(r_high, hn::MulSub(hn::Mul(r, r), ExpTail(d, r), r_low));
  const V y = hn::Add(p, hn::Set(d, 1.0f));
  if constexpr (kHasScale && hn::MaxLanes(D()) == 16) {
    return Scale(y, n);
  } else {
    // 2^n as 2^(n / 2) and the rest. The low bits hold n + 254, whose halves are biased by 127
    // each. The first product is exact.
    const auto bits = hn::BitCast(di, rounded);
    const auto half = hn::ShiftRight<1>(bits);
    return hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(bits, half)));
  }
}

// Which of 16 intervals a >= 0 is in, with four intervals an octave of scale * a + 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE auto OctaveIndex(D d, V a, float scale) {
  const hn::RebindToSigned<D> di;
  const V scaled = hn::MulAdd(a, hn::Set(d, scale), hn::Set(d, 2.0f));
  return Index16(d, hn::ShiftRight<21>(hn::BitCast(di, scaled)));
}

// sum_{k >= 1} c[k] u^(k - 1), the c[k] those of an interval in coefficients[k].
template <int kDegree, class D, class Index, class V = hn::Vec<D>>
HWY_INLINE V UpperTerms(D d, const float (*coefficients)[kIntervals], Index index, V u) {
  V p = Lookup16(d, coefficients[kDegree], index);
  ENCORE_UNROLL
  for (int k = kDegree - 1; k > 0; --k) p = hn::MulAdd(p, u, Lookup16(d, coefficients[k], index));
  return p;
}

// tanh x by a table of polynomials. Largest error 1.5 ulp (measured 0.8129; without FMA 0.9744). 1
// from 9.02 on. Monotone.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V a = MinKeepNaN(d, hn::Abs(x), kTanhLimit);
  const auto index = OctaveIndex(d, a, kTanhScale);
  const V u = hn::Sub(a, Lookup16(d, kTanhTable[0], index));
  const V p = UpperTerms<kTanhDegree>(d, kTanhTable + 1, index, u);
  // In the first interval c[0] is 0, and the polynomial is what a lacks.
  const V start = hn::Max(hn::Min(a, hn::Set(d, kTanhFirstEnd)), Lookup16(d, kTanhTable[1], index));
  return hn::CopySign(hn::MulAdd(p, u, start), x);
}

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)), the exact form of GELU (Hendrycks & Gimpel 2016,
// arXiv:1606.08415). Largest error 2 ulp (measured 1.8360; without FMA 1.8149). -0 below -14.4, x
// above 5.6.
//   relu(x) - a Phi(-a) with a = |x|, the second term g(a) / 2 e^(-a^2 / 2), g from a table and
//   e^(-a^2 / 2) = 2^n e^(-r / 2) with r = a^2 + 2 n ln 2, |r| <= ln 2, and a^2 to twice the
//   precision
// The two polynomials take turns, which hides much of their latency.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Gelu(D d, V x) {
  const hn::RebindToSigned<D> di;
  // At 14.5 a Phi(-a) is 8e-47, and rounds to 0.
  const V a = hn::Min(hn::Abs(x), hn::Set(d, kGeluLimit));
  const V square = hn::Mul(a, a);
  const auto index = OctaveIndex(d, a, kGeluScale);
  const V magic = hn::Set(d, kRoundMagic + kDeepBias);
  const V rounded = hn::MulAdd(square, hn::Set(d, -0.5f * kLog2E), magic);
  const V n = hn::Sub(rounded, magic);
  const V u = hn::Sub(a, Lookup16(d, kGeluTable[0], index));
  const V r_high = hn::MulAdd(n, hn::Set(d, 2 * kLn2High), square);  // exact
  const V r_low = hn::MulAdd(n, hn::Set(d, 2 * kLn2Low), ProductError(d, a, a, square));
  const V r = hn::Add(r_high, r_low);

  const auto c = [&](int k) HWY_ATTR { return Lookup16(d, kGeluTable[1 + k], index); };
  const auto e = [&](int k) HWY_ATTR { return hn::Set(d, kExpTail[k] / MinusTwoPower(k + 2)); };
  V p = hn::MulAdd(c(6), u, c(5));
  V q = hn::MulAdd(e(4), r, e(3));  // q = (e^(-r / 2) - 1) / r
  p = hn::MulAdd(p, u, c(4));
  q = hn::MulAdd(q, r, e(2));
  p = hn::MulAdd(p, u, c(3));
  q = hn::MulAdd(q, r, e(1));
  p = hn::MulAdd(p, u, c(2));
  q = hn::MulAdd(q, r, e(0));
  p = hn::MulAdd(p, u, c(1));
  q = hn::MulAdd(q, r, hn::Set(d, -0.5f));
  // In the first interval c(0) is 0, and the polynomial is what a lacks.
  const V start = hn::Max(hn::Min(a, hn::Set(d, kGeluFirstEnd)), c(0));
  const V g = hn::MulAdd(p, u, start);
#if HWY_NATIVE_FMA
  V tail = hn::MulAdd(hn::Mul(g, r), q, g);
#else
  const V g_low =
      hn::MulAdd(p, u, hn::Sub(start, g));  // what g lost, to make up for more roundings
  V tail = hn::Add(g, hn::MulAdd(hn::Mul(g, r), q, g_low));
#endif
  if constexpr (kHasScale && hn::MaxLanes(D()) == 16) {
    tail = Scale(tail, n);
  } else {
    tail = hn::Mul(hn::Mul(tail, PowerOfTwo(d, hn::BitCast(di, rounded))), hn::Set(d, kDeepScale));
  }
  return hn::NegMulAdd(tail, hn::Set(d, 0.5f), MaxKeepNaN(d, x, -0.0f));
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
