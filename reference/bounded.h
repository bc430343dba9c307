// SPDX-License-Identifier: Apache-2.0
//
// The a-priori error bounds that encore/ops.h documents, as functions: each gives the exact result
// of an operation and how far one in f32 may be from it. Worst cases for any order of rounding;
// what number.h expects of independent roundings is far less. u = 2^-24.

#ifndef ENCORE_REFERENCE_BOUNDED_H_
#define ENCORE_REFERENCE_BOUNDED_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "encore/ops.h"
#include "reference/attention.h"
#include "reference/matmul.h"
#include "reference/rms_norm.h"

namespace encore::reference {

inline constexpr double kU = 0x1p-24;             // half the spacing of f32 at 1
inline constexpr double kSoftmaxFloor = 1.7e-38;  // softmax's weights below it may become 0

struct Bounded {
  Matrix<double> value;
  Matrix<double> error;  // the most that a result may differ by

  Bounded(size_t rows, size_t cols) : value(rows, cols), error(rows, cols) {}
};

// bias + sum_k a[m, k] b[k, n]: (K + 1) (u of the sum of its terms' magnitudes + 2^-150).
inline Bounded BoundedMatMul(ConstView a, ConstView b, ConstView bias) {
  Bounded y(a.dim(0), b.dim(1));
  const double steps = static_cast<double>(a.dim(1) + 1);
  for (size_t i = 0; i < y.value.rows; ++i) {
    for (size_t j = 0; j < y.value.cols; ++j) {
      double sum = bias.empty() ? 0 : static_cast<double>(bias(j));
      double magnitude = std::fabs(sum);
      for (size_t k = 0; k < a.dim(1); ++k) {
        const double term = static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
        sum += term;
        magnitude += std::fabs(term);
      }
      y.value(i, j) = sum;
      y.error(i, j) = steps * (kU * magnitude + 0x1p-150);
    }
  }
  return y;
}

// Of each row: u (12 + n / 16 + 1.1 (|d| + ln n)) y with d = x - max x.
inline Bounded BoundedSoftmax(ConstView x) {
  Bounded y(x.dim(0), x.dim(1));
  y.value = Matrix<double>(x);
  const double n = static_cast<double>(y.value.cols);
  for (size_t i = 0; i < y.value.rows; ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < y.value.cols; ++j) largest = std::max(largest, y.value(i, j));
    double sum = 0;
    for (size_t j = 0; j < y.value.cols; ++j) {
      if (std::isinf(largest)) continue;
      sum += std::exp(y.value(i, j) - largest);
    }
    for (size_t j = 0; j < y.value.cols; ++j) {
      const double d = y.value(i, j) - largest;
      const bool hidden = std::isinf(y.value(i, j));
      y.value(i, j) = hidden ? 0 : std::exp(d) / sum;
      y.error(i, j) =
          hidden ? 0
                 : kU * (12 + n / 16 + 1.1 * (-d + std::log(n))) * y.value(i, j) + kSoftmaxFloor;
    }
  }
  return y;
}

// Of each row, with s = sqrt(variance + epsilon) and z = (x - mean) / s:
//   u (|weight| (n / 16 + 7 + |z| (n / 32 + 12)) (1 + 3 D)^2 + |y|)
// where D = u (n / 16 + 7) (|mean| + mean |x - x_0|) / s is how far off the first mean may be.
inline Bounded BoundedLayerNorm(ConstView x, ConstView weight, ConstView bias, double epsilon) {
  Bounded y(x.dim(0), x.dim(1));
  const double n = static_cast<double>(x.dim(1));
  for (size_t i = 0; i < y.value.rows; ++i) {
    const auto at = [&](size_t j) { return static_cast<double>(x(i, j)); };
    double mean = 0, spread = 0, variance = 0;
    for (size_t j = 0; j < y.value.cols; ++j) {
      mean += (at(j) - at(0)) / n;
      spread += std::fabs(at(j) - at(0)) / n;
    }
    mean += at(0);
    for (size_t j = 0; j < y.value.cols; ++j) variance += (at(j) - mean) * (at(j) - mean) / n;
    const double s = std::sqrt(variance + epsilon);
    const double first = kU * (n / 16 + 7) * (spread + std::fabs(mean)) / s;
    for (size_t j = 0; j < y.value.cols; ++j) {
      const double w = weight.empty() ? 1 : static_cast<double>(weight(j));
      const double b = bias.empty() ? 0 : static_cast<double>(bias(j));
      const double z = (at(j) - mean) / s;
      const double of_z = (n / 16 + 7 + std::fabs(z) * (n / 32 + 12)) * std::pow(1 + 3 * first, 2);
      y.value(i, j) = z * w + b;
      y.error(i, j) = kU * (std::fabs(w) * of_z + std::fabs(y.value(i, j)));
    }
  }
  return y;
}

// Of each row: u (n / 32 + 9) |y| + (|weight| + 1) 2^-149.
inline Bounded BoundedRmsNorm(ConstView x, ConstView weight, double epsilon) {
  Bounded y(x.dim(0), x.dim(1));
  y.value = RmsNorm(Matrix<double>(x), weight, {}, epsilon);
  const double steps = static_cast<double>(x.dim(1)) / 32 + 9;
  for (size_t i = 0; i < y.value.rows; ++i) {
    for (size_t j = 0; j < y.value.cols; ++j) {
      const double w = weight.empty() ? 1 : static_cast<double>(weight(j));
      y.error(i, j) = kU * steps * std::fabs(y.value(i, j)) + (std::fabs(w) + 1) * 0x1p-149;
    }
  }
  return y;
}

// softmax(q k^T scale + mask) v of one head. With S the largest |scale| sum |q||k| + |mask| among
// the keys that a query sees: u (1.1 Sk + 24 + (2 D + 22) S) of its weights, and so of the sum of
// its terms' magnitudes. *weights becomes those, with their bound.
inline Bounded BoundedAttention(ConstView q, ConstView k, ConstView v, double scale,
                                const AttentionMask& mask, Bounded* weights) {
  const size_t keys = k.dim(0);
  const Matrix<double> exact_v(v);
  Bounded y(q.dim(0), v.dim(1));
  *weights = Bounded(q.dim(0), keys);
  y.value =
      Attention(Matrix<double>(q), Matrix<double>(k), exact_v, scale, mask, {}, &weights->value);
  for (size_t i = 0; i < y.value.rows; ++i) {
    double most = 0;
    for (size_t j = 0; j < keys; ++j) {
      if (!Sees(mask, {}, i, j)) continue;
      double score =
          mask.additive.empty() ? 0 : std::fabs(static_cast<double>(mask.additive(i, j)));
      for (size_t c = 0; c < q.dim(1); ++c) {
        score += std::fabs(scale * static_cast<double>(q(i, c)) * static_cast<double>(k(j, c)));
      }
      most = std::max(most, score);
    }
    const double share = kU * (1.1 * static_cast<double>(keys) + 24 +
                               (2 * static_cast<double>(q.dim(1)) + 22) * most);
    for (size_t j = 0; j < keys; ++j) {
      if (!Sees(mask, {}, i, j)) continue;
      weights->error(i, j) = share * weights->value(i, j) + kSoftmaxFloor;
      for (size_t c = 0; c < v.dim(1); ++c) {
        y.error(i, c) += weights->error(i, j) * std::fabs(exact_v(j, c));
      }
    }
  }
  return y;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_BOUNDED_H_
