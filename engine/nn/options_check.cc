// SPDX-License-Identifier: Apache-2.0
//
// What an encoder asks of its options.

#include <algorithm>
#include <string>

#include "engine/base/layer_sizes.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/encoder_check.h"

namespace encore::inline v0_1::internal {

Status CheckOptions(const EncoderConfig& config, const EncoderOptions& options) {
  if (!options.keep.empty() && options.precision != Precision::kInt8) {
    return InvalidArgument("keep has " + std::to_string(options.keep.size()) +
                           " matrices and precision is " +
                           std::string(PrecisionName(options.precision)) + "; wanted int8");
  }
  for (size_t i = 0; i < options.keep.size(); ++i) {
    if (options.keep[i].layer >= config.num_layers()) {
      return InvalidArgument("keep[" + std::to_string(i) + "] is of layer " +
                             std::to_string(options.keep[i].layer) + "; the encoder has " +
                             std::to_string(config.num_layers()) + " layers");
    }
  }
  if (options.precision != Precision::kInt8) return {};
  for (size_t i = 0; i < config.num_layers(); ++i) {
    const LayerSizes sizes(config.d_model, config.layers[i]);
    const size_t inputs = std::max({config.d_model, sizes.q_width(), sizes.d_ff});
    if (inputs > kMaxInt8K) {
      return InvalidArgument("layers." + std::to_string(i) + " has a matrix of " +
                             std::to_string(inputs) + " inputs; wanted at most " +
                             std::to_string(kMaxInt8K) + " for int8, whose sums are 32 bits");
    }
  }
  return {};
}

}  // namespace encore::internal
