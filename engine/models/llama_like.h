// SPDX-License-Identifier: Apache-2.0
//
// What EuroBERT, Qwen3 and Gemma 3 have in common: names of keys and tensors, RMSNorm, rotary
// positions, gated networks without biases, fewer heads of k and v.

#ifndef ENCORE_ENGINE_MODELS_LLAMA_LIKE_H_
#define ENCORE_ENGINE_MODELS_LLAMA_LIKE_H_

#include <cstddef>

#include "encore/status.h"
#include "engine/io/json_members.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

struct LlamaDefaults {
  double epsilon = 1e-6;
  size_t head_size = 0;  // 0: hidden_size / num_attention_heads
  size_t max_positions = 0;
  bool mlp_bias_key = false;  // whether mlp_bias is a key of the family
};

// Fills in the plan but for positions, activation and what a family adds. `layer` is what all
// layers have; the caller makes the plan's layers of it.
Status ReadLlamaLike(JsonMembers* config, const LlamaDefaults& defaults, LayerConfig* layer,
                     ModelPlan* plan);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_LLAMA_LIKE_H_
