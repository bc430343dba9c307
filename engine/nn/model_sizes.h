// SPDX-License-Identifier: Apache-2.0
//
// What plans need to know of a whole model: the largest sizes of its layers, and what a layer costs
// on average.

#ifndef ENCORE_ENGINE_NN_MODEL_SIZES_H_
#define ENCORE_ENGINE_NN_MODEL_SIZES_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/layer_sizes.h"

namespace encore::inline v0_1::internal {

struct ModelSizes {
  // Of a checked configuration. Allocates. reduced: products take no floats (Precision).
  explicit ModelSizes(const EncoderConfig& config, bool reduced = false);

  // Floating point operations of a layer for a sequence of so many tokens, the mean of all layers.
  double FlopsOfLayer(size_t tokens) const;

  size_t d_model;
  // The largest of any layer.
  size_t heads = 0;
  size_t q_width = 0;
  size_t kv_width = 0;
  // Of a key's packed values, at the most: all key heads, each padded to a multiple of 16 floats. 0
  // if no layer's are ever packed (ShouldPackValues): products take floats and head sizes
  // are multiples of 16.
  size_t packed_value_bytes = 0;
  bool makes_rows = false;     // attention's products take no floats
  size_t input_row_bytes = 0;  // of the longest row that is made for a product; 0: none is
  size_t qkv_width = 0;
  size_t head_size = 0;
  size_t d_ff = 0;
  size_t global_kv_width = 0;  // of the layers without a window; 0 if all have one
  // Of position_tables.h: 0 until somebody sets them.
  size_t floats_per_position = 0;
  size_t floats_beside = 0;

 private:
  // Layers that cost the same.
  struct Kind {
    LayerCost cost;
    double count;
  };
  std::vector<Kind> kinds_;
  double num_layers_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_MODEL_SIZES_H_
