// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel for rows of the form (x, ldx, y, ldy, rows) over the last axis of views with any
// strides.

#ifndef ENCORE_ENGINE_OPS_ROW_BLOCKS_H_
#define ENCORE_ENGINE_OPS_ROW_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/ops/axis_loop.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {

// Rows whose elements are not contiguous pass through a buffer, this many at a time: as many floats
// as a cache line holds, since neighbouring rows of a transposed view share lines.
inline constexpr size_t kBufferedRows = 16;

// x and y have one shape of rank >= 1 and do not overlap, unless y is x.
inline Status CheckRowViews(const ConstView& x, const MutableView& y) {
  if (x.rank() == 0) return InvalidArgument("x has shape []; wanted a rank of at least 1");
  ENCORE_RETURN_IF_ERROR(CheckRank("x", x, x.rank()));
  ENCORE_RETURN_IF_ERROR(CheckShape("y", y, x.shape(), "that of x"));
  ENCORE_RETURN_IF_ERROR(CheckOutput("y", y));
  return CheckInPlaceOrApart("y", y, "x", x);
}

// Calls kernel(x, ldx, y, ldy, rows) until all rows of y are written; x and y as CheckRowViews
// wants them. kOutOfMemory where a buffer is needed and cannot be had; nothing is written then.
template <class Kernel>
Status ForRowBlocks(const ConstView& x, const MutableView& y, Kernel kernel) {
  const size_t last = x.rank() - 1;
  const size_t cols = x.dim(last);
  AxisLoop<2> loop;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (x.dim(i) == 0) return {};
    if (i < last) loop.Push({x.dim(i), {x.stride(i), y.stride(i)}});
  }
  const AxisLoop<2>::Axis block = loop.Pop();
  const size_t rows = block.extent;
  const ptrdiff_t x_row = block.strides[0];
  const ptrdiff_t y_row = block.strides[1];
  const ptrdiff_t x_col = x.stride(last);
  const ptrdiff_t y_col = y.stride(last);

  const bool contiguous = cols == 1 || (x_col == 1 && y_col == 1);
  AlignedBuffer<float> buffer;
  if (!contiguous) {
    size_t floats = 0;
    if (!CheckedMul(cols, std::min(rows, kBufferedRows), &floats) || !buffer.Allocate(floats)) {
      return NoMemoryFor("a copy of rows of " + std::to_string(cols) + " floats");
    }
  }
  // Leading dimensions of kernels are not negative.
  const bool rising = x_row >= 0 && y_row >= 0;
  const size_t step = contiguous ? (rising ? rows : 1) : kBufferedRows;

  const FpEnvScope modes;  // results are the same under any modes of the caller's
  loop.ForEach([&](const auto& offsets) {
    for (size_t begin = 0; begin < rows; begin += step) {
      const size_t n = std::min(step, rows - begin);
      const float* from = x.data() + offsets[0] + static_cast<ptrdiff_t>(begin) * x_row;
      float* to = y.data() + offsets[1] + static_cast<ptrdiff_t>(begin) * y_row;
      if (contiguous) {
        kernel(from, n == 1 ? cols : static_cast<size_t>(x_row), to,
               n == 1 ? cols : static_cast<size_t>(y_row), n);
        continue;
      }
      const MutableView copy(buffer.data(), Shape(n, cols));
      CopyMatrix(ConstView(from, copy.shape(), {x_row, x_col}), copy);
      kernel(buffer.data(), cols, buffer.data(), cols, n);
      CopyMatrix(copy, MutableView(to, copy.shape(), {y_row, y_col}));
    }
  });
  return {};
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_ROW_BLOCKS_H_
