// SPDX-License-Identifier: Apache-2.0
//
// Which tensors of a file are matrices of an encoder's layers, found by their addresses: views lie
// where the tensors do, whatever their names are. Not here: what is done with them.

#ifndef ENCORE_TOOLS_ENCORE_MATRIX_TENSORS_H_
#define ENCORE_TOOLS_ENCORE_MATRIX_TENSORS_H_

#include <cstddef>
#include <map>
#include <string>

#include "encore/encoder.h"
#include "encore/safetensors.h"

namespace encore::tool {

struct MatrixTensor {
  size_t index;  // 4 * layer + LayerMatrix
  bool first;    // of the tensors that are packed into this matrix
};

class MatrixTensors {
 public:
  // Throws Failure where two places of the encoder have one tensor.
  explicit MatrixTensors(const EncoderWeights& weights);
  // Null for what is no matrix.
  const MatrixTensor* Find(const SafetensorsEntry& entry) const;

 private:
  std::map<const void*, MatrixTensor> by_address_;
};

// Names of scales beside a matrix: linear1.weight has linear1.weight_scale and linear1.input_scale.
std::string RowScaleName(const std::string& weight);
std::string InputScaleName(const std::string& weight);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MATRIX_TENSORS_H_
