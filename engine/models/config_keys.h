// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json: readers that families share, lists of words, rotary positions
// (rope_keys.cc), and keys that the model's family does not read (other_keys.cc).

#ifndef ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
#define ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/layer.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/json_members.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// A size of 1 (or `least`) .. 2^31 - 1, so that products of two fit. Errors stay in
// config->status().
// `absent` 0: the key is required.
size_t ReadRequired(JsonMembers* config, std::string_view key, size_t absent = 0);
size_t ReadExtent(JsonMembers* config, const ConfigKey<size_t>& key, size_t least = 1);
// 1 .. 10,000 layers. The deepest published encoders have below 100.
size_t ReadLayers(JsonMembers* config, std::string_view key, size_t absent = 0);
// Finite, >= 0.
double ReadEpsilon(JsonMembers* config, const ConfigKey<double>& key);
// By the names of transformers; kUnsupported for others.
Status ReadActivation(JsonMembers* config, const ConfigKey<std::string_view>& key,
                      Activation* activation);
// The same of a head's layer, which may have tanh too, and not each of a layer's.
Status ReadHeadActivation(JsonMembers* config, const ConfigKey<std::string_view>& key,
                          const ActivationRow** activation);
// layer_types: which layers have a sliding window, of `window`. Where it is absent, as `absent`
// says for a layer's number.
void ReadWindows(JsonMembers* config, size_t window, const std::function<bool(size_t)>& absent,
                 std::vector<LayerConfig>* layers);

// ---- Rotary positions, in the spellings of transformers 4 (rope_theta, rope_scaling) and 5
// (rope_parameters).

// Of a family's heads, or of one type of its layers.
struct RopeSource {
  size_t head_size = 0;
  size_t max_positions = 0;  // yarn's original_max_position_embeddings where it has none
  double theta = 10000;      // where no key says another
  // Whether the family's own code has type "ntk", which scales all lengths alike.
  bool ntk = false;
  // The type of layers, which has an object of its own in rope_parameters; empty: all layers.
  std::string_view layer_type = {};
  // The older one, "global_rope_theta"; empty: none.
  std::string_view theta_key = "rope_theta";
  bool scaled = true;  // by the older rope_scaling
};

// rope_parameters, or theta_key and rope_scaling. Types "default", "linear", "yarn" and "llama3",
// all others are kUnsupported: "dynamic" and "longrope" go by the longest sequence of a batch.
Status ReadRope(JsonMembers* config, const RopeSource& source, RotaryConfig* rotary);
// Of layers that see all tokens and of layers with a window, each with rotary positions of their
// own. Heads are those of the first layer where a source does not say.
Status ReadTwoRopes(JsonMembers* config, RopeSource all, RopeSource sliding, ModelSpec* spec);

// ---- Keys that nobody has read.

// Each key that was not read is one of four:
//   harmless in all families: passed over
//   one that has a single value that encore computes: kUnsupported with another
//   one that another family (of pictures: of either side) reads, and that may have been meant:
//   kInvalidArgument, or with ignore_foreign a decision
//   any other: a decision, as transformers ignores keys that a family's class does not have
Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_foreign,
                      std::vector<Decision>* decisions, Side side = Side::kTexts);

// kUnsupported where a key that has a single value has another.
Status CheckSupported(const std::string& where, const SupportedValue& only, const JsonValue& value);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CONFIG_KEYS_H_
