// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 by FMAs for many rows: a piece of a panel is spread to floats once, and the f32
// tiles multiply all rows by it, two steps a group, the odd element's first. The bits are those of
// the bf16 tiles, which spread the panel again for every tile of rows. Included once for each SIMD
// target.

#if defined(ENCORE_ENGINE_KERNELS_GEMM_SPREAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_SPREAD_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_SPREAD_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_SPREAD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "engine/base/even_split.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/gemm_slice.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// In gemm_f32.cc.
const WidthKernels& TargetWidthF32(size_t nv);

// Groups of a piece of a panel, and rows whose sums are kept in memory between pieces: 18 KiB of
// floats and 9 of sums at most, on the stack. A tile of four rows and three vectors then has 24
// loads and stores of sums for 2,304 FMAs with 8 lanes, for half of these with 16.
template <size_t NV>
inline constexpr size_t kSpreadGroups = HWY_MIN(size_t{96},
                                                2304 / (NV * hn::MaxLanes(GemmTagF32())));
template <size_t NV>
inline constexpr size_t kSpreadRows = kSpreadGroups<NV>;

// Words [groups, ldb] of NV vectors become rows of floats, two a group.
template <size_t NV>
HWY_INLINE void SpreadGroups(const uint32_t* HWY_RESTRICT words, size_t ldb, size_t groups,
                             float* HWY_RESTRICT out) {
  const GemmTagF32 d;
  const hn::RebindToUnsigned<GemmTagF32> du;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  const auto upper = hn::Set(du, 0xFFFF0000u);
  for (size_t g = 0; g < groups; ++g, words += ldb, out += 2 * NV * kLanes) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) {
      const auto bits = hn::LoadU(du, words + j * kLanes);
      hn::Store(hn::BitCast(d, hn::And(bits, upper)), d, out + j * kLanes);
      hn::Store(hn::BitCast(d, hn::ShiftLeft<16>(bits)), d, out + (NV + j) * kLanes);
    }
  }
}

// Up to kSpreadRows<NV> rows, whose A is floats, of each pair the odd one first.
template <size_t NV>
HWY_NOINLINE void RunSpreadBlock(const GemmTile& all, size_t rows) {
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  constexpr size_t kWidth = NV * kLanes;
  HWY_ALIGN float panel[2 * kSpreadGroups<NV> * kWidth];
  HWY_ALIGN Accumulator sums[kSpreadRows<NV> * kWidth];
  const WidthKernels& f32 = TargetWidthF32(NV);
  const EvenSplit split(rows, (rows + f32.max_mr - 1) / f32.max_mr);
  // Each tile prefetches its share of the memory that follows.
  const size_t share = (all.in.prefetch_step + 2 * split.parts - 1) / (2 * split.parts);
  size_t done = 0;
  do {
    const size_t groups = HWY_MIN(all.in.kc - done, kSpreadGroups<NV>);
    SpreadGroups<NV>(static_cast<const uint32_t*>(all.in.b) + done * all.in.ldb, all.in.ldb, groups,
                     panel);
    GemmTile t = all;
    t.in.a.data += done * 2 * sizeof(float);
    t.in.b = panel;
    t.in.ldb = kWidth;
    t.in.kc = 2 * groups;
    t.in.prefetch += done * all.in.prefetch_step;
    t.in.prefetch_step = share;
    if (done != 0) {
      t.in.init = sums;
      t.in.ld_init = kWidth;
      t.in.init_scale = nullptr;
    }
    done += groups;
    if (done != all.in.kc) {
      t.out.scale = nullptr;
      t.out.residual.data = nullptr;
      t.out.relu = false;
      for (size_t j = 0; j < NV; ++j) t.out.c[j] = sums + j * kLanes;
      t.out.ldc = t.out.cols = kWidth;
    }
    for (size_t i = 0; i < split.parts; ++i) {
      const size_t mr = split.begin(i + 1) - split.begin(i);
      f32.tile[kOneLine][mr](t);
      SkipRows(t, NV, mr);
      t.in.prefetch += share * t.in.kc;
    }
  } while (done != all.in.kc);
}

template <size_t NV>
void RunSpreadRows(const GemmTile& tile, size_t rows) {
  GemmTile t = tile;
  for (size_t begin = 0; begin < rows; begin += kSpreadRows<NV>) {
    const size_t count = HWY_MIN(rows - begin, kSpreadRows<NV>);
    RunSpreadBlock<NV>(t, count);
    SkipRows(t, NV, count);
  }
}

struct SpreadBlocks {
  template <size_t NV>
  static constexpr BlockFn kRun = &RunSpreadRows<NV>;
  // Spreading costs one part in so many rows; with 32 registers the tiles lose less.
  static constexpr size_t kMinRows = ENCORE_32_REGISTERS ? 32 : 24;
  static constexpr size_t kMinGroups = 16;
};

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
