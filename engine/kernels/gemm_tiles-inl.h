// SPDX-License-Identifier: Apache-2.0
//
// The kernel of an element type: the table of its tiles, and packing. Included once for each SIMD
// target.
//
// Beside what a tile wants of a Type, it says here:
//   kMaxMr[nv]             the most rows of a tile of nv vectors; 0: there is none
//   kBestNv                the panel width (vectors) to prefer
//   kWidePanels[nv][mr]    panels of a wide tile; 0: there is none

#if defined(ENCORE_ENGINE_KERNELS_GEMM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_TILES_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_TILES_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_TILES_INL_H_
#endif

#include <cstddef>
#include <utility>

#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/gemm_pack-inl.h"
#include "engine/kernels/gemm_slice.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Type, size_t NV, size_t... I>
constexpr void FillTiles(WidthKernels& kernels, std::index_sequence<I...>) {
  // Tiles of several vectors have loads to spare: those that need no prefetch are those that
  // prefetch a line at each k, of an address that costs nothing. A third less code.
  constexpr TilePrefetch kNone = NV == 1 ? kNoLine : kOneLine;
  constexpr TilePrefetch kAll = PrefetchLines<Type, NV>() == 1 ? kOneLine : kAllLines;
  ((kernels.tile[kNoLine][I + 1] = &RunGemmTile<I + 1, NV, kNone, Type>), ...);
  ((kernels.tile[kOneLine][I + 1] = &RunGemmTile<I + 1, NV, kOneLine, Type>), ...);
  ((kernels.tile[kAllLines][I + 1] = &RunGemmTile<I + 1, NV, kAll, Type>), ...);
}

template <class Type, size_t NV, size_t MR>
constexpr void FillWideTile(WidthKernels& kernels) {
  constexpr size_t kPanels = Type::kWidePanels[NV][MR];
  if constexpr (kPanels != 0) {
    kernels.wide[MR] = &RunGemmTile<MR, NV * kPanels, kAllLines, Type, kPanels>;
  }
}

// Builds that are not about speed compile fewer tiles (ENCORE_FEW_TILES). No bit depends on it.
#ifdef ENCORE_FEW_TILES
inline constexpr size_t kMostRows = 4;
#else
inline constexpr size_t kMostRows = GemmKernel::kMaxMr;
#endif

struct NoBlocks {
  template <size_t NV>
  static constexpr BlockFn kRun = nullptr;
  static constexpr size_t kMinRows = 0;
  static constexpr size_t kMinGroups = 0;
};

template <class Type, size_t NV, class Blocks = NoBlocks>
inline constexpr WidthKernels kWidth = [] {
  constexpr size_t kMaxMr = HWY_MIN(Type::kMaxMr[NV], kMostRows);
  WidthKernels kernels{};
  kernels.nv = NV;
  kernels.column_bytes = sizeof(typename Type::Word);
  kernels.max_mr = kMaxMr;
  if constexpr (kMaxMr != 0) {
    FillTiles<Type, NV>(kernels, std::make_index_sequence<kMaxMr>());
  }
  FillWideTile<Type, NV, 1>(kernels);
  FillWideTile<Type, NV, 2>(kernels);
  kernels.block = Blocks::template kRun<NV>;
  kernels.min_block_rows = Blocks::kMinRows;
  kernels.min_block_groups = Blocks::kMinGroups;
  return kernels;
}();

template <class Type, size_t NV, class Blocks>
void RunWidth(GemmTile& slice, size_t rows) {
  RunSlice(kWidth<Type, NV, Blocks>, slice, rows);
}

template <class Type, class Blocks, size_t NV>
constexpr void FillWidth(GemmKernel& kernel) {
  if constexpr (Type::kMaxMr[NV] != 0) {
    kernel.max_mr[NV] = HWY_MIN(Type::kMaxMr[NV], kMostRows);
    kernel.run[NV] = &RunWidth<Type, NV, Blocks>;
    for (size_t mr = 1; mr <= GemmKernel::kMaxWideMr; ++mr) {
      kernel.wide_panels[NV][mr] = Type::kWidePanels[NV][mr];
    }
  }
}

// pack_lhs: null where rows of floats are rows of A.
template <class Type, class Pack, class Blocks = NoBlocks>
constexpr GemmKernel KernelOf(GemmKernel::PackLhsFn pack_lhs) {
  GemmKernel kernel{};
  kernel.target = &HWY_STR(HWY_NAMESPACE)[2];  // of "N_AVX2"
  kernel.integer = Type::kInteger;
  kernel.a_offset = Type::kInteger ? kByteOffset : 0;
  kernel.a_bytes = sizeof(typename Type::AWord) / Type::kGroup;
  kernel.b_bytes = sizeof(typename Type::Word) / Type::kGroup;
  kernel.kr = Type::kGroup;
  kernel.lanes = hn::MaxLanes(GemmTagF32());
  kernel.best_nv = Type::kBestNv;
  FillWidth<Type, Blocks, 1>(kernel);
  FillWidth<Type, Blocks, 2>(kernel);
  FillWidth<Type, Blocks, 3>(kernel);
  FillWidth<Type, Blocks, 4>(kernel);
  kernel.pack = &PackPanel<Pack>;
  kernel.transpose = &TransposeWords<Pack>;
  kernel.pack_lhs = pack_lhs;
  return kernel;
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
