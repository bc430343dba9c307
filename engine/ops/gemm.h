// SPDX-License-Identifier: Apache-2.0
//
// The matrix product: loops over panels, slices of K and tiles of rows, around the micro-kernels.
// Written once for all element types: what it needs to know of one is in GemmKernel.

#ifndef ENCORE_ENGINE_OPS_GEMM_H_
#define ENCORE_ENGINE_OPS_GEMM_H_

#include <cstddef>

#include "engine/kernels/activation.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Where the columns of the product go, if not side by side: in groups of `cols` columns (a multiple
// of the kernel's lanes), the first column of group g at c + g * stride. A projection's output then
// comes head by head, [heads, rows, head size]. cols 0: side by side.
struct ColumnGroups {
  size_t cols = 0;
  size_t stride = 0;
};

// c = activation(bias + a b) or c = bias + a b + residual, with the bias of b's view; or, where b
// is gated, c = f(bias_g + a b_g) * (bias + a b). Pointers are to row 0 and column 0.
struct GemmArgs {
  const void* a;  // [m, lda] elements of the kernel's A, rows of b.k in whole groups
  size_t lda;
  PackedView b;                         // [k, n]
  const RowQuant* row_quant = nullptr;  // [m], of an integer kernel
  float* c;                             // [m, ldc], rows of b.n; may be the residual
  size_t ldc;
  ColumnGroups groups;
  const float* residual = nullptr;  // [m, ld_residual], or null; not together with an activation
  size_t ld_residual = 0;
  bool relu = false;
  // Or another activation; or null. Not together with groups.
  ActivationKernels::Tile activation = nullptr;
  // Where b is gated, and only there; without relu, activation, residual and groups.
  ActivationKernels::Gated gated = nullptr;
  // What will be read after the last panel, to be fetched into L2 by then; null for what follows it
  // in memory. Any address will do.
  const void* next = nullptr;
};

// As `init` of a tile that starts from nothing.
alignas(64) inline constexpr Accumulator kZeroRow[kMaxTileVectors * 16] = {};

// All rows of one column of tiles, in tiles of equal height (13 rows are 7 + 6, not 8 + 5). `tile`
// comes with the pointers of row 0, and goes with others.
void RunTiles(const GemmKernel& kernel, size_t nv, size_t rows, GemmTile& tile);

// Rows [row_begin, row_end) of panels [panel_begin, panel_end). Allocates nothing; at most 2 *
// kMaxMc * kMaxNr sums of stack, and 8 KiB with AMX. No other call may write the same part of c
// meanwhile.
void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end);

// Row 0 .. m-1 and all panels, shared among the team's threads.
void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_GEMM_H_
