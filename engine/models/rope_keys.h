// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json about rotary positions, in the spellings of transformers 4 (rope_theta,
// rope_scaling) and 5 (rope_parameters).

#ifndef ENCORE_ENGINE_MODELS_ROPE_KEYS_H_
#define ENCORE_ENGINE_MODELS_ROPE_KEYS_H_

#include <cstddef>
#include <string_view>

#include "encore/layer.h"
#include "encore/status.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {

// Of a family's heads, or of one type of its layers.
struct RopeSource {
  size_t head_size = 0;
  size_t max_positions = 0;  // yarn's original_max_position_embeddings where it has none
  double theta = 10000;      // where no key says another
  // Whether the family's own code has type "ntk", which scales all lengths alike.
  bool ntk = false;
  // The type of layers, which has an object of its own in rope_parameters; empty: all layers.
  std::string_view layer_type = {};
  std::string_view theta_key = "rope_theta";  // the older one, "global_rope_theta"
  bool scaled = true;                         // by the older rope_scaling
};

// rope_parameters, or theta_key and rope_scaling. Types "default", "linear" and "yarn", all others
// are kUnsupported: "dynamic" and "longrope" go by the longest sequence of a batch.
Status ReadRope(JsonMembers* config, const RopeSource& source, RotaryConfig* rotary);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_ROPE_KEYS_H_
