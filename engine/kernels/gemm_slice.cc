// SPDX-License-Identifier: Apache-2.0
//
// The rows of a slice, plain C++ for every SIMD target.

#include "engine/kernels/gemm_slice.h"

#include <algorithm>

#include "engine/base/even_split.h"
#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {
namespace {

// Of rows that were just written, and are in L1.
void Activate(const TileEpilogue& out, size_t rows) {
  if (out.activation != nullptr) out.activation(out.c[0], out.ldc, rows, out.cols);
  if (out.gated != nullptr) {
    out.gated(out.gate, out.ld_gate, out.c[0], out.ldc, rows, out.cols);
  }
}

const char* LineInL1() { return reinterpret_cast<const char*>(kZeroRow); }

}  // namespace

void RunBlock(BlockFn block, size_t column_bytes, GemmTile& slice, size_t rows) {
  const char* const prefetch = slice.in.prefetch;
  slice.in.prefetch_step = prefetch != nullptr ? slice.in.ldb * column_bytes : 0;
  if (prefetch == nullptr) slice.in.prefetch = LineInL1();
  block(slice, rows);
  Activate(slice.out, rows);
  slice.in.prefetch = prefetch;
}

void RunSlice(const WidthKernels& kernels, GemmTile& slice, size_t rows) {
  TileOperands& in = slice.in;
  const char* const prefetch = in.prefetch;
  const size_t group_bytes = in.ldb * kernels.column_bytes;
  if (in.panels > 1) {
    in.prefetch_step = group_bytes;
    kernels.wide[rows](slice);
    return Activate(slice.out, rows);
  }
  // Without prefetch (attention, MaxSim) b is in L1.
  if (kernels.block != nullptr && prefetch != nullptr && rows >= kernels.min_block_rows &&
      in.kc >= kernels.min_block_groups && in.kc % 16 == 0) {
    return RunBlock(kernels.block, kernels.column_bytes, slice, rows);
  }
  const EvenSplit split(rows, DivCeil(rows, kernels.max_mr));
  // Each tile fetches its share: a burst would hold up the loads that the tiles wait for. One or
  // two tiles prefetch all lines of a row of the panel at each k, more of them one line, and the
  // same one again until the next begins.
  TilePrefetch lines = kNoLine;
  in.prefetch_step = 0;
  if (prefetch == nullptr) {
    in.prefetch = LineInL1();
  } else {
    lines = split.parts < std::max<size_t>(1, group_bytes / 64) ? kAllLines : kOneLine;
    in.prefetch_step = DivCeil(group_bytes, split.parts);
  }
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    kernels.tile[lines][mr](slice);
    Activate(slice.out, mr);
    SkipRows(slice, kernels.nv, mr);
    if (slice.out.gate != nullptr) slice.out.gate += mr * slice.out.ld_gate;
    in.prefetch += in.prefetch_step * in.kc;
  }
  in.prefetch = prefetch;
}

}  // namespace encore::internal
