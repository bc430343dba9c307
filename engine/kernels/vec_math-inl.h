// SPDX-License-Identifier: Apache-2.0
//
// Exp, Tanh, Gelu, GeluTanh, Silu of a few vectors of f32 in lockstep: the formulas, their ranges
// and largest errors.
//
// Only add, multiply, FMA, divide, min/max, compare, select and integer steps are used, so every
// target with FMA gives the same bits. Errors are over all floats, measured by `encore verify`,
// which tries every one of them; targets without FMA (SSE4, SSE2, EMU128) are listed apart. Unless
// said otherwise results may be subnormal and then hold the same bound, in ulps of the subnormal.
// The rounding mode must be to nearest, denormals must not be flushed. Coefficients are made by
// tests/make/vec_math_coefficients.py.

#include <cstdint>

#include "engine/kernels/round_magic.h"
#include "engine/kernels/vec_math_tables.h"

#if defined(ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#undef ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
#endif

#include "engine/kernels/lockstep-inl.h"
#include "engine/kernels/lookup16-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// In all that follows V is a vector of D, for constants, and X a Lockstep of them.

// ---- Parts -------------------------------------------------------------------------------------

inline constexpr float kLog2E = 1.442695022f;
inline constexpr float kLn2High = 0.693115234375f;  // 12 bits
inline constexpr float kLn2Low = 3.19461833e-5f;

// a b - product, exactly, where product is the rounded a b: the error of a multiplication. Without
// FMA by Dekker's product (Numer. Math. 18, 1971) with both factors cut in halves by masking.
template <class D, class A, class B, class X>
HWY_INLINE X ProductError(D d, const A& a, const B& b, const X& product) {
#if HWY_NATIVE_FMA
  (void)d;
  return each::MulSub(a, b, product);
#else
  const hn::RebindToUnsigned<D> du;
  const auto upper_half = hn::BitCast(d, hn::Set(du, 0xFFFFF000u));
  const auto a_high = each::And(a, upper_half);
  const auto b_high = each::And(b, upper_half);
  const auto a_low = each::Sub(a, a_high);
  const auto b_low = each::Sub(b, b_high);
  X error = each::Sub(each::Mul(a_high, b_high), product);
  error = each::Add(error, each::Mul(a_high, b_low));
  error = each::Add(error, each::Mul(a_low, b_high));
  return each::Add(error, each::Mul(a_low, b_low));
#endif
}

// 2^i for integers i in [-126, 127], given the bits of kRoundMagic + 127 + i.
template <class D, class X>
HWY_INLINE X PowerOfTwo(D d, const X& rounded) {
  const hn::RebindToSigned<D> di;
  return each::BitCast(d, each::ShiftLeft<23>(each::BitCast(di, rounded)));
}

// min(x, high) and max(x, low); NaN stays NaN, and max(+-0, 0) is +-0. Of two zeros, or where
// one is NaN, x86 gives the second operand; other targets differ.
template <class D, class X>
HWY_INLINE X MinKeepNaN(D d, const X& x, float high) {
  const auto limit = hn::Set(d, high);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return each::Min(limit, x);
#else
  return each::IfThenElse(each::Gt(x, limit), limit, x);
#endif
}
template <class D, class X>
HWY_INLINE X MaxKeepNaN(D d, const X& x, float low) {
  const auto limit = hn::Set(d, low);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return each::Max(limit, x);
#else
  return each::IfThenElse(each::Lt(x, limit), limit, x);
#endif
}

