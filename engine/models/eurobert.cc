// SPDX-License-Identifier: Apache-2.0
//
// EuroBERT (Boizard et al. 2025, arXiv:2503.05500): Llama's layers without causality.

#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/llama_like.h"
#include "engine/models/rope_keys.h"

namespace encore::internal {
namespace {

constexpr std::string_view kTypes[] = {"eurobert"};

// Of heads that encore has not, of tokenizers, and where the published code lies.
constexpr std::string_view kIgnored[] = {
    "auto_map",       "bos_token",  "classifier_pooling", "clf_pooling",    "eos_token",
    "hidden_dropout", "mask_token", "pad_token",          "pretraining_tp",
};

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  LayerConfig layer;
  Status s = ReadLlamaLike(config, {.epsilon = 1e-5, .max_positions = 8192, .mlp_bias_key = true},
                           &layer, plan);
  if (!s.ok()) return s;
  s = ReadActivation(config, "hidden_act", "silu", &layer.activation);
  if (!s.ok()) return s;
  s = ReadRope(config,
               {.head_size = layer.head_size, .max_positions = plan->embeddings.max_positions},
               &layer.rotary.emplace());
  if (!s.ok()) return s;
  plan->encoder = EncoderConfig::Uniform(
      plan->encoder.d_model, ReadLayers(config, "num_hidden_layers"), layer, layer.norm);
  return config->status();
}

}  // namespace

constinit const Family kEuroBert = {kTypes, &Read};

}  // namespace encore::internal
