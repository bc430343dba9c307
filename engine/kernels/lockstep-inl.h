// SPDX-License-Identifier: Apache-2.0
//
// Lockstep: a few vectors that go through the same steps, each step done for all of them before the
// next. A CPU looks ahead a few hundred instructions: where one vector's chain of dependent steps
// is about as long as that, vectors one after the other wait, and vectors in lockstep do not. Holds
// the operations of vec_math-inl.h, named as in Highway.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#if defined(ENCORE_ENGINE_KERNELS_LOCKSTEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_LOCKSTEP_INL_H_
#undef ENCORE_ENGINE_KERNELS_LOCKSTEP_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_LOCKSTEP_INL_H_
#endif

#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kCount vectors, masks or indices.
template <class T, size_t kCount>
struct Lockstep {
  static constexpr size_t kVectors = kCount;
  T v[kCount];
};

namespace each {

// What `arg` has for vector i: its own where it is a Lockstep, the same for all otherwise.
template <size_t i, class T>
HWY_INLINE const T& VectorOf(const T& arg) {
  return arg;
}
template <size_t i, class T, size_t kCount>
HWY_INLINE const T& VectorOf(const Lockstep<T, kCount>& arg) {
  return arg.v[i];
}

template <class T>
inline constexpr size_t kVectorsOf = 0;
template <class T, size_t kCount>
inline constexpr size_t kVectorsOf<Lockstep<T, kCount>> = kCount;

template <size_t i, class F, class... Args>
HWY_INLINE auto CallFor(const F& f, const Args&... args) {
  return f(VectorOf<i>(args)...);
}
template <size_t... i, class F, class... Args>
HWY_INLINE auto CallForAll(std::index_sequence<i...>, const F& f, const Args&... args) {
  using Result = decltype(CallFor<0>(f, args...));
  return Lockstep<Result, sizeof...(i)>{{CallFor<i>(f, args...)...}};
}

// f(...) of each vector; a plain f(...) where no argument is a Lockstep.
template <class F, class... Args>
HWY_INLINE auto Call(const F& f, const Args&... args) {
  constexpr size_t kCounts[] = {kVectorsOf<Args>...};
  constexpr size_t kCount = *std::max_element(std::begin(kCounts), std::end(kCounts));
  static_assert(((kVectorsOf<Args> == 0 || kVectorsOf<Args> == kCount) && ...));
  if constexpr (kCount == 0)
    return f(args...);
  else
    return CallForAll(std::make_index_sequence<kCount>(), f, args...);
}

#define ENCORE_LOCKSTEP(NAME)                                                       \
  template <class... Args>                                                          \
  HWY_INLINE auto NAME(const Args&... args) {                                       \
    return Call([](const auto&... a) HWY_ATTR { return hn::NAME(a...); }, args...); \
  }
ENCORE_LOCKSTEP(Abs)
ENCORE_LOCKSTEP(Add)
ENCORE_LOCKSTEP(And)
ENCORE_LOCKSTEP(BitCast)
ENCORE_LOCKSTEP(CopySign)
ENCORE_LOCKSTEP(Div)
ENCORE_LOCKSTEP(Gt)
ENCORE_LOCKSTEP(IfThenElse)
ENCORE_LOCKSTEP(Lt)
ENCORE_LOCKSTEP(Max)
ENCORE_LOCKSTEP(Min)
ENCORE_LOCKSTEP(Mul)
ENCORE_LOCKSTEP(MulAdd)
ENCORE_LOCKSTEP(MulSub)
ENCORE_LOCKSTEP(Neg)
ENCORE_LOCKSTEP(NegMulAdd)
ENCORE_LOCKSTEP(NegMulSub)
ENCORE_LOCKSTEP(Sub)
#undef ENCORE_LOCKSTEP

template <int kBits, class X>
HWY_INLINE auto ShiftLeft(const X& x) {
  return Call([](const auto& a) HWY_ATTR { return hn::ShiftLeft<kBits>(a); }, x);
}
template <int kBits, class X>
HWY_INLINE auto ShiftRight(const X& x) {
  return Call([](const auto& a) HWY_ATTR { return hn::ShiftRight<kBits>(a); }, x);
}

template <size_t... i, class D>
HWY_INLINE auto LoadAll(std::index_sequence<i...>, D d, const hn::TFromD<D>* from) {
  return Lockstep<hn::Vec<D>, sizeof...(i)>{{hn::LoadU(d, from + i * hn::Lanes(d))...}};
}
template <size_t kCount, class D>
HWY_INLINE auto Load(D d, const hn::TFromD<D>* from) {
  return LoadAll(std::make_index_sequence<kCount>(), d, from);
}
template <class D, class T, size_t kCount>
HWY_INLINE void Store(const Lockstep<T, kCount>& x, D d, hn::TFromD<D>* to) {
  ENCORE_UNROLL
  for (size_t i = 0; i < kCount; ++i) hn::StoreU(x.v[i], d, to + i * hn::Lanes(d));
}

// An order of steps that a compiler has to keep: all before it for all vectors, then all after it.
// clang would do one vector after the other to save registers.
template <class T, size_t kCount>
HWY_INLINE void Meet(Lockstep<T, kCount>& x) {
#if HWY_COMPILER_CLANG && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (kCount == 4) {
    asm("" : "+v"(x.v[0].raw), "+v"(x.v[1].raw), "+v"(x.v[2].raw), "+v"(x.v[3].raw));
  }
#else
  (void)x;
#endif
}

}  // namespace each
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_LOCKSTEP_INL_H_