// max(x, -0); +-0 and NaN stay as they are.
template <class D, class X>
HWY_INLINE X MaxMinusZero(D d, const X& x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  return each::Max(hn::Set(d, -0.0f), x);
#else
  // In portable code clang 14 turns the choice between x and a constant -0 into a maximum, and
  // makes -0 of 0.
  return each::IfThenElse(each::Lt(x, hn::Zero(d)), each::And(x, hn::SignBit(d)), x);
#endif
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Whether there is an instruction for y 2^floor(n) of any n, rounded once.
template <class D>
inline constexpr bool kHasScale = hn::MaxLanes(D()) == 16;
template <class X>
HWY_INLINE X Scale(const X& y, const X& n) {
  const auto scale = [](const auto& a, const auto& b)
                         HWY_ATTR { return hn::Vec512<float>{_mm512_scalef_ps(a.raw, b.raw)}; };
  return each::Call(scale, y, n);
}
// x within [-limit, limit]; limit for NaN.
template <class D, class X>
HWY_INLINE X ClampMagnitude(D, const X& x, float limit) {
  const auto clamp = [limit](const auto& a) HWY_ATTR {
    return hn::Vec512<float>{_mm512_range_ps(a.raw, _mm512_set1_ps(limit), 2)};
  };
  return each::Call(clamp, x);
}
#else
template <class D>
inline constexpr bool kHasScale = false;
template <class X>
X Scale(const X& y, const X& n);
template <class D, class X>
X ClampMagnitude(D, const X& x, float limit);
#endif

// Where n may be as low as -159, 2^n is applied as 2^(n + 64) and then 2^-64: only the second
// product can be subnormal, so the result is rounded once.
inline constexpr float kDeepBias = 127 + 64;
inline constexpr float kDeepScale = 0x1p-64f;

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; e^r made from it is off by 3.1e-9 of itself.
inline constexpr float kExpTail[] = {0.4999999404f, 0.1666652113f, 0.04166838899f, 0.008368717507f,
                                     0.001381454756f};
// The same for |r| <= ln 2 / 16, and 1.7e-10.
inline constexpr float kExpEighthTail[] = {0.5f, 0.1666802615f, 0.04166044667f};

// (-2)^k
constexpr float MinusTwoPower(int k) {
  return (k % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(1 << k);
}

// table[i] in each lane of each vector, from Index16 or Index8 of i.
template <class D, class Index>
HWY_INLINE auto LookupEach16(D d, const float* table, const Index& index) {
  return each::Call([&](const auto& i) HWY_ATTR { return Lookup16(d, table, i); }, index);
}
template <class D, class T, class Index>
HWY_INLINE auto LookupEach8(D d, const T* table, const Index& index) {
  return each::Call([&](const auto& i) HWY_ATTR { return Lookup8(d, table, i); }, index);
}

// Which of 16 intervals a >= 0 is in, with four intervals an octave of scale * a + 2.
template <class D, class X>
HWY_INLINE auto OctaveIndex(D d, const X& a, float scale) {
  const hn::RebindToSigned<D> di;
  const X scaled = each::MulAdd(a, hn::Set(d, scale), hn::Set(d, 2.0f));
  const auto bits = each::ShiftRight<21>(each::BitCast(di, scaled));
  return each::Call([&](const auto& b) HWY_ATTR { return Index16(d, b); }, bits);
}

// ---- Functions ---------------------------------------------------------------------------------

// e^x. 0 below -103.98, inf above 88.73. Largest error 1 ulp (measured 0.7852; without FMA 0.7712).
// Monotone.
//   e^x = 2^n 2^(i / 8) e^r with x = (n + i / 8) ln 2 + r, |r| <= ln 2 / 16
// 2^(i / 8) is in a table, and its rounding error is added to e^r - 1, which is small
// enough for its own roundings to matter little.
template <class D, class X>
HWY_INLINE X Exp(D d, X x) {
  const hn::RebindToSigned<D> di;
  // Beyond these the result is 0 and inf; n stays within [-151, 128].
  if constexpr (!kHasScale<D>) x = MinKeepNaN(d, MaxKeepNaN(d, x, -104.0f), 89.0f);
  const auto magic = hn::Set(d, kEighthMagic + 2 * 127);
  const X rounded = each::MulAdd(x, hn::Set(d, kLog2E), magic);
  const X n = each::Sub(rounded, magic);              // n + i / 8
  X r = each::NegMulAdd(n, hn::Set(d, kLn2High), x);  // exact: 11 and 12 bits
  r = each::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  // Scale makes 0, inf and NaN of what has such an n, provided that r is harmless.
  if constexpr (kHasScale<D>) r = ClampMagnitude(d, r, 0.0625f);
  const auto bits = each::BitCast(di, rounded);
  const auto index = each::Call([&](const auto& b) HWY_ATTR { return Index8(d, b); }, bits);
  X q = each::MulAdd(r, hn::Set(d, kExpEighthTail[2]), hn::Set(d, kExpEighthTail[1]));
  q = each::MulAdd(q, r, hn::Set(d, kExpEighthTail[0]));
  // r goes in as a summand: as a factor of the whole, the other one's roundings break the order.
  const X linear = each::Add(r, LookupEach8(d, kEighthPowersLow, index));
  q = each::MulAdd(each::Mul(r, r), q, linear);
  if constexpr (kHasScale<D>) {
    const X power = LookupEach8(d, kEighthPowers, index);
    return Scale(each::MulAdd(power, q, power), n);
  } else {
    // The low bits hold 8 (n + 254) + i. 2^n alone may leave the range of floats, so it is applied
    // as two factors that cannot: 2^h with h about n / 2, and 2^(n - h), which is put into the
    // exponent of 2^(i / 8).
    const auto half = each::ShiftLeft<23>(each::ShiftRight<4>(bits));
    const auto rest = each::Sub(each::ShiftLeft<20>(bits), half);
    const auto eighth = each::BitCast(di, LookupEach8(d, kEighthPowerBits, index));
    const X power = each::BitCast(d, each::Add(eighth, rest));
    return each::Mul(each::MulAdd(power, q, power), each::BitCast(d, half));
  }
}

// tanh x by a table of polynomials. Largest error 1.5 ulp (measured 0.8129; without FMA 0.9744). 1
// from 9.02 on. Monotone.
template <class D, class X>
HWY_INLINE X Tanh(D d, const X& x) {
  const X a = MinKeepNaN(d, each::Abs(x), kTanhLimit);
  const auto index = OctaveIndex(d, a, kTanhScale);
  const X u = each::Sub(a, LookupEach16(d, kTanhTable[0], index));
  X p = LookupEach16(d, kTanhTable[1 + kTanhDegree], index);
  ENCORE_UNROLL
  for (int k = kTanhDegree - 1; k > 0; --k) {
    p = each::MulAdd(p, u, LookupEach16(d, kTanhTable[1 + k], index));
  }
  // In the first interval c[0] is 0, and the polynomial is what a lacks.
  const X start =
      each::Max(each::Min(a, hn::Set(d, kTanhFirstEnd)), LookupEach16(d, kTanhTable[1], index));
  return each::CopySign(each::MulAdd(p, u, start), x);
}

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)), the exact form of GELU (Hendrycks & Gimpel 2016,
// arXiv:1606.08415). Largest error 2 ulp (measured 1.8360; without FMA 1.8149). -0 below -14.4, x
// above 5.6.
//   relu(x) - a Phi(-a) with a = |x|, the second term g(a) / 2 e^(-a^2 / 2), g from a table and
//   e^(-a^2 / 2) = 2^n e^(-r / 2) with r = a^2 + 2 n ln 2, |r| <= ln 2, and a^2 to twice the
//   precision
// The two polynomials alternate, which hides much of their latency.
template <class D, class X>
HWY_INLINE X Gelu(D d, const X& x) {
  // At 14.5 a Phi(-a) is 8e-47, and rounds to 0.
  const X a = each::Min(each::Abs(x), hn::Set(d, kGeluLimit));
  const X square = each::Mul(a, a);
  const auto index = OctaveIndex(d, a, kGeluScale);
  const auto magic = hn::Set(d, kRoundMagic + kDeepBias);
  const X rounded = each::MulAdd(square, hn::Set(d, -0.5f * kLog2E), magic);
  const X n = each::Sub(rounded, magic);
  const X u = each::Sub(a, LookupEach16(d, kGeluTable[0], index));
  const X r_high = each::MulAdd(n, hn::Set(d, 2 * kLn2High), square);  // exact: 8 and 12 bits
  const X r_low = each::MulAdd(n, hn::Set(d, 2 * kLn2Low), ProductError(d, a, a, square));
  X r = each::Add(r_high, r_low);
  each::Meet(r);

  const auto c = [&](int k) HWY_ATTR { return LookupEach16(d, kGeluTable[1 + k], index); };
  const auto e = [&](int k) HWY_ATTR { return hn::Set(d, kExpTail[k] / MinusTwoPower(k + 2)); };
  X p = each::MulAdd(c(6), u, c(5));
  X q = each::MulAdd(r, e(4), e(3));  // q = (e^(-r / 2) - 1) / r
  p = each::MulAdd(p, u, c(4));
  q = each::MulAdd(q, r, e(2));
  each::Meet(p);
  each::Meet(q);
  p = each::MulAdd(p, u, c(3));
  q = each::MulAdd(q, r, e(1));
  p = each::MulAdd(p, u, c(2));
  q = each::MulAdd(q, r, e(0));
  each::Meet(p);
  each::Meet(q);
  p = each::MulAdd(p, u, c(1));
  q = each::MulAdd(q, r, hn::Set(d, -0.5f));
  // In the first interval c(0) is 0, and the polynomial is what a lacks.
  const X start = each::Max(each::Min(a, hn::Set(d, kGeluFirstEnd)), c(0));
  const X g = each::MulAdd(p, u, start);
#if HWY_NATIVE_FMA
  X tail = each::MulAdd(each::Mul(g, r), q, g);
#else
  // What g lost, to make up for more roundings.
  const X g_low = each::MulAdd(p, u, each::Sub(start, g));
  X tail = each::Add(g, each::MulAdd(each::Mul(g, r), q, g_low));
#endif
  // The tail may be subnormal where x < 0, and is rounded once, as what it is taken from is 0
  // there.
  tail = each::Mul(tail, PowerOfTwo(d, rounded));
  return each::NegMulAdd(tail, hn::Set(d, 0.5f * kDeepScale), MaxMinusZero(d, x));
}

// (b^r - 1) / r as a polynomial c, for the base b = e^(1 / per_log) and |r| <= log_b(2) / 2. b^r
// made from it is off by 2e-9 of itself.
struct ExpSlope {
  float per_log;
  float c[6];
};
inline constexpr ExpSlope kSlopeOfE = {
    1.0f, {1.0f, 0.4999999404f, 0.1666643173f, 0.04166800156f, 0.008374164812f, 0.001384370727f}};
inline constexpr ExpSlope kSlopeOf2 = {kLog2E,
                                       {0.6931471825f, 0.2402264774f, 0.05550332367f,
                                        0.009618436918f, 0.001339889015f, 0.0001535342162f}};

// x / (1 + 2^n b^r) with the divisor in the form 1 + 2^n + 2^n r q, q = (b^r - 1) / r, all of it
// times 2^-32 lest it overflow. n may be from -60 to 159; `rounded` is kRoundMagic + kQuotientBias
// + n. 1 + 2^n is exact for |n| < 24, the rest of the divisor rounded once. Above that, what of the
// 1 is lost is added to 2^n r for want of a place that needs no further rounding: times the log of
// b, q is within a fifth of 1.
inline constexpr float kQuotientBias = 127 - 32;
inline constexpr float kQuotientScale = 0x1p-32f;

// (2^-32 - kept) / log b
template <const ExpSlope& kSlope, class D, class X>
HWY_INLINE X LostOfOne(D d, const X& kept) {
  constexpr float kPerLog = kSlope.per_log;
  if constexpr (kPerLog == 1.0f) return each::Sub(hn::Set(d, kQuotientScale), kept);
  const auto one = hn::Set(d, kPerLog * kQuotientScale);
  return each::NegMulAdd(kept, hn::Set(d, kPerLog), one);
}

template <const ExpSlope& kSlope, class D, class X>
HWY_INLINE X DivideByOnePlusPower(D d, const X& x, const X& rounded, const X& r) {
  const auto c = [&](int k) HWY_ATTR { return hn::Set(d, kSlope.c[k]); };
  const auto scale = hn::Set(d, kQuotientScale);
  const X power = PowerOfTwo(d, rounded);
  X q = each::MulAdd(r, c(5), c(4));
  const X sum = each::Add(power, scale);
  q = each::MulAdd(q, r, c(3));
  const X kept = each::Sub(sum, power);
  q = each::MulAdd(q, r, c(2));
  const X lost = LostOfOne<kSlope>(d, kept);
  q = each::MulAdd(q, r, c(1));
  const X power_r = each::MulAdd(power, r, lost);  // exact where nothing was lost
  q = each::MulAdd(q, r, c(0));
#if HWY_NATIVE_FMA
  return each::Mul(each::Div(x, each::MulAdd(power_r, q, sum)), scale);
#else
  // With what the divisor lost, to make up for more roundings.
  const X product = each::Mul(power_r, q);
  const X divisor = each::Add(sum, product);
  const X divisor_low = each::Sub(product, each::Sub(divisor, sum));
  const X y = each::Div(x, divisor);
  const X mended = each::Sub(y, each::Mul(y, each::Div(divisor_low, divisor)));
  return each::Mul(each::CopySign(mended, x), scale);  // -0 - -0 is 0
#endif
}

// x / (1 + e^-x) (also known as swish). Largest error 2 ulp (measured 1.8178; without FMA 1.8533).
// -0 below -108.7, x above 20.
template <class D, class X>
HWY_INLINE X Silu(D d, const X& x) {
  const X numerator = MaxKeepNaN(d, x, -110.0f);  // 110 e^-110 rounds to 0
  const auto limit = hn::Set(d, 20.0f);           // above it the divisor rounds to 1
  const X z = each::Min(numerator, limit);
  const auto magic = hn::Set(d, kRoundMagic + kQuotientBias);
  const X rounded = each::NegMulAdd(z, hn::Set(d, kLog2E), magic);
  const X n = each::Sub(rounded, magic);
  // -x = n ln 2 + r
  X r = each::NegMulSub(n, hn::Set(d, kLn2High), z);  // exact: 8 and 12 bits
  r = each::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  const X y = DivideByOnePlusPower<kSlopeOfE>(d, numerator, rounded, r);
  return each::IfThenElse(each::Gt(x, limit), x, y);
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + 2^-y) with y = x (k1 + k3 x^2),
// which does not cancel in the negative tail. y is computed to twice the precision. Largest error 2
// ulp (measured 1.9414; without FMA 1.8108). -0 below -10.8, x above 5.5.
template <class D, class X>
HWY_INLINE X GeluTanh(D d, const X& x) {
  // k1 = 2 sqrt(2 / pi) / ln 2, k3 = 0.044715 k1. 22 bits of k1 leave room for exact differences.
  const auto k1 = hn::Set(d, 2.30220794677734f);
  const auto k1_low = hn::Set(d, 2.513669699e-7f);
  const auto k3 = hn::Set(d, 0.1029432416f);
  const auto k3_low = hn::Set(d, -2.016198541e-9f);
  const X numerator = MaxKeepNaN(d, x, -10.8f);  // 10.8 2^-y rounds to 0 there
  const auto limit = hn::Set(d, 5.5f);           // above it the divisor rounds to 1
  const X z = each::Min(numerator, limit);
  const auto magic = hn::Set(d, kRoundMagic + kQuotientBias);
  const X square = each::Mul(z, z);
  const X square_low = ProductError(d, z, z, square);
  const X small = each::MulAdd(square_low, k3, each::MulAdd(square, k3_low, k1_low));
  // y = z (q + q_low), -y = n + r
#if HWY_NATIVE_FMA
  const X q = each::MulAdd(square, k3, k1);
  const X rounded = each::NegMulAdd(z, q, magic);
  const X n = each::Sub(rounded, magic);
  const X q_low = each::Add(small, each::MulAdd(square, k3, each::Sub(k1, q)));
  const X r = each::NegMulAdd(z, q_low, each::NegMulSub(z, q, n));
#else
  const X product = each::Mul(square, k3);
  const X q = each::Add(product, k1);
  const X q_error = each::Sub(product, each::Sub(q, k1));
  const X q_low = each::Add(q_error, each::Add(small, ProductError(d, square, k3, product)));
  const X y = each::Mul(z, q);
  const X y_low = each::MulAdd(z, q_low, ProductError(d, z, q, y));
  const X rounded = each::Sub(magic, y);
  const X n = each::Sub(rounded, magic);
  const X r = each::Neg(each::Add(each::Add(n, y), y_low));
#endif
  const X divided = DivideByOnePlusPower<kSlopeOf2>(d, numerator, rounded, r);
  return each::IfThenElse(each::Gt(x, limit), x, divided);
}

// max(x, 0); -0 and NaN stay as they are. Exact.
template <class D, class X>
HWY_INLINE X Relu(D d, const X& x) {
  return MaxKeepNaN(d, x, 0.0f);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_VEC_MATH_INL_H_
