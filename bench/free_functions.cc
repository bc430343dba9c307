// SPDX-License-Identifier: Apache-2.0
//
// The functions on Highway's own mathematics, for each SIMD target.

#include "bench/free.h"

#include <cstddef>

#include "bench/elementwise.h"
#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/free_functions.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
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

// y[i] = f(x[i]) in the loop of engine/kernels/elementwise-inl.h.
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

#if ENCORE_BENCH_HIGHWAY_MATH

void ExpArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR { return hn::Exp(D(), v); });
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
void FreeNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
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

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

#if ENCORE_BENCH_HIGHWAY_MATH

HWY_EXPORT(ExpArray);
HWY_EXPORT(GeluArray);
HWY_EXPORT(SoftmaxRows);

Status FreeExp(ConstView x, MutableView y) {
  ENCORE_DISPATCH(ExpArray)(x.data(), y.data(), x.dim(0));
  return Status();
}

Status FreeGelu(ConstView x, MutableView y) {
  ENCORE_DISPATCH(GeluArray)(x.data(), y.data(), x.dim(0));
  return Status();
}

Status FreeSoftmax(ConstView x, MutableView y) {
  ENCORE_DISPATCH(SoftmaxRows)(x.data(), y.data(), x.dim(0), x.dim(1));
  return Status();
}

#else

namespace {

Status NoMathematics() {
  return Status(ErrorCode::kUnsupported, "hwy/contrib/math was not found when this was built");
}

}  // namespace

Status FreeExp(ConstView, MutableView) { return NoMathematics(); }
Status FreeGelu(ConstView, MutableView) { return NoMathematics(); }
Status FreeSoftmax(ConstView, MutableView) { return NoMathematics(); }

#endif  // ENCORE_BENCH_HIGHWAY_MATH

HWY_EXPORT(FreeNormRows);

Status FreeLayerNorm(ConstView x, MutableView y) {
  const NormWeights& norm = GetNormWeights();
  ENCORE_DISPATCH(FreeNormRows)
  (x.data(), norm.weight.View<float>().data(), norm.bias.View<float>().data(),
   static_cast<float>(kNormEpsilon), y.data(), x.dim(0), x.dim(1));
  return Status();
}

}  // namespace encore::bench
#endif  // HWY_ONCE
