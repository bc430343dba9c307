// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json about rotary positions, in the spellings of transformers 4 (rope_theta,
// rope_scaling) and 5 (rope_parameters).

#ifndef ENCORE_ENGINE_MODELS_ROPE_KEYS_H_
#define ENCORE_ENGINE_MODELS_ROPE_KEYS_H_

#include <cstddef>
#include <optional>
#include <string_view>

#include "encore/layer.h"
#include "encore/status.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {

struct RopeDefaults {
  size_t head_size = 0;
  size_t max_positions = 0;  // yarn's original_max_position_embeddings where it has none
  double theta = 10000;      // where no key says another
  // Whether the family's own code has type "ntk", which scales all lengths alike.
  bool ntk = false;
};

// Of all layers: rope_parameters, or rope_theta and rope_scaling. Types "default", "linear" and
// "yarn", all others are kUnsupported: "dynamic" and "longrope" go by the longest sequence of a
// batch.
Status ReadRope(JsonMembers* config, const RopeDefaults& defaults, RotaryConfig* rotary);

// The older keys of one type of layers.
struct LayerTypeKeys {
  std::string_view type;   // the member of rope_parameters, "full_attention"
  std::string_view theta;  // "global_rope_theta"
  bool scaled;             // by rope_scaling
};
// Of the layers of one type: rope_parameters has an object for each.
Status ReadRopeOfType(JsonMembers* config, const LayerTypeKeys& keys, const RopeDefaults& defaults,
                      RotaryConfig* rotary);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_ROPE_KEYS_H_
