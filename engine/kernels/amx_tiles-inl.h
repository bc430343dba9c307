// SPDX-License-Identifier: Apache-2.0
//
// The instructions of AMX that gemm_amx-inl.h is made of. tests/support/amx_stand_in-inl.h has the
// same functions in C++. Included once for each SIMD target.

#if defined(ENCORE_ENGINE_KERNELS_AMX_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_AMX_TILES_INL_H_
#undef ENCORE_ENGINE_KERNELS_AMX_TILES_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_AMX_TILES_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

#if ENCORE_TARGET_HAS_AMX  // gemm_amx-inl.h

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace amx {
namespace {  // a test's are others

// Clears all tiles. `configuration`: its 64 bytes.
template <class Configuration>
HWY_INLINE void LoadConfiguration(const Configuration& configuration) {
  static_assert(sizeof(configuration) == 64);
  asm volatile("ldtilecfg %0" : : "m"(configuration));
}
HWY_INLINE void Release() { asm volatile("tilerelease"); }

template <int kTile>
HWY_INLINE void Load(const void* from, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HWY_INLINE void Store(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}
// kSum += A times B: unsigned bytes of tile 6 and signed ones of tile kB, or bf16.
template <int kSum, bool kInteger, int kB = 7>
HWY_INLINE void MulAdd() {
  if constexpr (kInteger) {
    asm volatile("tdpbusd %%tmm%c1, %%tmm6, %%tmm%c0" : : "i"(kSum), "i"(kB));
  } else {
    asm volatile("tdpbf16ps %%tmm%c1, %%tmm6, %%tmm%c0" : : "i"(kSum), "i"(kB));
  }
}

}  // namespace
}  // namespace amx
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_TARGET_HAS_AMX

#endif  // per-target include guard
