// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json: readers that families share, and lists of words.

#ifndef ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
#define ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "encore/layer.h"
#include "encore/status.h"
#include "engine/io/json_members.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// The words between blanks.
std::vector<std::string_view> Words(std::string_view text);
bool HasWord(std::string_view text, std::string_view word);

// A size of 1 (or `least`) .. 2^31 - 1, so that products of two fit. Errors stay in
// config->status().
size_t ReadRequired(JsonMembers* config, std::string_view key);  // required
size_t ReadExtent(JsonMembers* config, const ConfigKey<size_t>& key, size_t least = 1);
// 1 .. 10,000 layers. The deepest published encoders have below 100.
size_t ReadLayers(JsonMembers* config, std::string_view key);
// Finite, >= 0.
double ReadEpsilon(JsonMembers* config, const ConfigKey<double>& key);
// By the names of transformers; kUnsupported for those that the engine has not.
Status ReadActivation(JsonMembers* config, const ConfigKey<std::string_view>& key,
                      Activation* activation);
// layer_types: which layers have a sliding window, of `window`. Where it is absent, as `absent`
// says for a layer's number.
void ReadWindows(JsonMembers* config, size_t window, const std::function<bool(size_t)>& absent,
                 std::vector<LayerConfig>* layers);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
