// SPDX-License-Identifier: Apache-2.0
//
// From a name to a place and back.

#include "engine/nn/torch_names.h"

#include <charconv>
#include <system_error>

#include "engine/base/layer_tensors.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kLayers = "layers.";

}  // namespace

std::optional<TorchPlace> ParseTorchName(std::string_view name) {
  TorchPlace place;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    size_t layer = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    const size_t digits = static_cast<size_t>(end - name.data());
    // "01" would be a second name for layer 1.
    if (error != std::errc() || (digits > 1 && name.front() == '0')) return std::nullopt;
    name.remove_prefix(digits);
    if (!name.starts_with('.')) return std::nullopt;
    name.remove_prefix(1);
    place.layer = layer;
  }
  for (; place.tensor < kLayerTensors.size(); ++place.tensor) {
    const LayerTensor& tensor = kLayerTensors[place.tensor];
    if (!tensor.part->in_torch) continue;
    if (name == tensor.name() || (!tensor.part->alias.empty() && name == tensor.alias()))
      return place;
  }
  return std::nullopt;
}

std::string TorchName(const TorchPlace& place) {
  std::string name;
  if (place.layer) name = std::string(kLayers) + std::to_string(*place.layer) + ".";
  return name += kLayerTensors[place.tensor].name();
}

}  // namespace encore::internal
