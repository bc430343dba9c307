// SPDX-License-Identifier: Apache-2.0
//
// The matrix product: loops over panels and slices of K around the kernels.
// Written once for all element types: what it needs to know of one is in GemmKernel.

#ifndef ENCORE_ENGINE_OPS_GEMM_H_
#define ENCORE_ENGINE_OPS_GEMM_H_

#include <cstddef>

#include "engine/kernels/gemm_kernel.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Where the columns of the product go, if not side by side: in blocks of `cols` columns (a multiple
// of the kernel's lanes), the first column of block i at c + i * stride. A projection's output is
// then stored head by head, [heads, rows, head size]. cols 0: side by side.
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

// Rows [row_begin, row_end) of panels [panel_begin, panel_end). Allocates nothing; at most 32 KiB
// of sums on the stack, and 8 KiB with AMX or 27 of int4 and of bf16 by FMAs. No other call may
// write the same part of c meanwhile.
void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end);

// Row 0 .. m-1 and all panels, shared among the team's threads.
void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_GEMM_H_
