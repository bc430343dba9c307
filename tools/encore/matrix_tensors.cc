// SPDX-License-Identifier: Apache-2.0
//
// Tensors by address, and names beside theirs.

#include "tools/encore/matrix_tensors.h"

#include <optional>
#include <string_view>

#include "engine/nn/layer_tensors.h"
#include "tools/encore/failure.h"

namespace encore::tool {

MatrixTensors::MatrixTensors(const EncoderWeights& weights) {
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    std::optional<size_t> last;
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      const WeightView& view = weights.layers[i].*tensor.view;
      if (!tensor.is_matrix() || view.empty()) continue;
      const size_t index = 4 * i + static_cast<size_t>(internal::MatrixOf(tensor.part));
      if (!by_address_.emplace(view.data(), MatrixTensor{index, last != index}).second) {
        throw Failure("layer " + std::to_string(i) + " has its " + std::string(tensor.name) +
                      " from another place of the encoder, wanted a tensor of its own");
      }
      last = index;
    }
  }
}

const MatrixTensor* MatrixTensors::Find(const SafetensorsEntry& entry) const {
  const auto found = by_address_.find(entry.bytes.data());
  return entry.bytes.empty() || found == by_address_.end() ? nullptr : &found->second;
}

std::string RowScaleName(const std::string& weight) { return weight + "_scale"; }

std::string InputScaleName(const std::string& weight) {
  constexpr std::string_view kWeight = "weight";
  return weight.substr(0, weight.size() - kWeight.size()) + "input_scale";
}

}  // namespace encore::tool
