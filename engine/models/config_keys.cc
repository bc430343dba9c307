// SPDX-License-Identifier: Apache-2.0
//
// Readers of config.json's keys that families share. A value out of range is refused here, a key
// that the family does not read in other_keys.cc.

#include "engine/models/config_keys.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxExtent = (size_t{1} << 31) - 1;
constexpr size_t kMaxLayers = 10000;

size_t CheckRange(JsonMembers* config, std::string_view key, size_t value, size_t max,
                  size_t least = 1) {
  if (value < least || value > max) {
    config->Refuse(key,
                   "a whole number of " + std::to_string(least) + " .. " + std::to_string(max));
  }
  return config->ok() ? value : 1;
}

}  // namespace

size_t ReadRequired(JsonMembers* config, std::string_view key, size_t absent) {
  const size_t value = absent == 0 ? config->RequiredSize(key) : config->Size(key, absent);
  return CheckRange(config, key, value, kMaxExtent);
}
size_t ReadExtent(JsonMembers* config, const ConfigKey<size_t>& key, size_t least) {
  if (key.name.empty()) return key.absent;
  return CheckRange(config, key.name, config->Size(key.name, key.absent), kMaxExtent, least);
}
size_t ReadLayers(JsonMembers* config, std::string_view key, size_t absent) {
  const size_t value = absent == 0 ? config->RequiredSize(key) : config->Size(key, absent);
  return CheckRange(config, key, value, kMaxLayers);
}

double ReadEpsilon(JsonMembers* config, const ConfigKey<double>& key) {
  if (key.name.empty()) return key.absent;
  const double epsilon = config->Number(key.name, key.absent);
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) {
    config->Refuse(key.name, "a number of at least 0");
  }
  return epsilon;
}

Status ReadActivation(JsonMembers* config, const ConfigKey<std::string_view>& key,
                      Activation* activation) {
  const std::string name = config->String(key.name, key.absent);
  ENCORE_RETURN_IF_ERROR(config->status());
  if (const ActivationRow* row = FindTransformersActivation(name); row != nullptr) {
    *activation = *row->layer;
    return {};
  }
  return Status(ErrorCode::kUnsupported, config->where() + ": " + std::string(key.name) + " is " +
                                             Quoted(name) + "; wanted one of " +
                                             TransformersActivationNames());
}

Status ReadHeadActivation(JsonMembers* config, const ConfigKey<std::string_view>& key,
                          const ActivationRow** activation) {
  const std::string name = config->String(key.name, key.absent);
  ENCORE_RETURN_IF_ERROR(config->status());
  *activation = &kTanhRow;
  if (name == "tanh") return {};
  Activation of_layers{};
  ENCORE_RETURN_IF_ERROR(ReadActivation(config, key, &of_layers));
  *activation = &ActivationRowOf(of_layers);
  if ((*activation)->apply != nullptr) return {};
  return Status(ErrorCode::kUnsupported, config->where() + ": " + std::string(key.name) + " is " +
                                             Quoted(name) + "; encore has it in layers only");
}

void ReadWindows(JsonMembers* config, size_t window, const std::function<bool(size_t)>& absent,
                 std::vector<LayerConfig>* layers) {
  constexpr std::string_view kKey = "layer_types";
  const bool given = config->Has(kKey);
  const std::string wanted = "'full_attention' or 'sliding_attention' for each of " +
                             std::to_string(layers->size()) + " layers";
  const std::vector<JsonValue> none;
  const auto& types = given ? config->RequiredArray(kKey).items() : none;
  if (given && types.size() != layers->size()) config->Refuse(kKey, wanted);
  for (size_t i = 0; i < layers->size() && config->ok(); ++i) {
    const bool slides = given ? types[i].text() == "sliding_attention" : absent(i);
    if (given && !slides && types[i].text() != "full_attention") config->Refuse(kKey, wanted);
    if (slides) (*layers)[i].window = window;
  }
}

}  // namespace encore::internal
