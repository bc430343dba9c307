// SPDX-License-Identifier: Apache-2.0
//
// The rows of free_rows.h: the library's passes and its exponential, sums in any order.

#include "bench/cycles/free_rows.h"

#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cycles/free_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/reduce-inl.h"
#include "engine/kernels/softmax_exp-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// R rows, A vectors of sums each.
template <size_t R, size_t A>
struct Sums {
  HWY_INLINE explicit Sums(float start) {
    ENCORE_UNROLL
    for (size_t i = 0; i < R * A; ++i) v[i / A][i % A] = hn::Set(D(), start);
  }
  V v[R][A];
};

// Calls step(r, c, sum) for each vector of R rows, which gives the sum that follows.
template <size_t R, size_t A, class Step>
HWY_INLINE void WalkRows(size_t cols, Sums<R, A>& sums, Step step) {
  for (size_t c = 0; c < cols; c += A * kLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t i = 0; i < A; ++i) sums.v[r][i] = step(r, c + i * kLanes, sums.v[r][i]);
    }
  }
}

// All of row r, in every lane: halves onto halves, as the contract has it, so that ways whose sums
// are 16 lanes give the library's bits.
template <size_t R, size_t A, class Op>
HWY_INLINE V Join(const Sums<R, A>& sums, size_t r, Op op) {
  V v[A];
  ENCORE_UNROLL
  for (size_t i = 0; i < A; ++i) v[i] = sums.v[r][i];
  ENCORE_UNROLL
  for (size_t half = A / 2; half != 0; half /= 2) {
    ENCORE_UNROLL
    for (size_t i = 0; i < half; ++i) v[i] = op(v[i], v[i + half]);
  }
  return hn::Set(D(), internal::HWY_NAMESPACE::CombineVec(D(), v[0], op));
}

template <size_t R, size_t A>
HWY_NOINLINE void SoftmaxGroup(const float* x, float* y, size_t cols) {
  const D d;
  const internal::HWY_NAMESPACE::ExpVectors<D> exp(d, internal::HWY_NAMESPACE::ExpConstants(1));
  Sums<R, A> largest(-std::numeric_limits<float>::infinity());
  WalkRows(cols, largest, [=](size_t r, size_t c, V sum) HWY_ATTR {
    return hn::Max(sum, hn::LoadU(d, x + r * cols + c));
  });
  const auto max = [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); };
  V shift[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) shift[r] = Join(largest, r, max);
  Sums<R, A> total(0.0f);
  WalkRows(cols, total, [&](size_t r, size_t c, V sum) HWY_ATTR {
    const V z = hn::Sub(hn::LoadU(d, x + r * cols + c), shift[r]);
    const V p = internal::HWY_NAMESPACE::ExpNonPositive(d, exp, z);
    hn::StoreU(p, d, y + r * cols + c);
    return hn::Add(sum, p);
  });
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const V factor = hn::Div(hn::Set(d, 1.0f), Join(total, r, add));
    for (size_t c = 0; c < cols; c += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, y + r * cols + c), factor), d, y + r * cols + c);
    }
  }
}

// Centred twice, as in engine/kernels/norm.cc.
template <size_t R, size_t A>
HWY_NOINLINE void NormGroup(const float* x, const float* weight, const float* bias, float epsilon,
                            float* y, size_t cols) {
  const D d;
  const V share = hn::Set(d, 1.0f / static_cast<float>(cols));
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  V near[R], rest[R], scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) near[r] = hn::Set(d, x[r * cols]);
  Sums<R, A> sums(0.0f);
  WalkRows(cols, sums, [&](size_t r, size_t c, V sum) HWY_ATTR {
    return hn::Add(sum, hn::Sub(hn::LoadU(d, x + r * cols + c), near[r]));
  });
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) near[r] = hn::MulAdd(Join(sums, r, add), share, near[r]);
  Sums<R, A> differences(0.0f);
  Sums<R, A> squares(0.0f);
  for (size_t c = 0; c < cols; c += A * kLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t i = 0; i < A; ++i) {
        const V value = hn::Sub(hn::LoadU(d, x + r * cols + c + i * kLanes), near[r]);
        differences.v[r][i] = hn::Add(differences.v[r][i], value);
        squares.v[r][i] = hn::MulAdd(value, value, squares.v[r][i]);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const V sum = Join(differences, r, add);
    rest[r] = hn::Mul(sum, share);
    const V square = hn::Max(hn::NegMulAdd(sum, rest[r], Join(squares, r, add)), hn::Zero(d));
    scale[r] = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::MulAdd(square, share, hn::Set(d, epsilon))));
  }
  for (size_t c = 0; c < cols; c += kLanes) {
    const V w = hn::LoadU(d, weight + c), b = hn::LoadU(d, bias + c);
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const V centred = hn::Sub(hn::Sub(hn::LoadU(d, x + r * cols + c), near[r]), rest[r]);
      hn::StoreU(hn::MulAdd(hn::Mul(centred, scale[r]), w, b), d, y + r * cols + c);
    }
  }
}

template <size_t R, size_t A>
void Softmax(const float* x, float* y, size_t rows, size_t cols) {
  size_t r = 0;
  for (; r + R <= rows; r += R) SoftmaxGroup<R, A>(x + r * cols, y + r * cols, cols);
  for (; r < rows; ++r) SoftmaxGroup<1, A>(x + r * cols, y + r * cols, cols);
}

template <size_t R, size_t A>
void LayerNorm(const float* x, const float* weight, const float* bias, float epsilon, float* y,
               size_t rows, size_t cols) {
  size_t r = 0;
  for (; r + R <= rows; r += R) {
    NormGroup<R, A>(x + r * cols, weight, bias, epsilon, y + r * cols, cols);
  }
  for (; r < rows; ++r) {
    NormGroup<1, A>(x + r * cols, weight, bias, epsilon, y + r * cols, cols);
  }
}

template <size_t R, size_t A>
constexpr FreeRows Make() {
  return {R, A, &Softmax<R, A>, &LayerNorm<R, A>};
}

constexpr FreeRows kAll[] = {Make<1, 1>(), Make<1, 2>(), Make<1, 4>(), Make<1, 8>(), Make<2, 1>(),
                             Make<2, 2>(), Make<2, 4>(), Make<4, 1>(), Make<4, 2>(), Make<8, 1>()};

std::span<const FreeRows> TargetFreeRows() { return kAll; }

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

HWY_EXPORT(TargetFreeRows);

std::span<const FreeRows> AllFreeRows() { return HWY_DYNAMIC_DISPATCH(TargetFreeRows)(); }

}  // namespace encore::bench
#endif  // HWY_ONCE
