// SPDX-License-Identifier: Apache-2.0
//
// The formulas. The exponential is a Taylor polynomial, whose remainder bounds its error; the
// normal distribution's tail is a Chebyshev interpolation of the C library's erfc, made when it is
// first used.

#include "reference/exhaustive/fast_reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

// A second copy for vectors of AVX2, chosen when the program starts; not where a sanitizer's calls
// would come before it is ready. No FMA comes of it (-ffp-contract=off): the results are the same.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ENCORE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define ENCORE_WIDE
#endif

namespace encore::tool {
namespace {

// z = n ln 2 + r, |r| <= ln 2 / 2 (1 + 2^-50), for |z| <= 700.
struct Reduced {
  double r;
  double power;  // 2^n
};

inline Reduced Reduce(double z) {
  constexpr double kMagic = 0x1.8p52;  // adding it rounds to an integer, in the low bits
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kLn2High = 0x1.62e42feep-1;  // 33 bits: n times it is exact
  constexpr double kLn2Low = 1.9082149292705877e-10;
  const double rounded = z * kLog2E + kMagic;
  const double n = rounded - kMagic;
  const uint64_t exponent = (std::bit_cast<uint64_t>(rounded) + 1023) << 52;
  return {(z - n * kLn2High) - n * kLn2Low, std::bit_cast<double>(exponent)};
}

// e^r - 1 by its Taylor series to r^12; the rest is below r^13 / 13! e^|r| <= 2.4e-16, and below
// 2^-50 of the result.
inline double ExpM1(double r) {
  double p = 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  return r + r * r * p;
}

inline double Min(double a, double b) { return a < b ? a : b; }
inline double Max(double a, double b) { return a > b ? a : b; }

// e^z; beyond e^-700 and e^700 that.
inline double Exp(double z) {
  const Reduced reduced = Reduce(Min(Max(z, -700.0), 700.0));
  return reduced.power + reduced.power * ExpM1(reduced.r);
}

// The upper tail of the normal distribution times e^(a^2 / 2), for 0 <= a <= kTailEnd, as a
// polynomial in u, which is linear in 1 / (a + kTailShift). Shift and degree were tried out: the
// coefficients fall to 3e-17 of the first.
constexpr double kTailEnd = 17;
constexpr double kTailShift = 4;
constexpr int kTailDegree = 20;  // a multiple of 4
constexpr double kFirstW = 1 / kTailShift;
constexpr double kLastW = 1 / (kTailEnd + kTailShift);
constexpr double kMidW = (kFirstW + kLastW) / 2;
constexpr double kHalfW = (kFirstW - kLastW) / 2;

using TailCoefficients = std::array<double, kTailDegree + 1>;

TailCoefficients MakeTail() {
  constexpr int kCount = kTailDegree + 1;
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  const auto node = [](int j) {
    return kPi * (static_cast<long double>(j) + 0.5L) / static_cast<long double>(kCount);
  };
  // Interpolation at the Chebyshev nodes: the sum of c[i] T_i.
  std::array<long double, kCount> c{};
  for (int j = 0; j < kCount; ++j) {
    const long double u = std::cos(node(j));
    const long double a =
        1 / (static_cast<long double>(kMidW) + u * static_cast<long double>(kHalfW)) - kTailShift;
    const long double value = std::erfc(a / std::sqrt(2.0L)) * std::exp(a * a / 2) / 2;
    for (int i = 0; i < kCount; ++i) {
      const long double share = i == 0 ? 1 : 2;
      c[static_cast<size_t>(i)] +=
          share * value * std::cos(static_cast<long double>(i) * node(j)) / kCount;
    }
  }
  // In powers of u: T_(i + 1) = 2 u T_i - T_(i - 1).
  std::array<long double, kCount> before{}, now{}, powers{};
  before[0] = 1;
  now[1] = 1;
  powers[0] = c[0];
  for (size_t i = 1; i < kCount; ++i) {
    for (size_t k = 0; k < kCount; ++k) powers[k] += c[i] * now[k];
    std::array<long double, kCount> next{};
    for (size_t k = 0; k < kCount; ++k) next[k] = (k > 0 ? 2 * now[k - 1] : 0) - before[k];
    before = now;
    now = next;
  }
  TailCoefficients rounded{};
  for (size_t k = 0; k < kCount; ++k) rounded[k] = static_cast<double>(powers[k]);
  return rounded;
}

const TailCoefficients& Tail() {
  static const TailCoefficients kTail = MakeTail();
  return kTail;
}

inline double TimesSigmoid(double x, double y) { return x / (1.0 + Exp(-y)); }

}  // namespace

ENCORE_WIDE void FastExp(const float* x, double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) exact[i] = Exp(static_cast<double>(x[i]));
}

