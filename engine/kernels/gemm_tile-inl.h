// SPDX-License-Identifier: Apache-2.0
//
// The register tile of the f32 matrix product: MR x NV accumulators that stay in registers over k.
// Included once for each SIMD target. Not here: which tiles a target has (gemm_f32.cc), packing
// (gemm_pack-inl.h).

#if defined(ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#endif

#include <cstddef>

#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

// Keeps a vector in a register at this point. Without it g++ 12 merges accumulators that start from
// the same value, and copies and spills them around the loop.
#if HWY_TARGET == HWY_EMU128
#define ENCORE_PIN(v)
#elif HWY_ARCH_X86
#define ENCORE_PIN(v) asm("" : "+v"((v).raw))
#elif HWY_ARCH_ARM
#define ENCORE_PIN(v) asm("" : "+w"((v).raw))
#else
#define ENCORE_PIN(v)
#endif

// hwy::Prefetch asks for L1, which the tiles of a panel need for themselves.
#if HWY_COMPILER_MSVC
#define ENCORE_PREFETCH_L2(p) hwy::Prefetch(p)
#else
#define ENCORE_PREFETCH_L2(p) __builtin_prefetch(p, 0 /* read */, 2 /* L2 */)
#endif

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using GemmTagF32 = hn::CappedTag<float, 16>;

// The tile's last columns are not full vectors: goes through memory. Rare, and small against the
// loop over k.
template <size_t MR, size_t NV>
HWY_NOINLINE void StorePartialTile(const GemmTile& t,
                                   const float* HWY_RESTRICT full /* [MR, NV * lanes] */) {
  const size_t nr = NV * hn::Lanes(GemmTagF32());
  for (size_t i = 0; i < MR; ++i) {
    for (size_t j = 0; j < t.cols; ++j) {
      const float residual_free = full[i * nr + j];
      t.c[i * t.ldc + j] =
          t.residual == nullptr ? residual_free : residual_free + t.residual[i * t.ld_residual + j];
    }
  }
}

template <size_t MR, size_t NV>
HWY_NOINLINE void RunGemmTile(const GemmTile& t) {
  const GemmTagF32 d;
  using V = hn::Vec<GemmTagF32>;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  const size_t lda = t.lda;
  const float* HWY_RESTRICT a = t.a;
  const float* HWY_RESTRICT b = t.b;
  const char* prefetch = t.prefetch;
  const size_t prefetch_step = t.prefetch_step;

  V acc[MR][NV];
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) {
      acc[i][j] = hn::LoadU(d, t.init + i * t.ld_init + j * kLanes);
    }
  }
  ENCORE_NO_UNROLL
  for (size_t k = 0; k < t.kc; ++k) {
    V bk[NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) bk[j] = hn::Load(d, b + j * kLanes);
    b += NV * kLanes;
    ENCORE_PREFETCH_L2(prefetch);
    ENCORE_PREFETCH_L2(prefetch + 64);
    prefetch += prefetch_step;
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const V ai = hn::Set(d, a[i * lda + k]);
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) acc[i][j] = hn::MulAdd(ai, bk[j], acc[i][j]);
    }
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) ENCORE_PIN(acc[i][j]);
  }

  if (HWY_UNLIKELY(t.cols != NV * kLanes)) {
    HWY_ALIGN float full[MR * NV * kLanes];
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) hn::Store(acc[i][j], d, full + (i * NV + j) * kLanes);
    }
    StorePartialTile<MR, NV>(t, full);
    return;
  }
  if (t.residual != nullptr) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        acc[i][j] = hn::Add(acc[i][j], hn::LoadU(d, t.residual + i * t.ld_residual + j * kLanes));
      }
    }
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) hn::StoreU(acc[i][j], d, t.c + i * t.ldc + j * kLanes);
  }
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
