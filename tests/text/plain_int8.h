// SPDX-License-Identifier: Apache-2.0
//
// One post-norm layer in double precision whose matrices are quantised to int8 plainly: a scale for
// each row of weights, a scale and a zero point for each token, no smoothing. What outlier channels
// cost is measured against it.

#ifndef ENCORE_TESTS_TEXT_PLAIN_INT8_H_
#define ENCORE_TESTS_TEXT_PLAIN_INT8_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"

namespace encore {

// A linear layer's weight [outputs, inputs] and bias [outputs], or a norm's [d_model].
struct WeightAndBias {
  std::vector<float> weight;
  std::vector<float> bias;
};

struct PlainLayer {
  WeightAndBias qkv, out, linear1, linear2, norm1, norm2;

  // Views of all of them.
  EncoderLayerWeights Views(size_t d, size_t inner) const;
};

struct PlainSizes {
  size_t d;
  size_t heads;
  size_t inner;
  size_t length;  // of every sequence
};

enum class Plain { kExact, kInt8 };

// x and the result are [tokens, d]; activation GELU, epsilon 1e-5.
std::vector<double> RunPlain(const PlainLayer& layer, const PlainSizes& sizes,
                             const std::vector<float>& x, Plain plain);

}  // namespace encore

#endif  // ENCORE_TESTS_TEXT_PLAIN_INT8_H_
