// SPDX-License-Identifier: Apache-2.0
//
// How a matrix product is cut: pure functions of sizes, cache sizes and threads. No choice made
// here changes a bit of a result.

#ifndef ENCORE_ENGINE_OPS_GEMM_BLOCKING_H_
#define ENCORE_ENGINE_OPS_GEMM_BLOCKING_H_

#include <cstddef>

#include "encore/cpu.h"
#include "engine/base/even_split.h"
#include "engine/kernels/gemm_kernel.h"

namespace encore::inline v0_1::internal {

// Rows of A that pass over a panel of B while it is in cache (MC), and the length of a slice of K
// (KC), in groups of the kernel's kr.
struct GemmBlocking {
  size_t mc;
  size_t kc;
};

// The largest mc that ChooseGemmBlocking gives: strips of partial sums of this many rows live on
// the stack.
inline constexpr size_t kMaxMc = 128;

// Caches() of cpu.h, read once.
const CacheSizes& MachineCaches();

// For K of so many groups, each of group_bytes in a column of B. A row of A is assumed to have as
// many; of int4 it has 32 where a column has 18.
GemmBlocking ChooseGemmBlocking(const CacheSizes& caches, size_t k, size_t nr,
                                size_t group_bytes = sizeof(float));

// The panel width, in vectors, for a matrix of n columns: the kernel's best one if it leaves no
// narrow last panel.
size_t ChoosePanelVectors(const GemmKernel& kernel, size_t n);
// The widest panel whose columns divide `multiple` (a power of two), for packed keys.
size_t ChooseAlignedPanelVectors(const GemmKernel& kernel, size_t multiple);

// A product's tasks: a grid of row blocks by column blocks (ranges of panels).
struct TileGrid {
  EvenSplit rows;
  EvenSplit panels;
  size_t tasks() const { return rows.parts * panels.parts; }
};

// Few enough tasks to keep panels and rows in cache, and enough for every thread.
TileGrid ChooseTileGrid(size_t m, size_t panels, size_t mc, size_t threads);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_GEMM_BLOCKING_H_
