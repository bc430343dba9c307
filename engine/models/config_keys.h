// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json: readers that families share, and the keys that mean the same, or nothing, in
// every family. Not here: the file (model_config.h).

#ifndef ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
#define ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "encore/layer.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/json_members.h"

namespace encore::internal {

// A size of 1 .. 2^31 - 1, so that products of two fit. Errors stay in config->status().
size_t ReadExtent(JsonMembers* config, std::string_view key);                 // required
size_t ReadExtent(JsonMembers* config, std::string_view key, size_t absent);  // else `absent`
// 1 .. 10,000 layers. The deepest published encoders have below 100.
size_t ReadLayers(JsonMembers* config, std::string_view key);
// A divisor of the width, which has a key of its own.
size_t ReadHeads(JsonMembers* config, std::string_view key, std::string_view width_key,
                 size_t width);
// Finite, >= 0.
double ReadEpsilon(JsonMembers* config, std::string_view key, double absent);
// By the names of transformers; kUnsupported for those that the engine has not.
Status ReadActivation(JsonMembers* config, std::string_view key, std::string_view absent,
                      Activation* activation);

// Every key that the family did not read: harmless, or at its one value that is right here
// (kUnsupported otherwise), or unknown, which is an error or, with ignore_unknown, a decision.
Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_unknown,
                      std::vector<Decision>* decisions);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
