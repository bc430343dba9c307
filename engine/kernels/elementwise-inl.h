// SPDX-License-Identifier: Apache-2.0
//
// The elementwise kernels of every SIMD target: loops over arrays around vec_math-inl.h, and over
// tiles around activation_math-inl.h.

#if defined(ENCORE_ENGINE_KERNELS_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_ELEMENTWISE_INL_H_
#undef ENCORE_ENGINE_KERNELS_ELEMENTWISE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_ELEMENTWISE_INL_H_
#endif

#include <cstddef>
#include <utility>

#include "engine/kernels/activation_math-inl.h"
#include "engine/kernels/dispatch.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/lockstep-inl.h"
#include "engine/kernels/unroll.h"
#include "engine/kernels/vec_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

// At most 16 lanes: as wide as AVX-512, on which Lookup16 relies.
using TagF32 = hn::CappedTag<float, 16>;

// How many vectors go in lockstep was measured: four, spilled constants and all, but two where
// tables fight over 16 registers.
constexpr size_t kWithTables = ENCORE_32_REGISTERS ? 4 : 2;

// y[i] = f(x[i]), kCount vectors at a time. The tail goes through the same f, so an element's bits
// do not depend on its place.
template <size_t kCount, class F>
HWY_INLINE void Map(const float* x, float* y, size_t n, F f) {
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + kCount * lanes <= n; i += kCount * lanes) {
    each::Store(f(each::Load<kCount>(d, x + i)), d, y + i);
  }
  for (; i + lanes <= n; i += lanes) {
    each::Store(f(each::Load<1>(d, x + i)), d, y + i);
  }
  if (i < n) {
    const Lockstep<hn::Vec<TagF32>, 1> tail = {{hn::LoadN(d, x + i, n - i)}};
    hn::StoreN(f(tail).v[0], d, y + i, n - i);
  }
}

#define ENCORE_ARRAY(NAME, COUNT)                                                  \
  void NAME##Array(const float* x, float* y, size_t n) {                           \
    Map<COUNT>(x, y, n, [](const auto& v) HWY_ATTR { return NAME(TagF32(), v); }); \
  }
ENCORE_ARRAY(Exp, 4)
ENCORE_ARRAY(Tanh, kWithTables)
ENCORE_ARRAY(Relu, 4)
ENCORE_ARRAY(Gelu, kWithTables)
ENCORE_ARRAY(GeluTanh, 4)
ENCORE_ARRAY(Silu, 4)
#undef ENCORE_ARRAY

void AddArrays(const float* a, const float* b, float* c, size_t n) {
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, c + i);
  }
  if (i < n) {
    hn::StoreN(hn::Add(hn::LoadN(d, a + i, n - i), hn::LoadN(d, b + i, n - i)), d, c + i, n - i);
  }
}

// c = f(c), element by element. Vectors are independent of each other, so the processor overlaps
// those of one row with those of the next.
template <Activation kActivation>
void Tile(float* c, size_t ldc, size_t rows, size_t cols) {
  using Form = TileForm<kActivation>;
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t full = cols / lanes * lanes;
  const size_t left = cols - full;
  for (; rows != 0; --rows, c += ldc) {
    for (size_t i = 0; i < full; i += lanes) {
      hn::StoreU(Form::Of(d, hn::LoadU(d, c + i)), d, c + i);
    }
    if (left != 0) hn::StoreN(Form::Of(d, hn::LoadN(d, c + full, left)), d, c + full, left);
  }
}

// c = f(gate) * c.
template <Activation kActivation>
void Gated(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows, size_t cols) {
  using Form = TileForm<kActivation>;
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t full = cols / lanes * lanes;
  const size_t left = cols - full;
  for (; rows != 0; --rows, gate += ld_gate, c += ldc) {
    for (size_t i = 0; i < full; i += lanes) {
      hn::StoreU(hn::Mul(Form::Of(d, hn::LoadU(d, gate + i)), hn::LoadU(d, c + i)), d, c + i);
    }
    if (left != 0) {
      const auto f = Form::Of(d, hn::LoadN(d, gate + full, left));
      hn::StoreN(hn::Mul(f, hn::LoadN(d, c + full, left)), d, c + full, left);
    }
  }
}

template <size_t... I>
constexpr void FillActivations(ElementwiseKernels& kernels, std::index_sequence<I...>) {
  ((kernels.activation[I] = {&Tile<static_cast<Activation>(I)>,
                             &Gated<static_cast<Activation>(I)>}),
   ...);
}

constexpr ElementwiseKernels kElementwiseKernels = [] {
  ElementwiseKernels kernels{
      .exp = &ExpArray,
      .tanh = &TanhArray,
      .relu = &ReluArray,
      .gelu = &GeluArray,
      .gelu_tanh = &GeluTanhArray,
      .silu = &SiluArray,
      .add = &AddArrays,
      .activation = {},
  };
  FillActivations(kernels, std::make_index_sequence<kLayerActivations>());
  return kernels;
}();

const ElementwiseKernels* TargetElementwiseKernels() { return &kElementwiseKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetElementwiseKernels);

const ElementwiseKernels& GetElementwiseKernels() {
  return *ENCORE_DISPATCH(TargetElementwiseKernels)();
}

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
