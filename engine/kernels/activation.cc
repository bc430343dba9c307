// SPDX-License-Identifier: Apache-2.0
//
// The activation kernels of every SIMD target: loops over tiles around activation_math-inl.h.

#include "engine/kernels/activation.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/activation.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/activation_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
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

void ReluTile(float* c, size_t ldc, size_t rows, size_t cols) {
  MapTile(c, ldc, rows, cols, [](auto v) HWY_ATTR { return TileRelu(TagF32(), v); });
}
void GeluTile(float* c, size_t ldc, size_t rows, size_t cols) {
  MapTile(c, ldc, rows, cols, [](auto v) HWY_ATTR { return TileGelu(TagF32(), v); });
}
void GeluTanhTile(float* c, size_t ldc, size_t rows, size_t cols) {
  MapTile(c, ldc, rows, cols, [](auto v) HWY_ATTR { return TileGeluTanh(TagF32(), v); });
}
void SiluTile(float* c, size_t ldc, size_t rows, size_t cols) {
  MapTile(c, ldc, rows, cols, [](auto v) HWY_ATTR { return TileSilu(TagF32(), v); });
}

constexpr ActivationKernels kKernels = {
    .relu = &ReluTile,
    .gelu = &GeluTile,
    .gelu_tanh = &GeluTanhTile,
    .silu = &SiluTile,
};

const ActivationKernels* TargetActivationKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetActivationKernels);

const ActivationKernels& GetActivationKernels() {
  return *HWY_DYNAMIC_DISPATCH(TargetActivationKernels)();
}

}  // namespace encore::internal
#endif  // HWY_ONCE
