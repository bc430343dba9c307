// SPDX-License-Identifier: Apache-2.0
//
// The register tiles of free.h, which differ from the library's in nothing but their chains.

#include "bench/free.h"

#include <cstddef>
#include <utility>

#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/free_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using internal::GemmKernel;
using internal::GemmTile;
using internal::TilePrefetch;
using internal::WidthKernels;
using Tag = internal::HWY_NAMESPACE::GemmTagF32;
using V = hn::Vec<Tag>;

template <size_t kChains, size_t MR, size_t NV, TilePrefetch kPrefetch>
HWY_NOINLINE void RunFreeTile(const GemmTile& t) {
  const Tag d;
  constexpr size_t kLanes = hn::MaxLanes(Tag());
  internal::HWY_NAMESPACE::RowPointers<MR, float> a(reinterpret_cast<const float*>(t.in.a.data),
                                                    t.in.a.stride / sizeof(float));
  const float* HWY_RESTRICT b = static_cast<const float*>(t.in.b);
  const size_t ldb = t.in.ldb;
  [[maybe_unused]] const char* prefetch = t.in.prefetch;
  [[maybe_unused]] const size_t prefetch_step = t.in.prefetch_step;

  V acc[kChains][MR][NV];
  ENCORE_UNROLL
  for (size_t s = 0; s < kChains; ++s) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        acc[s][i][j] =
            s == 0 ? hn::LoadU(d, t.in.init + i * t.in.ld_init + j * kLanes) : hn::Zero(d);
        ENCORE_PIN(acc[s][i][j]);
      }
    }
  }
  if (t.in.kc >= internal::HWY_NAMESPACE::kLongChain) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) internal::PrefetchWrite(t.out.c[j] + i * t.out.ldc);
    }
  }
  const auto step = [&](V(&sums)[MR][NV]) HWY_ATTR {
    V bk[NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) bk[j] = hn::LoadU(d, b + j * kLanes);
    b += ldb;
    if constexpr (kPrefetch != internal::kNoLine) {
      constexpr size_t kLines = kPrefetch == internal::kOneLine
                                    ? 1
                                    : HWY_MAX(NV * kLanes * sizeof(float) / 64, size_t{1});
      ENCORE_UNROLL
      for (size_t line = 0; line < kLines; ++line) internal::PrefetchL2(prefetch + 64 * line);
      prefetch += prefetch_step;
    }
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const V ai = hn::Set(d, a(i));
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) sums[i][j] = hn::MulAdd(ai, bk[j], sums[i][j]);
    }
    a.Next();
  };
  ENCORE_NO_UNROLL
  for (size_t k = t.in.kc / kChains; k != 0; --k) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kChains; ++s) step(acc[s]);
  }
  for (size_t k = t.in.kc % kChains; k != 0; --k) step(acc[0]);

  ENCORE_UNROLL
  for (size_t half = kChains / 2; half != 0; half /= 2) {
    ENCORE_UNROLL
    for (size_t s = 0; s < half; ++s) {
      ENCORE_UNROLL
      for (size_t i = 0; i < MR; ++i) {
        ENCORE_UNROLL
        for (size_t j = 0; j < NV; ++j) acc[s][i][j] = hn::Add(acc[s][i][j], acc[s + half][i][j]);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) hn::StoreU(acc[0][i][j], d, t.out.c[j] + i * t.out.ldc);
  }
}

// The tallest tile of NV vectors whose accumulators, with NV vectors of B and one of A, fit the
// registers: 32, or 16 of them (one less without FMA, for the product). 0 where not even one row
// does.
template <size_t kChains, size_t NV>
constexpr size_t MaxMr() {
  constexpr size_t kRegisters = ENCORE_32_REGISTERS ? 32 : HWY_NATIVE_FMA ? 16 : 15;
  return NV + 1 >= kRegisters ? 0 : (kRegisters - NV - 1) / (kChains * NV);
}

template <size_t kChains, size_t NV, size_t... I>
constexpr WidthKernels MakeWidth(std::index_sequence<I...>) {
  using internal::kAllLines, internal::kNoLine, internal::kOneLine;
  WidthKernels kernels{};
  kernels.nv = NV;
  kernels.column_bytes = sizeof(float);
  kernels.max_mr = sizeof...(I);
  ((kernels.tile[kNoLine][I + 1] = &RunFreeTile<kChains, I + 1, NV, kNoLine>), ...);
  ((kernels.tile[kOneLine][I + 1] = &RunFreeTile<kChains, I + 1, NV, kOneLine>), ...);
  ((kernels.tile[kAllLines][I + 1] = &RunFreeTile<kChains, I + 1, NV, kAllLines>), ...);
  return kernels;
}

template <size_t kChains, size_t NV>
void RunFree(GemmTile& slice, size_t rows) {
  static constexpr WidthKernels kWidth =
      MakeWidth<kChains, NV>(std::make_index_sequence<MaxMr<kChains, NV>()>());
  internal::RunSlice(kWidth, slice, rows);
}

template <size_t kChains, size_t NV>
constexpr void FillWidth(GemmKernel* kernel) {
  kernel->max_mr[NV] = MaxMr<kChains, NV>();
  kernel->run[NV] = kernel->max_mr[NV] != 0 ? &RunFree<kChains, NV> : nullptr;
}

template <size_t kChains>
GemmKernel MakeKernel() {
  GemmKernel kernel = internal::GetGemmKernelF32();  // for how it packs
  for (size_t nv = 0; nv <= GemmKernel::kMaxNv; ++nv) {
    kernel.max_mr[nv] = 0;
    for (size_t& panels : kernel.wide_panels[nv]) panels = 0;
  }
  FillWidth<kChains, 1>(&kernel);
  FillWidth<kChains, 2>(&kernel);
  return kernel;
}

const GemmKernel* TargetFreeKernel(size_t chains) {
  static const GemmKernel two = MakeKernel<2>();
  static const GemmKernel four = MakeKernel<4>();
  return chains == 2 ? &two : &four;
}

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

HWY_EXPORT(TargetFreeKernel);

const internal::GemmKernel& FreeKernel(size_t chains) {
  return *ENCORE_DISPATCH(TargetFreeKernel)(chains);
}

}  // namespace encore::bench
#endif  // HWY_ONCE
