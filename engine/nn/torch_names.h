// SPDX-License-Identifier: Apache-2.0
//
// Names of a torch.nn.TransformerEncoder's tensors, to and from places in the table of
// base/layer_tensors.h.

#ifndef ENCORE_ENGINE_NN_TORCH_NAMES_H_
#define ENCORE_ENGINE_NN_TORCH_NAMES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {

// Where a tensor of this name belongs.
struct TorchPlace {
  std::optional<size_t> layer;  // none: without "layers.N."
  size_t tensor = 0;            // in kLayerTensors
};

// "layers.3.linear1.bias" or "linear1.bias"; none if it is no name of a layer's tensor, or the
// number is not a plain decimal that fits size_t.
std::optional<TorchPlace> ParseTorchName(std::string_view name);

// The name of a tensor as a person would look for it: "layers.3.linear1.bias", "linear1.bias".
std::string TorchName(const TorchPlace& place);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_TORCH_NAMES_H_
