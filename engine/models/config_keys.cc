// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json.

#include "engine/models/config_keys.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxExtent = (size_t{1} << 31) - 1;
constexpr size_t kMaxLayers = 10000;

size_t CheckRange(JsonMembers* config, std::string_view key, size_t value, size_t max) {
  if (config->ok() && (value < 1 || value > max)) {
    config->Refuse(key, "a whole number of 1 .. " + std::to_string(max));
  }
  return config->ok() ? value : 1;
}

// transformers' names (activations.py): several name the tanh form, computed in other ways.
constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"quick_gelu", Activation::kQuickGelu},
};

}  // namespace

size_t ReadExtent(JsonMembers* config, std::string_view key) {
  return CheckRange(config, key, config->RequiredSize(key), kMaxExtent);
}
size_t ReadExtent(JsonMembers* config, std::string_view key, size_t absent) {
  return CheckRange(config, key, config->Size(key, absent), kMaxExtent);
}
size_t ReadLayers(JsonMembers* config, std::string_view key) {
  return CheckRange(config, key, config->RequiredSize(key), kMaxLayers);
}

size_t ReadHeads(JsonMembers* config, std::string_view key, std::string_view width_key,
                 size_t width) {
  const size_t heads = ReadExtent(config, key);
  if (width % heads != 0) {
    config->Refuse(key, "a divisor of " + std::string(width_key) + " " + std::to_string(width));
  }
  return heads;
}

size_t ReadKvHeads(JsonMembers* config, size_t heads) {
  const size_t kv_heads = ReadExtent(config, "num_key_value_heads", heads);
  if (heads % kv_heads != 0) {
    config->Refuse("num_key_value_heads", "a divisor of the " + std::to_string(heads) + " heads");
  }
  return config->ok() ? kv_heads : 1;
}

size_t ReadTypes(JsonMembers* config, size_t absent) {
  const size_t types = config->Size("type_vocab_size", absent);
  if (types > kMaxExtent) config->Refuse("type_vocab_size", "a number below 2^31");
  return config->ok() ? types : 0;
}

std::vector<bool> ReadSlidingLayers(JsonMembers* config, size_t layers,
                                    const std::function<bool(size_t)>& absent) {
  constexpr std::string_view kKey = "layer_types";
  std::vector<bool> sliding(layers);
  if (!config->Has(kKey)) {
    for (size_t i = 0; i < layers; ++i) sliding[i] = absent(i);
    return sliding;
  }
  const JsonValue& types = config->RequiredArray(kKey);
  if (!config->ok()) return sliding;
  const std::string wanted =
      "'full_attention' or 'sliding_attention' for each of " + std::to_string(layers) + " layers";
  if (types.items().size() != layers) config->Refuse(kKey, wanted);
  for (size_t i = 0; i < layers && config->ok(); ++i) {
    const JsonValue& type = types.items()[i];
    const bool slides = type.is_string() && type.text() == "sliding_attention";
    if (!slides && !(type.is_string() && type.text() == "full_attention")) {
      config->Refuse(kKey, wanted);
    }
    sliding[i] = slides;
  }
  return sliding;
}

void IgnoreKeys(JsonMembers* config, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) config->Ignore(key);
}

double ReadEpsilon(JsonMembers* config, std::string_view key, double absent) {
  const double epsilon = config->Number(key, absent);
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) config->Refuse(key, "a number of at least 0");
  return epsilon;
}

Status ReadActivation(JsonMembers* config, std::string_view key, std::string_view absent,
                      Activation* activation) {
  const std::string name = config->String(key, absent);
  if (!config->ok()) return config->status();
  std::string all;
  for (const auto& [known, value] : kActivations) {
    if (name == known) {
      *activation = value;
      return {};
    }
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return Status(ErrorCode::kUnsupported, config->where() + ": " + std::string(key) + " is " +
                                             Quoted(name) + "; wanted one of " + all);
}

}  // namespace encore::internal
