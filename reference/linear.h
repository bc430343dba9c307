// SPDX-License-Identifier: Apache-2.0
//
// The linear layer in double precision, weights of any dtype, and the columns that heads and halves
// are.

#ifndef ENCORE_REFERENCE_LINEAR_H_
#define ENCORE_REFERENCE_LINEAR_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "encore/tensor.h"
#include "reference/matmul.h"

namespace encore::reference {

// The number of an IEEE binary16: 1 sign, 5 exponent (bias 15), 10 mantissa bits.
inline double HalfNumber(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const double mantissa = bits & 0x3FF;
  const double magnitude = exponent == 0x1F ? (mantissa == 0 ? INFINITY : NAN)
                           : exponent == 0  ? std::ldexp(mantissa, -24)
                                            : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// The element at `data`, exactly.
inline double WeightNumber(DType type, const void* data) {
  const auto read = [&](auto element) {
    std::memcpy(&element, data, sizeof element);
    return element;
  };
  switch (type) {
    case DType::kF64:
      return read(double{});
    case DType::kF16:
      return HalfNumber(read(uint16_t{}));
    case DType::kBF16: {  // the upper half of a float
      const uint32_t bits = uint32_t{read(uint16_t{})} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    }
    default:
      return read(float{});
  }
}

// All elements of a matrix, or of a vector as one row. F64 is rounded to f32 where it is computed
// with, the others are not.
template <typename T>
Matrix<T> Numbers(const WeightView& view) {
  const size_t rows = view.rank() == 2 ? view.dim(0) : 1;
  const size_t last = view.rank() - 1;
  Matrix<T> numbers(rows, view.dim(last));
  const auto size = static_cast<ptrdiff_t>(DTypeSize(view.dtype()));
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < numbers.cols; ++j) {
      const ptrdiff_t at = (view.rank() == 2 ? static_cast<ptrdiff_t>(i) * view.stride(0) : 0) +
                           static_cast<ptrdiff_t>(j) * view.stride(last);
      const double v =
          WeightNumber(view.dtype(), static_cast<const char*>(view.data()) + at * size);
      numbers(i, j) = view.dtype() == DType::kF64 ? Apply(T(v), v, 0, 0) : T(v);
    }
  }
  return numbers;
}

// scale * (x weight^T + bias), with weight [out features, in features] as torch.nn.Linear has it.
// bias and scale are [out features] and may be empty. The scale is folded into both.
template <typename T>
Matrix<T> Linear(const Matrix<T>& x, const WeightView& weight, const WeightView& bias,
                 const WeightView& scale = {}) {
  Matrix<T> w = Numbers<T>(weight);
  Matrix<T> b = bias.empty() ? Matrix<T>(1, w.rows) : Numbers<T>(bias);
  if (!scale.empty()) {
    const Matrix<T> factors = Numbers<T>(scale);
    for (size_t n = 0; n < w.rows; ++n) {
      for (size_t k = 0; k < w.cols; ++k) w(n, k) = w(n, k) * factors(0, n);
      b(0, n) = b(0, n) * factors(0, n);
    }
  }
  Matrix<T> y(x.rows, w.rows);
  for (size_t m = 0; m < y.rows; ++m) {
    for (size_t n = 0; n < y.cols; ++n) {
      T sum = b(0, n);
      for (size_t k = 0; k < x.cols; ++k) sum = sum + x(m, k) * w(n, k);
      y(m, n) = sum;
    }
  }
  return y;
}

// Columns [begin, begin + count).
template <typename T>
Matrix<T> Columns(const Matrix<T>& from, size_t begin, size_t count) {
  Matrix<T> part(from.rows, count);
  for (size_t i = 0; i < part.rows; ++i) {
    for (size_t c = 0; c < count; ++c) part(i, c) = from(i, begin + c);
  }
  return part;
}

template <typename T>
void SetColumns(Matrix<T>& to, size_t begin, const Matrix<T>& part) {
  for (size_t i = 0; i < part.rows; ++i) {
    for (size_t c = 0; c < part.cols; ++c) to(i, begin + c) = part(i, c);
  }
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_LINEAR_H_
