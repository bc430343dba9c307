// SPDX-License-Identifier: Apache-2.0
//
// The matrix product: loops over panels, slices of K and tiles of rows, around the micro-kernels.
// Not here: the choice of sizes (gemm_blocking.h), packing (packed_matrix.h), views and validation
// (matmul.cc).

#ifndef ENCORE_ENGINE_OPS_GEMM_H_
#define ENCORE_ENGINE_OPS_GEMM_H_

#include <cstddef>

#include "engine/kernels/elementwise.h"
#include "engine/ops/gemm_blocking.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::internal {

// c = activation(bias + a b) or c = bias + a b + residual, with the bias of b's view (or init in
// its place). Pointers are to row 0 and column 0.
struct GemmArgs {
  const float* a;  // [m, lda], rows of b.k
  size_t lda;
  PackedView b;  // [k, n]
  float* c;      // [m, ldc], rows of b.n; may be the residual
  size_t ldc;
  const float* init =
      nullptr;  // [m, ld_init], full vectors readable, in place of the bias; or null
  size_t ld_init = 0;
  const float* residual = nullptr;  // [m, ld_residual], or null; not together with an activation
  size_t ld_residual = 0;
  ElementwiseKernels::Unary activation = nullptr;  // or null for none
};

// Rows [row_begin, row_end) of panels [panel_begin, panel_end). Allocates nothing; at most kMaxMc *
// kMaxNr floats of stack. No other call may write the same part of c meanwhile.
void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end);

// Row 0 .. m-1 and all panels, shared among the team's lanes.
void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_GEMM_H_
