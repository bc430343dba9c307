// SPDX-License-Identifier: Apache-2.0
//
// Rows in memory, as they go from the encoder to the tile: of floats, and of a product's left-hand
// side in the elements of its kernel. Without initialisers, since tiles are made of them.

#ifndef ENCORE_ENGINE_KERNELS_ROWS_H_
#define ENCORE_ENGINE_KERNELS_ROWS_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// Row r begins at data + r * ld.
struct ConstRows {
  const float* data;  // or null for none
  size_t ld;          // floats

  const float* row(size_t r) const { return data + r * ld; }
  ConstRows From(size_t r) const { return {data + r * ld, ld}; }
};
struct Rows {
  float* data;
  size_t ld;  // floats

  operator ConstRows() const { return {data, ld}; }  // NOLINT(google-explicit-constructor)
  float* row(size_t r) const { return data + r * ld; }
  Rows From(size_t r) const { return {data + r * ld, ld}; }
};

// How a row of A was quantised; of other types than int8 unused. A row with NaN or an infinity has
// the scale NaN, and one whose largest magnitude is below 2^-100 has the scale 0.
struct RowQuant {
  float scale;
  float zero_point;  // an integer, 0 .. 255
};

// Rows of A, each of whole groups of elements: those that GemmKernel::pack_lhs writes, and those
// that a product reads. Row r begins at data + r * stride.
struct PackedLhs {
  std::byte* data;
  size_t stride;    // bytes
  RowQuant* quant;  // [rows], or null

  PackedLhs From(size_t r) const {
    return {data + r * stride, stride, quant == nullptr ? nullptr : quant + r};
  }
};
struct InputRows {
  const std::byte* data;
  size_t stride;          // bytes
  const RowQuant* quant;  // [rows], or null

  static InputRows Of(const PackedLhs& rows) { return {rows.data, rows.stride, rows.quant}; }
  // For a kernel that reads rows of floats as they are.
  static InputRows Of(const ConstRows& rows) {
    return {reinterpret_cast<const std::byte*>(rows.data), rows.ld * sizeof(float), nullptr};
  }
  InputRows From(size_t r) const {
    return {data + r * stride, stride, quant == nullptr ? nullptr : quant + r};
  }
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ROWS_H_
