// SPDX-License-Identifier: Apache-2.0
//
// From the hidden states of one text's tokens to one vector, and vectors of length 1.

#ifndef ENCORE_ENGINE_TEXT_POOLING_H_
#define ENCORE_ENGINE_TEXT_POOLING_H_

#include <cstddef>
#include <span>

#include "encore/encoder.h"
#include "encore/text_encoder.h"

namespace encore::inline v0_1::internal {

// Which rows of the last layer the modes read.
OutputRows RowsOf(std::span<const PoolingMode> modes);

// out [modes, width] from hidden [rows, width], contiguous, rows >= 1. Each column is summed up in
// double, first row to last, divided in double and rounded once. With RowsOf(modes) kFirst or kLast
// hidden is that row alone. sums is scratch, [width].
void PoolRows(std::span<const PoolingMode> modes, const float* hidden, size_t rows, size_t width,
              double* sums, float* out);

// row / max(sqrt(sum row^2), 1e-12), as torch.nn.functional.normalize: computed in double, element
// i summed up in virtual lane i mod 8, the lanes in order; rounded once. In place.
void NormalizeRow(float* row, size_t width);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_POOLING_H_
