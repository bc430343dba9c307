// SPDX-License-Identifier: Apache-2.0
//
// The f32 micro-kernels of every SIMD target.

#include "engine/kernels/gemm_kernel.h"

#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/gemm_pack-inl.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

// Tile sizes by the number of registers. The tile needs MR * NV accumulators, NV vectors of B and
// one of A; at least latency * throughput = 4 * 2 = 8 accumulators keep both FMA pipes busy, and
// more rows mean fewer loads a product.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 || HWY_ARCH_ARM_A64  // 32 registers
constexpr size_t kMaxMr[GemmKernel::kMaxNv + 1] = {0, 16, 12, 9, 6};
constexpr size_t kBestNv = 3;
// Panels of a wide tile by [nv][mr]: none, since one panel is read as fast as L2 gives. Warm, two
// or four side by side take 0 to 20 % longer than one.
constexpr size_t kWidePanels[GemmKernel::kMaxNv + 1][3] = {};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86  // 16 registers
constexpr size_t kMaxMr[GemmKernel::kMaxNv + 1] = {0, 8, 6, 4, 0};
constexpr size_t kBestNv = 2;
// For 8 accumulators or more.
constexpr size_t kWidePanels[GemmKernel::kMaxNv + 1][3] = {{}, {}, {0, 4, 3}, {0, 3, 2}, {}};
#else  // 16 registers, and without FMA the product takes one more
constexpr size_t kMaxMr[GemmKernel::kMaxNv + 1] = {0, 8, 6, 3, 0};
constexpr size_t kBestNv = 2;
constexpr size_t kWidePanels[GemmKernel::kMaxNv + 1][3] = {{}, {}, {0, 4, 2}, {0, 3, 0}, {}};
#endif

// What gemm_tile-inl.h wants to know.
struct TypeF32 {
  using Word = float;
  using Vec = hn::Vec<GemmTagF32>;
  static constexpr size_t kGroup = 1;
  static HWY_INLINE Vec Spread(Word word) { return hn::Set(GemmTagF32(), word); }
  static HWY_INLINE Vec Load(const Word* words) { return hn::LoadU(GemmTagF32(), words); }
  static HWY_INLINE Vec MulAdd(Vec a, Vec b, Vec sum) { return hn::MulAdd(a, b, sum); }
};

template <size_t NV, size_t... I>
constexpr void FillTiles(GemmKernel& kernel, std::index_sequence<I...>) {
  ((kernel.tile[kNoLine][NV][I + 1] = &RunGemmTile<I + 1, NV, kNoLine, TypeF32>), ...);
  ((kernel.tile[kOneLine][NV][I + 1] = &RunGemmTile<I + 1, NV, kOneLine, TypeF32>), ...);
  ((kernel.tile[kAllLines][NV][I + 1] = &RunGemmTile<I + 1, NV, kAllLines, TypeF32>), ...);
}

template <size_t NV, size_t MR>
constexpr void FillWideTile(GemmKernel& kernel) {
  constexpr size_t kPanels = kWidePanels[NV][MR];
  if constexpr (kPanels != 0) {
    kernel.wide[NV][MR] = {kPanels, &RunGemmTile<MR, NV * kPanels, kAllLines, TypeF32, kPanels>};
  }
}

GemmKernel MakeKernel() {
  GemmKernel kernel{};
  kernel.target = hwy::TargetName(HWY_TARGET);
  kernel.a_bytes = sizeof(float);
  kernel.b_bytes = sizeof(float);
  kernel.kr = TypeF32::kGroup;
  kernel.lanes = hn::MaxLanes(GemmTagF32());
  kernel.best_nv = kBestNv;
  for (size_t nv = 0; nv <= GemmKernel::kMaxNv; ++nv) kernel.max_mr[nv] = kMaxMr[nv];
  FillTiles<1>(kernel, std::make_index_sequence<kMaxMr[1]>());
  FillTiles<2>(kernel, std::make_index_sequence<kMaxMr[2]>());
  FillTiles<3>(kernel, std::make_index_sequence<kMaxMr[3]>());
  if constexpr (kMaxMr[4] != 0) FillTiles<4>(kernel, std::make_index_sequence<kMaxMr[4]>());
  FillWideTile<2, 1>(kernel);
  FillWideTile<2, 2>(kernel);
  FillWideTile<3, 1>(kernel);
  FillWideTile<3, 2>(kernel);
  FillWideTile<4, 1>(kernel);
  kernel.pack = &PackPanel;
  kernel.transpose = &Transpose;
  return kernel;
}

const GemmKernel* TargetGemmKernelF32() {
  static const GemmKernel kernel = MakeKernel();
  return &kernel;
}

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetGemmKernelF32);

const GemmKernel& GetGemmKernelF32() { return *HWY_DYNAMIC_DISPATCH(TargetGemmKernelF32)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
