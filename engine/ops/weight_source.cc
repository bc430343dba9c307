// SPDX-License-Identifier: Apache-2.0
//
// Reads weights of every type element by element through memcpy, which any address will do for.

#include "engine/ops/weight_source.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "engine/base/elements.h"
#include "engine/base/int_math.h"
#include "engine/kernels/round_magic.h"

namespace encore::inline v0_1::internal {
namespace {

// `count` elements from flat index `first` (in elements, may be negative) on, `stride` apart.
void ReadRun(const WeightView& view, ptrdiff_t first, ptrdiff_t stride, size_t count, float* out) {
  const auto* const from = static_cast<const std::byte*>(view.data());
  ElementsToFloats(view.dtype(), from + first * static_cast<ptrdiff_t>(DTypeSize(view.dtype())),
                   stride, count, out);
}

float ReadOne(const WeightView& vector, size_t i) {
  float value;
  ReadRun(vector, static_cast<ptrdiff_t>(i) * vector.stride(0), 1, 1, &value);
  return value;
}

// Elements [k, k + count) of a row as they are stored.
void ReadStored(const WeightView& weight, size_t row, size_t k, size_t count, float* out) {
  const ptrdiff_t first =
      static_cast<ptrdiff_t>(row) * weight.stride(0) + static_cast<ptrdiff_t>(k) * weight.stride(1);
  ReadRun(weight, first, weight.stride(1), count, out);
}

void MultiplyBy(float scale, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] *= scale;
}

// By elements [k, k + count) of a vector.
void DivideBy(const WeightView& vector, size_t k, size_t count, float* out) {
  constexpr size_t kPiece = 256;
  float piece[kPiece];
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t some = std::min(kPiece, count - at);
    ReadRun(vector, static_cast<ptrdiff_t>(k + at) * vector.stride(0), vector.stride(0), some,
            piece);
    for (size_t i = 0; i < some; ++i) out[at + i] /= piece[i];
  }
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
  if (weight.dtype() != DType::kF32 || !source.output_scale.empty() ||
      source.column_factor != nullptr || rows > weight.dim(0) - row ||
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
    const WeightPart& part = FindPart(source, &within);
    const bool integers = part.weight.dtype() == DType::kI8;
    ReadStored(part.weight, within, k, count, out);
    if (integers) MultiplyBy(ReadOne(part.scale, within), count, out);
    if (!source.output_scale.empty()) MultiplyBy(ReadOne(source.output_scale, row), count, out);
    if (integers) {
      if (!source.input_scale.empty()) DivideBy(source.input_scale, k, count, out);
    } else if (source.column_factor != nullptr) {
      for (size_t i = 0; i < count; ++i) out[i] *= source.column_factor[k + i];
    }
  }
}

void ReadVector(const WeightView& vector, float* out) {
  ReadRun(vector, 0, vector.stride(0), vector.dim(0), out);
}

void ReadBias(const WeightSource& source, size_t row, size_t rows, float* out) {
  for (const size_t end = row + rows; row < end; ++row, ++out) {
    size_t within = row;
    const WeightView& bias = FindPart(source, &within).bias;
    *out = bias.empty() ? 0.0f : ReadOne(bias, within);
    if (!bias.empty() && !source.output_scale.empty()) *out *= ReadOne(source.output_scale, row);
  }
}

void ReadInt8Scales(const WeightSource& source, size_t row, size_t rows, float* scales) {
  constexpr size_t kPiece = 256;
  float piece[kPiece];
  for (size_t r = 0; r < rows; ++r) {
    size_t within = row + r;
    const WeightPart& part = FindPart(source, &within);
    if (part.weight.dtype() == DType::kI8) {
      scales[r] = ReadOne(part.scale, within);
      if (!source.output_scale.empty()) scales[r] *= ReadOne(source.output_scale, row + r);
      continue;
    }
    float largest = 0;
    float not_finite = 0;  // NaN if a number is not
    for (size_t k = 0; k < source.k(); k += kPiece) {
      const size_t count = std::min(kPiece, source.k() - k);
      ReadRows(source, row + r, 1, k, count, piece, kPiece);
      for (size_t i = 0; i < count; ++i) {
        const float magnitude = std::fabs(piece[i]);
        largest = magnitude > largest ? magnitude : largest;
        not_finite += piece[i] * 0.0f;
      }
    }
    scales[r] = largest / 127.0f + not_finite;
  }
}

void ReadInt8Rows(const WeightSource& source, const float* scales, size_t row, size_t rows,
                  size_t k, size_t count, float* out, size_t ld_out, float* sums) {
  for (size_t r = 0; r < rows; ++r, out += ld_out) {
    size_t within = row + r;
    const WeightView& weight = FindPart(source, &within).weight;
    if (weight.dtype() == DType::kI8) {
      ReadStored(weight, within, k, count, out);
    } else {
      ReadRows(source, row + r, 1, k, count, out, ld_out);
      const float inverse = scales[r] >= kLeastInt8Scale ? 1.0f / scales[r] : 0.0f;
      for (size_t i = 0; i < count; ++i) out[i] = (out[i] * inverse + kRoundMagic) - kRoundMagic;
    }
    for (size_t i = 0; i < count; ++i) sums[r] += out[i];
  }
}

}  // namespace encore::internal
