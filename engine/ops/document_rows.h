// SPDX-License-Identifier: Apache-2.0
//
// A document's rows in f32, bf16 or int8, on their way to the products of MaxSim; and int8 and bf16
// rows made of f32.

#ifndef ENCORE_ENGINE_OPS_DOCUMENT_ROWS_H_
#define ENCORE_ENGINE_OPS_DOCUMENT_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "encore/tensor.h"
#include "engine/kernels/gemm_kernel.h"

namespace encore::inline v0_1::internal {

// Rows of all documents of a call, each contiguous.
struct DocumentRows {
  DType type;             // F32, BF16 or I8
  const std::byte* data;  // row r begins at data + r * stride
  size_t stride;          // bytes
  size_t width;           // elements of a row
  const float* scales;    // of I8, one a row; null of others

  // The kernel that multiplies these rows.
  const GemmKernel& kernel() const;
  // Bytes of a row as one of A, where Make writes any.
  size_t made_bytes(const GemmKernel& kernel) const {
    return kernel.GroupsOf(width) * kernel.kr * kernel.a_bytes;
  }
  // Rows [row, row + count) as rows of A: where they are, or made at `room`.
  InputRows Make(const GemmKernel& kernel, size_t row, size_t count, const PackedLhs& room) const;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_DOCUMENT_ROWS_H_
