// SPDX-License-Identifier: Apache-2.0
//
// What every operation asks of its views at the entry, with sentences that name the view, what was
// found and what was wanted; and copies of those whose rows the kernels cannot walk.

#ifndef ENCORE_ENGINE_OPS_VIEW_CHECK_H_
#define ENCORE_ENGINE_OPS_VIEW_CHECK_H_

#include <cstddef>
#include <string>

#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {

// The stride between rows of a matrix whose rows are contiguous and in rising order.
template <typename T>
size_t RowStride(const TensorView<T>& rows) {
  return rows.dim(0) <= 1 ? rows.dim(1) : static_cast<size_t>(rows.stride(0));
}

// Whether the rows (of the last two axes) are such as the kernels can walk: contiguous, and one
// after another in rising order.
template <typename T>
bool HasPlainRows(const TensorView<T>& view) {
  const size_t last = view.rank() - 1;
  return (view.dim(last) <= 1 || view.stride(last) == 1) &&
         (view.dim(last - 1) <= 1 || view.stride(last - 1) >= 0);
}

// Copies a matrix to one of its shape; column by column, so that the source of a transposed view is
// read along its lines.
inline void CopyMatrix(const ConstView& from, const MutableView& to) {
  for (size_t c = 0; c < from.dim(1); ++c) {
    for (size_t r = 0; r < from.dim(0); ++r) to(r, c) = from(r, c);
  }
}

// The view has this rank, memory (unless it has no elements), and a size that does not overflow.
template <typename T>
Status CheckRank(const char* name, const TensorView<T>& view, size_t rank) {
  if (view.rank() != rank) {
    return InvalidArgument(std::string(name) + " has shape " + view.shape().ToString() +
                           "; wanted rank " + std::to_string(rank));
  }
  const Result<size_t> elements = view.shape().NumElements();
  if (!elements.ok())
    return InvalidArgument(std::string(name) + ": " + elements.status().message());
  if (*elements != 0 && view.data() == nullptr) {
    return InvalidArgument(std::string(name) + " of shape " + view.shape().ToString() +
                           " has no data");
  }
  return {};
}

// The view has exactly this shape. `why` says where the wanted shape comes from.
template <typename T>
Status CheckShape(const char* name, const TensorView<T>& view, const Shape& wanted,
                  const char* why) {
  if (!(view.shape() == wanted)) {
    return InvalidArgument(std::string(name) + " has shape " + view.shape().ToString() +
                           "; wanted " + wanted.ToString() + " (" + why + ")");
  }
  return CheckRank(name, view, wanted.rank());
}

// No two elements of the view share memory through a stride of 0; outputs only.
template <typename T>
Status CheckOutput(const char* name, const TensorView<T>& view) {
  for (size_t i = 0; i < view.rank(); ++i) {
    if (view.dim(i) == 0) return {};  // no elements; the dense strides of such shapes hold zeros
  }
  for (size_t i = 0; i < view.rank(); ++i) {
    if (view.dim(i) > 1 && view.stride(i) == 0) {
      return InvalidArgument(std::string(name) + " is an output and has stride 0 along axis " +
                             std::to_string(i) + ", which has extent " +
                             std::to_string(view.dim(i)) + "; wanted distinct elements");
    }
  }
  return {};
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_VIEW_CHECK_H_
