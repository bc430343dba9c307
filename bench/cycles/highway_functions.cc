// SPDX-License-Identifier: Apache-2.0
//
// The functions on Highway's own mathematics, for functions.h, and encore's exponential of softmax
// in the same loop.

#include <cstddef>

#include "bench/cycles/functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cycles/highway_functions.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/softmax_exp-inl.h"
#include "hwy/highway.h"
#if __has_include("hwy/contrib/math/math-inl.h")
#include "hwy/contrib/math/math-inl.h"
#define ENCORE_BENCH_HIGHWAY_MATH 1
#else
#define ENCORE_BENCH_HIGHWAY_MATH 0
#endif

HWY_BEFORE_NAMESPACE();
namespace encore::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// y[i] = f(x[i]) in the loop of engine/kernels/elementwise.cc. n is a multiple of two vectors, as
// it is in all that is compared.
template <class F>
HWY_INLINE void Map(const float* x, float* y, size_t n, F f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i + 2 * lanes <= n; i += 2 * lanes) {
    const V v0 = hn::LoadU(d, x + i);
    const V v1 = hn::LoadU(d, x + i + lanes);
    hn::StoreU(f(v0), d, y + i);
    hn::StoreU(f(v1), d, y + i + lanes);
  }
}

void SoftmaxExpArray(const float* x, float* y, size_t n) {
  const internal::HWY_NAMESPACE::ExpVectors<D> exp(D(), internal::HWY_NAMESPACE::ExpConstants(1));
  Map(x, y, n, [&](V v) HWY_ATTR { return internal::HWY_NAMESPACE::ExpNonPositive(D(), exp, v); });
}

#if ENCORE_BENCH_HIGHWAY_MATH

void ExpArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR { return hn::Exp(D(), v); });
}

void TanhArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR { return hn::Tanh(D(), v); });
}

// erf x = sign(x) (1 - (a1 t + .. + a5 t^5) e^(-x^2)), t = 1 / (1 + p |x|).
HWY_INLINE V Erf(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.3275911f), one));
  V p = hn::MulAdd(hn::Set(d, 1.061405429f), t, hn::Set(d, -1.453152027f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592f));
  const V e = hn::Exp(d, hn::Neg(hn::Mul(x, x)));
  return hn::CopySign(hn::NegMulAdd(hn::Mul(p, t), e, one), x);
}

void GeluArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR {
    const D d;
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    return hn::MulAdd(half, Erf(hn::Mul(v, hn::Set(d, 0.70710678f))), half);
  });
}

void GeluTanhArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR {
    const D d;
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    const V cubic =
        hn::MulAdd(hn::Mul(v, v), hn::Set(d, 0.044715f * 0.79788456f), hn::Set(d, 0.79788456f));
    return hn::MulAdd(half, hn::Tanh(d, hn::Mul(v, cubic)), half);
  });
}

void SiluArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR {
    const D d;
    const V minus = hn::Min(hn::Neg(v), hn::Set(d, 104.0f));  // what Highway's exp takes
    return hn::Div(v, hn::Add(hn::Exp(d, minus), hn::Set(d, 1.0f)));
  });
}

// Three passes over a row, cols a multiple of a vector.
void SoftmaxRows(const float* x, float* y, size_t rows, size_t cols) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (; rows != 0; --rows, x += cols, y += cols) {
    V largest = hn::LoadU(d, x);
    for (size_t c = lanes; c < cols; c += lanes) largest = hn::Max(largest, hn::LoadU(d, x + c));
    largest = hn::MaxOfLanes(d, largest);
    V sum = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) {
      const V p = hn::Exp(d, hn::Sub(hn::LoadU(d, x + c), largest));
      sum = hn::Add(sum, p);
      hn::StoreU(p, d, y + c);
    }
    const V factor = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
    for (size_t c = 0; c < cols; c += lanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, y + c), factor), d, y + c);
    }
  }
}

#endif  // ENCORE_BENCH_HIGHWAY_MATH

// The same of LayerNorm.
void LayerNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                   size_t rows, size_t cols) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V count = hn::Set(d, static_cast<float>(cols));
  for (; rows != 0; --rows, x += cols, y += cols) {
    V sum = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) sum = hn::Add(sum, hn::LoadU(d, x + c));
    const V mean = hn::Div(hn::SumOfLanes(d, sum), count);
    V squares = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) {
      const V centred = hn::Sub(hn::LoadU(d, x + c), mean);
      squares = hn::MulAdd(centred, centred, squares);
    }
    const V variance = hn::Div(hn::SumOfLanes(d, squares), count);
    const V scale = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon))));
    for (size_t c = 0; c < cols; c += lanes) {
      const V normal = hn::Mul(hn::Sub(hn::LoadU(d, x + c), mean), scale);
      hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, weight + c), hn::LoadU(d, bias + c)), d, y + c);
    }
  }
}

constexpr Functions kFunctions = {
#if ENCORE_BENCH_HIGHWAY_MATH
    .exp = &ExpArray,
    .tanh = &TanhArray,
    .gelu = &GeluArray,
    .gelu_tanh = &GeluTanhArray,
    .silu = &SiluArray,
    .softmax = &SoftmaxRows,
#endif
    .layer_norm = &LayerNormRows,
};

const Functions* TargetFunctions() { return &kFunctions; }
Functions::Unary TargetSoftmaxExp() { return &SoftmaxExpArray; }

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

HWY_EXPORT(TargetFunctions);
HWY_EXPORT(TargetSoftmaxExp);

const Functions& HighwayFunctions() { return *HWY_DYNAMIC_DISPATCH(TargetFunctions)(); }
Functions::Unary SoftmaxExp() { return HWY_DYNAMIC_DISPATCH(TargetSoftmaxExp)(); }

}  // namespace encore::bench
#endif  // HWY_ONCE
