// SPDX-License-Identifier: Apache-2.0
//
// The activation kernels of every SIMD target: loops over tiles around activation_math-inl.h.

#if defined(ENCORE_ENGINE_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_ACTIVATION_INL_H_
#undef ENCORE_ENGINE_KERNELS_ACTIVATION_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_ACTIVATION_INL_H_
#endif

#include <cstddef>

#include "engine/kernels/activation.h"
#include "engine/kernels/activation_math-inl.h"
#include "engine/kernels/dispatch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagF32 = hn::CappedTag<float, 16>;

// c = f(c), element by element. Vectors are independent of each other, so the processor overlaps
// those of one row with those of the next.
template <class F>
HWY_INLINE void MapTile(float* c, size_t ldc, size_t rows, size_t cols, F f) {
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t full = cols / lanes * lanes;
  for (; rows != 0; --rows, c += ldc) {
    for (size_t i = 0; i < full; i += lanes) hn::StoreU(f(hn::LoadU(d, c + i)), d, c + i);
    if (full != cols) {
      hn::StoreN(f(hn::LoadN(d, c + full, cols - full)), d, c + full, cols - full);
    }
  }
}

// c = f(gate) * c.
template <class F>
HWY_INLINE void MapGated(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows,
                         size_t cols, F f) {
  const TagF32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t full = cols / lanes * lanes;
  const size_t left = cols - full;
  for (; rows != 0; --rows, gate += ld_gate, c += ldc) {
    for (size_t i = 0; i < full; i += lanes) {
      hn::StoreU(hn::Mul(f(hn::LoadU(d, gate + i)), hn::LoadU(d, c + i)), d, c + i);
    }
    if (left != 0) {
      const auto y = hn::Mul(f(hn::LoadN(d, gate + full, left)), hn::LoadN(d, c + full, left));
      hn::StoreN(y, d, c + full, left);
    }
  }
}

template <class F>
void Tile(float* c, size_t ldc, size_t rows, size_t cols) {
  MapTile(c, ldc, rows, cols, [](auto v) HWY_ATTR { return F::Of(TagF32(), v); });
}

template <class F>
void Gated(const float* gate, size_t ld_gate, float* c, size_t ldc, size_t rows, size_t cols) {
  MapGated(gate, ld_gate, c, ldc, rows, cols, [](auto v) HWY_ATTR { return F::Of(TagF32(), v); });
}

template <class F>
constexpr ActivationKernels::Function kFunction = {.tile = &Tile<F>, .gated = &Gated<F>};

constexpr ActivationKernels kActivationKernels = {
    .relu = kFunction<TileRelu>,
    .gelu = kFunction<TileGelu>,
    .gelu_tanh = kFunction<TileGeluTanh>,
    .silu = kFunction<TileSilu>,
    .quick_gelu = kFunction<TileQuickGelu>,
};

const ActivationKernels* TargetActivationKernels() { return &kActivationKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetActivationKernels);

const ActivationKernels& GetActivationKernels() {
  return *ENCORE_DISPATCH(TargetActivationKernels)();
}

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
