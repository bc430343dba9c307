// SPDX-License-Identifier: Apache-2.0
//
// Reads weights of every type element by element through memcpy, which any address will do for.

#include "engine/ops/weight_source.h"

#include <cstdint>
#include <cstring>

#include "engine/base/bf16.h"
#include "engine/base/int_math.h"

namespace encore::internal {
namespace {

template <typename Element, class ToFloat>
void ReadElements(const char* from, ptrdiff_t stride, size_t count, float* out, ToFloat to_float) {
  const auto read = [&](ptrdiff_t i) {
    Element element;
    std::memcpy(&element, from + i * static_cast<ptrdiff_t>(sizeof element), sizeof element);
    return to_float(element);
  };
  const ptrdiff_t n = static_cast<ptrdiff_t>(count);
  if (stride == 1) {  // apart, for the compiler to make vectors of it
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = read(i);
  } else {
    for (ptrdiff_t i = 0; i < n; ++i) out[i] = read(i * stride);
  }
}

// `count` elements from flat index `first` (in elements, may be negative) on, `stride` apart.
void ReadRun(const WeightView& view, ptrdiff_t first, ptrdiff_t stride, size_t count, float* out) {
  const char* from = static_cast<const char*>(view.data()) +
                     first * static_cast<ptrdiff_t>(DTypeSize(view.dtype()));
  switch (view.dtype()) {
    case DType::kBF16:
      return ReadElements<uint16_t>(from, stride, count, out, Bf16ToF32);
    case DType::kF16:
      return ReadElements<uint16_t>(from, stride, count, out, F16ToF32);
    case DType::kF64:
      return ReadElements<double>(from, stride, count, out,
                                  [](double v) { return static_cast<float>(v); });
    default:
      return ReadElements<float>(from, stride, count, out, [](float v) { return v; });
  }
}

float ReadOne(const WeightView& vector, size_t i) {
  float value;
  ReadRun(vector, static_cast<ptrdiff_t>(i) * vector.stride(0), 1, 1, &value);
  return value;
}

// The part that holds *row, which becomes the row of that part.
const WeightPart& FindPart(const WeightSource& source, size_t* row) {
  size_t p = 0;
  while (*row >= source.parts[p].weight.dim(0)) *row -= source.parts[p++].weight.dim(0);
  return source.parts[p];
}

}  // namespace

bool WeightSource::CountRows(size_t* rows) const {
  size_t sum = 0;
  for (size_t p = 0; p < num_parts; ++p) {
    if (!CheckedAdd(sum, parts[p].weight.dim(0), &sum)) return false;
  }
  *rows = sum;
  return true;
}

bool FindPlainRows(const WeightSource& source, size_t row, size_t rows, PlainRows* plain) {
  const WeightView& weight = FindPart(source, &row).weight;
  if (weight.dtype() != DType::kF32 || !source.output_scale.empty() || rows > weight.dim(0) - row ||
      reinterpret_cast<uintptr_t>(weight.data()) % alignof(float) != 0) {
    return false;
  }
  plain->stride_row = weight.stride(0);
  plain->stride_k = weight.stride(1);
  plain->data =
      static_cast<const float*>(weight.data()) + static_cast<ptrdiff_t>(row) * weight.stride(0);
  return true;
}

void ReadRows(const WeightSource& source, size_t row, size_t rows, size_t k, size_t count,
              float* out, size_t ld_out) {
  for (const size_t end = row + rows; row < end; ++row, out += ld_out) {
    size_t within = row;
    const WeightView& weight = FindPart(source, &within).weight;
    const ptrdiff_t first = static_cast<ptrdiff_t>(within) * weight.stride(0) +
                            static_cast<ptrdiff_t>(k) * weight.stride(1);
    ReadRun(weight, first, weight.stride(1), count, out);
    if (source.output_scale.empty()) continue;
    const float scale = ReadOne(source.output_scale, row);
    for (size_t i = 0; i < count; ++i) out[i] *= scale;
  }
}

void ReadBias(const WeightSource& source, size_t row, size_t rows, float* out) {
  for (const size_t end = row + rows; row < end; ++row, ++out) {
    size_t within = row;
    const WeightView& bias = FindPart(source, &within).bias;
    *out = bias.empty() ? 0.0f : ReadOne(bias, within);
    if (!bias.empty() && !source.output_scale.empty()) *out *= ReadOne(source.output_scale, row);
  }
}

}  // namespace encore::internal
