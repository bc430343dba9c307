// SPDX-License-Identifier: Apache-2.0
//
// How a kernel computes the rows of a slice: by microtiles, or all at once by a block kernel.
// Private to kernels/, whose GemmKernel::run it is behind.

#ifndef ENCORE_ENGINE_KERNELS_GEMM_SLICE_H_
#define ENCORE_ENGINE_KERNELS_GEMM_SLICE_H_

#include <cstddef>

#include "engine/kernels/gemm_kernel.h"

namespace encore::inline v0_1::internal {

// How many cache lines a tile prefetches per step of k. Some tiles prefetch one line even for
// kNoLine; then point `prefetch` at a line already in L1, with step 0.
enum TilePrefetch { kNoLine, kOneLine, kAllLines, kNumTilePrefetches };

// One microtile: the first MR rows of `tile`. At each k it prefetches the line at in.prefetch, or
// as many from there as fill NV vectors, and goes in.prefetch_step bytes on. A wide tile prefetches
// all lines of all of its panels.
using TileFn = void (*)(const GemmTile& tile);

// All rows in one call. It prefetches in.prefetch_step bytes at each k. Of integers, init_scale and
// scale are null.
using BlockFn = void (*)(const GemmTile& slice, size_t rows);

// What is compiled for one element type and panel width.
struct WidthKernels {
  size_t nv;
  size_t column_bytes;  // of a group of b
  size_t max_mr;
  TileFn tile[kNumTilePrefetches][GemmKernel::kMaxMr + 1];  // [][mr]
  TileFn wide[GemmKernel::kMaxWideMr + 1];                  // [mr]
  BlockFn block;                                            // null: only tiles
  // Where the block kernel is faster than tiles; of slices whose groups are a multiple of 16.
  size_t min_block_rows;
  size_t min_block_groups;
};

void RunSlice(const WidthKernels& kernels, GemmTile& slice, size_t rows);
void RunBlock(BlockFn block, size_t column_bytes, GemmTile& slice, size_t rows);

// From `rows` rows to those below them, but for the gate, which is applied to all rows at once or
// by RunSlice.
inline void SkipRows(GemmTile& t, size_t nv, size_t rows) {
  t.in.a = t.in.a.From(rows);
  t.in.init += rows * t.in.ld_init;
  if (t.in.init_scale != nullptr) t.in.init_scale += rows;
  if (t.out.scale != nullptr) t.out.scale += rows;
  if (t.out.residual.data != nullptr) t.out.residual = t.out.residual.From(rows);
  for (size_t j = 0; j < nv; ++j) t.out.c[j] += rows * t.out.ldc;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_GEMM_SLICE_H_