ENCORE_WIDE void FastScaledExp(float scale, const float* x, double* exact, size_t n) {
  const double s = scale;
  for (size_t i = 0; i < n; ++i) exact[i] = Exp(s * static_cast<double>(x[i]));
}

// With E = e^(2 a) - 1, a = |x|: E / (E + 2), and 1 from a = 20 on.
ENCORE_WIDE void FastTanh(const float* x, double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double a = std::fabs(static_cast<double>(x[i]));
    const Reduced reduced = Reduce(2 * Min(a, 20.0));
    const double e = reduced.power * ExpM1(reduced.r) + (reduced.power - 1);
    exact[i] = std::copysign(e / (e + 2), static_cast<double>(x[i]));
  }
}

ENCORE_WIDE void FastRelu(const float* x, double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) exact[i] = Max(static_cast<double>(x[i]), 0.0);
}

// relu(x) - a tail(a) with a = |x|. The tail ends at 17, where 17 tail(17) is 7e-64: beside the
// smallest f32 nothing.
ENCORE_WIDE void FastGelu(const float* x, double* exact, size_t n) {
  const TailCoefficients& tail = Tail();
  // Coefficient by coefficient over a block, which is a vector's loop for compilers.
  constexpr size_t kBlock = 128;
  std::array<double, kBlock> a, u, p;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t count = n - begin < kBlock ? n - begin : kBlock;
    for (size_t i = 0; i < count; ++i) {
      a[i] = Min(std::fabs(static_cast<double>(x[begin + i])), kTailEnd);
      u[i] = (1 / (a[i] + kTailShift) - kMidW) * (1 / kHalfW);
      p[i] = tail[kTailDegree];
    }
    for (size_t k = kTailDegree; k >= 4; k -= 4) {
      const double c3 = tail[k - 1], c2 = tail[k - 2], c1 = tail[k - 3], c0 = tail[k - 4];
      for (size_t i = 0; i < count; ++i) {
        p[i] = (((p[i] * u[i] + c3) * u[i] + c2) * u[i] + c1) * u[i] + c0;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const double above = p[i] * Exp(-0.5 * (a[i] * a[i]));
      exact[begin + i] = Max(static_cast<double>(x[begin + i]), 0.0) - a[i] * above;
    }
  }
}

ENCORE_WIDE void FastGeluTanh(const float* x, double* exact, size_t n) {
  constexpr double kTwiceSqrtTwoOverPi = 1.59576912160573071176;
  for (size_t i = 0; i < n; ++i) {
    const double v = x[i];
    exact[i] = TimesSigmoid(v, kTwiceSqrtTwoOverPi * (v + 0.044715 * v * v * v));
  }
}

ENCORE_WIDE void FastSilu(const float* x, double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double v = x[i];
    exact[i] = TimesSigmoid(v, v);
  }
}

ENCORE_WIDE void FastQuickGelu(const float* x, double* exact, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double v = x[i];
    exact[i] = TimesSigmoid(v, 1.702 * v);
  }
}

}  // namespace encore::tool
