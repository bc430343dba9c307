// SPDX-License-Identifier: Apache-2.0
//
// The softmax operation of encore/ops.h, on the calling thread.

#include "engine/kernels/softmax.h"

#include <cstddef>

#include "encore/ops.h"
#include "engine/base/guarded.h"
#include "engine/ops/row_blocks.h"

namespace encore::inline v0_1 {

Status Softmax(ConstView x, MutableView y) {
  return internal::Guarded("softmax", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(internal::CheckRowViews(x, y));
    const size_t cols = x.dim(x.rank() - 1);
    const auto kernel = internal::GetSoftmaxKernels().rows;
    return internal::ForRowBlocks(
        x, y, [=](const float* from, size_t ldx, float* to, size_t ldy, size_t rows) {
          kernel(from, ldx, to, ldy, rows, cols);
        });
  });
}

}  // namespace encore
