// SPDX-License-Identifier: Apache-2.0
//
// The matrix product in double precision, and the matrices that references pass along.

#ifndef ENCORE_REFERENCE_MATMUL_H_
#define ENCORE_REFERENCE_MATMUL_H_

#include <cmath>
#include <cstddef>
#include <vector>

#include "encore/tensor.h"
#include "reference/number.h"

namespace encore::reference {

// [rows, cols], row-major.
template <typename T>
struct Matrix {
  size_t rows = 0;
  size_t cols = 0;
  std::vector<T> data;

  Matrix() = default;
  Matrix(size_t r, size_t c) : rows(r), cols(c), data(r * c) {}
  explicit Matrix(const TensorView<const float>& v) : Matrix(v.dim(0), v.dim(1)) {
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < cols; ++j) (*this)(i, j) = T(static_cast<double>(v(i, j)));
    }
  }
  T& operator()(size_t i, size_t j) { return data[i * cols + j]; }
  const T& operator()(size_t i, size_t j) const { return data[i * cols + j]; }
};

// c[m, n] = bias[n] + sum_k a[m, k] b[k, n]; bias may be empty.
template <typename T>
Matrix<T> MatMul(const Matrix<T>& a, TensorView<const float> b, TensorView<const float> bias) {
  Matrix<T> c(a.rows, b.dim(1));
  for (size_t m = 0; m < c.rows; ++m) {
    for (size_t n = 0; n < c.cols; ++n) {
      T sum = bias.empty() ? T(0.0) : T(static_cast<double>(bias(n)));
      for (size_t k = 0; k < a.cols; ++k) sum = sum + a(m, k) * T(static_cast<double>(b(k, n)));
      c(m, n) = sum;
    }
  }
  return c;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_MATMUL_H_
