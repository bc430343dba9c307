// SPDX-License-Identifier: Apache-2.0
//
// The encoder in double precision, one sequence at a time: layers of attention and a feed-forward
// network with residuals and norms, as include/encore/layer.h describes them.

#ifndef ENCORE_REFERENCE_ENCODER_H_
#define ENCORE_REFERENCE_ENCODER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "encore/encoder.h"
#include "reference/matmul.h"

namespace encore::reference {

template <typename T>
struct EncoderResult {
  Matrix<T> y;                                    // [S, d_model]
  std::vector<std::vector<Matrix<T>>> attention;  // [layer][head]: [S, S]
  std::vector<Matrix<T>> hidden;                  // [layer]: [S, d_model]
};

// x [S, d_model]: one sequence. T is double or Rounded.
template <typename T>
EncoderResult<T> Encode(const EncoderConfig& config, const EncoderWeights& weights, ConstView x,
                        const AttentionMask& mask = {}, std::span<const size_t> positions = {});

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_ENCODER_H_
