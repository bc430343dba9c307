// SPDX-License-Identifier: Apache-2.0
//
// The matrix product: loops over panels, slices of K and tiles of rows, around the micro-kernels.
// Written once for all element types: what it needs to know of one is in GemmKernel.

#ifndef ENCORE_ENGINE_OPS_GEMM_H_
#define ENCORE_ENGINE_OPS_GEMM_H_

#include <cstddef>

#include "engine/kernels/elementwise.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Where the columns of the product go, if not side by side: in blocks of `cols` columns (a multiple
// of the kernel's lanes), the first column of block i at c + i * stride. A projection's output then
// comes head by head, [heads, rows, head size]. cols 0: side by side.
struct ColumnBlocks {
  size_t cols = 0;
  size_t stride = 0;
};

// c = activation(bias + a b) or c = bias + a b + residual, with the bias of b's view; or, where b
// is gated, c = f(bias_g + a b_g) * (bias + a b). Pointers are to row 0 and column 0.
struct GemmArgs {
  InputRows a;   // [m], rows of b.k; with quant where the kernel is one of integers
  PackedView b;  // [k, n]
  Rows c;        // [m], rows of b.n; may be the residual
  ColumnBlocks blocks;
  ConstRows residual = {};  // [m], or null; not together with an activation
  bool relu = false;
  // Or another activation; or null. Not together with blocks.
  ActivationKernel::Tile activation = nullptr;
  // Where b is gated, and only there; without relu, activation, residual and blocks.
  ActivationKernel::Gated gated = nullptr;
  // What will be read after the last panel, to be fetched into L2 by then; null for what follows it
  // in memory. Any address will do.
  const void* next = nullptr;
};

// As `init` of a tile that starts from nothing.
alignas(64) inline constexpr Accumulator kZeroRow[kMaxTileVectors * 16] = {};

// A tile without factors, residual, relu and quantisation, which starts from nothing and fetches
// nothing; without a, b, kc and the place of c. Field by field: with few rows, clearing all of it
// would take a percent of the time.
inline GemmTile PlainTile() {
  GemmTile tile;
  tile.in.init = kZeroRow;
  tile.in.ld_init = 0;
  tile.in.init_scale = nullptr;
  tile.in.prefetch = reinterpret_cast<const char*>(kZeroRow);
  tile.in.prefetch_step = 0;
  tile.quant.columns.scale = nullptr;
  tile.out.scale = nullptr;
  tile.out.residual = {nullptr, 0};
  tile.out.relu = false;
  return tile;
}

// All rows of one column of tiles, in tiles of equal height (13 rows are 7 + 6, not 8 + 5). `tile`
// comes with the pointers of row 0, and goes with others.
void RunTiles(const GemmKernel& kernel, size_t nv, size_t rows, GemmTile& tile);

// Rows [row_begin, row_end) of panels [panel_begin, panel_end). Allocates nothing; at most 32 KiB
// of sums on the stack, and 8 KiB with AMX or 27 of int4 and of bf16 by FMAs. No other call may
// write the same part of c meanwhile.
void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end);

// Row 0 .. m-1 and all panels, shared among the team's threads.
void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_GEMM_H_
