// SPDX-License-Identifier: Apache-2.0
//
// The weights of a linear layer as the caller has them: in up to three matrices, of f32, bf16, f16,
// f64 or int8 with scales, with any strides and any alignment; and how a piece of them is read as
// f32, or quantised.

#ifndef ENCORE_ENGINE_OPS_WEIGHT_SOURCE_H_
#define ENCORE_ENGINE_OPS_WEIGHT_SOURCE_H_

#include <array>
#include <cstddef>

#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

struct WeightPart {
  WeightView weight;   // [rows, k], as PyTorch stores it; a row makes one output
  WeightView bias;     // [rows], or empty for 0
  WeightView scale{};  // [rows]: of int8 weights, and only of these
};

// One matrix whose rows are those of the parts, one part under another.
struct WeightSource {
  std::array<WeightPart, 3> parts{};
  size_t num_parts = 0;
  WeightView output_scale{};  // [rows()], or empty for 1: multiplies each row and its bias
  WeightView input_scale{};   // [k], or empty for 1: columns of int8 weights are divided by it
  const float* column_factor = nullptr;  // [k], or null for 1: multiplies columns of other weights
  // Two parts of equally many rows: the gate, which an activation is applied to, and what it
  // multiplies. The product has as many columns as one of them.
  bool gated = false;

  static WeightSource One(const WeightView& weight, const WeightView& bias = {}) {
    return {.parts = {WeightPart{weight, bias}}, .num_parts = 1};
  }
  size_t k() const { return parts[0].weight.dim(1); }
  bool has_bias() const {
    return !parts[0].bias.empty() || !parts[1].bias.empty() || !parts[2].bias.empty();
  }
  // Rows of all parts; false if that exceeds size_t.
  [[nodiscard]] bool CountRows(size_t* rows) const;
};

// Rows that can be used as they are: element (row, k) is data[row * stride_row + k * stride_k].
struct PlainRows {
  const float* data;
  ptrdiff_t stride_row;
  ptrdiff_t stride_k;
};
// Whether rows [row, row + rows) are aligned f32 of one part, without a scale.
bool FindPlainRows(const WeightSource& source, size_t row, size_t rows, PlainRows* plain);

// out[r * ld_out + i] = element (row + r, k + i) for r < rows, i < count: converted to f32, f64 to
// nearest, then multiplied by the row's scale and by the column's, and rounded after each. int8
// weights are multiplied by their own row's scale first, and divided by their column's. Under the
// rounding mode of the caller (platform/fp_env.h).
void ReadRows(const WeightSource& source, size_t row, size_t rows, size_t k, size_t count,
              float* out, size_t ld_out);
// All elements of a vector, likewise converted.
void ReadVector(const WeightView& vector, float* out);
// out[r] = the bias of row + r, likewise.
void ReadBias(const WeightSource& source, size_t row, size_t rows, float* out);

// Rows of smaller scales are as zeros: their values would underflow in the product.
inline constexpr float kLeastInt8Scale = 0x1p-100f;
// The scale of each of these rows as int8: that of its largest magnitude over 127; of int8 weights
// their own, times the row's output_scale. Leaves NaN where a number of the row is not finite.
void ReadInt8Scales(const WeightSource& source, size_t row, size_t rows, float* scales);
// out as of ReadRows, but divided by the row's scale and rounded to an integer, -127 .. 127 (-128
// where int8 weights are). Adds each row's integers to sums.
void ReadInt8Rows(const WeightSource& source, const float* scales, size_t row, size_t rows,
                  size_t k, size_t count, float* out, size_t ld_out, float* sums);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_WEIGHT_SOURCE_H_
