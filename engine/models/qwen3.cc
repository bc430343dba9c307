// SPDX-License-Identifier: Apache-2.0
//
// Qwen3 (arXiv:2505.09388), as Qwen3-Embedding (arXiv:2506.05176) uses it: a causal model whose
// last token's hidden state is the vector.

#include <optional>
#include <vector>

#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/llama_like.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"qwen3"};

constexpr LayerModule kNorms[] = {
    {"layers.{N}.self_attn.q_norm", &W::q_norm, false},
    {"layers.{N}.self_attn.k_norm", &W::k_norm, false},
};

Status Read(JsonMembers* config, ModelPlan* plan) {
  LayerConfig layer;
  Status s = ReadLlamaLike(config, {.head_size = 128, .max_positions = 32768}, &layer, plan);
  if (!s.ok()) return s;
  plan->layer_modules.insert(plan->layer_modules.end(), std::begin(kNorms), std::end(kNorms));
  layer.causal = config->Bool("is_causal", true);
  layer.qk_norm = layer.norm;
  s = ReadActivation(config, "hidden_act", "silu", &layer.activation);
  if (!s.ok()) return s;
  s = ReadRope(config,
               {.head_size = layer.head_size, .max_positions = plan->embeddings.max_positions},
               &layer.rotary.emplace());
  if (!s.ok()) return s;

  // A window of w is the token itself and the w - 1 before it, or w on both sides.
  const bool slides = config->Bool("use_sliding_window", false);
  const size_t window = slides ? ReadExtent(config, "sliding_window", 4096) : 0;
  config->Ignore("sliding_window");
  if (slides && window < 2) config->Refuse("sliding_window", "at least 2");
  const size_t reach = layer.causal ? window - 1 : window;
  const size_t first = config->Size("max_window_layers", 28);
  const size_t layers = ReadLayers(config, "num_hidden_layers");
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, layers, [&](size_t i) { return slides && i >= first; });
  for (size_t i = 0; i < layers && config->ok(); ++i) {
    if (sliding[i] && !slides) {
      config->Refuse("layer_types", "no 'sliding_attention' without use_sliding_window");
    }
    layer.window = sliding[i] ? std::optional<size_t>(reach) : std::nullopt;
    plan->encoder.layers.push_back(layer);
  }
  plan->encoder.final_norm = layer.norm;
  return config->status();
}

}  // namespace

constinit const Family kQwen3 = {kTypes, &Read};

}  // namespace encore::internal
