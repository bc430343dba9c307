// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json: readers that families share.

#ifndef ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
#define ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "encore/layer.h"
#include "encore/status.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {

// A size of 1 .. 2^31 - 1, so that products of two fit. Errors stay in config->status().
size_t ReadExtent(JsonMembers* config, std::string_view key);                 // required
size_t ReadExtent(JsonMembers* config, std::string_view key, size_t absent);  // else `absent`
// 1 .. 10,000 layers. The deepest published encoders have below 100.
size_t ReadLayers(JsonMembers* config, std::string_view key);
// A divisor of the width, which has a key of its own.
size_t ReadHeads(JsonMembers* config, std::string_view key, std::string_view width_key,
                 size_t width);
// num_key_value_heads: a divisor of the heads; as many where it is absent.
size_t ReadKvHeads(JsonMembers* config, size_t heads);
// type_vocab_size: 0 means none.
size_t ReadTypes(JsonMembers* config, size_t absent);
// layer_types: for each layer whether it has a sliding window. Where it is absent, as `absent` says
// for a layer's number.
std::vector<bool> ReadSlidingLayers(JsonMembers* config, size_t layers,
                                    const std::function<bool(size_t)>& absent);
// Keys that mean nothing to this family, beside those that mean nothing to any.
void IgnoreKeys(JsonMembers* config, std::span<const std::string_view> keys);
// Finite, >= 0.
double ReadEpsilon(JsonMembers* config, std::string_view key, double absent);
// By the names of transformers; kUnsupported for those that the engine has not.
Status ReadActivation(JsonMembers* config, std::string_view key, std::string_view absent,
                      Activation* activation);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
