// SPDX-License-Identifier: Apache-2.0
//
// What a model's memory is: tables in a file's bytes or in own memory, and packed matrices; and
// views of some of their rows.

#ifndef ENCORE_ENGINE_MODELS_TABLE_MEMORY_H_
#define ENCORE_ENGINE_MODELS_TABLE_MEMORY_H_

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {

// Rows of the view [begin, end).
template <typename T>
TensorView<T> RowRange(const TensorView<T>& view, size_t begin, size_t end) {
  return TensorView<T>(view.data() + static_cast<ptrdiff_t>(begin) * view.stride(0),
                       Shape(end - begin, view.dim(1)), view.strides());
}

// Of a dense table of rank 2, or an empty one.
inline std::span<const std::byte> BytesOf(const WeightView& table) {
  if (table.empty()) return {};
  return {static_cast<const std::byte*>(table.data()),
          table.dim(0) * table.dim(1) * DTypeSize(table.dtype())};
}

// Of a packed matrix that is in own memory, without the padding of its last panel.
inline size_t PackedBytes(const std::optional<PackedLinear>& linear) {
  return linear ? linear->in_features() * linear->out_features() * sizeof(float) : 0;
}

// Copies the table to `own` and views it there. kOutOfMemory.
inline Status CopyTable(WeightView* table, Tensor* own) {
  const std::span<const std::byte> bytes = BytesOf(*table);
  if (bytes.empty()) return {};
  ENCORE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(table->dtype(), table->shape()));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  *own = std::move(copy);
  *table = WeightView(own->dtype(), own->data(), own->shape());
  return {};
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_TABLE_MEMORY_H_
