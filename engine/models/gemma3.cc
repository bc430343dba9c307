// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3 (arXiv:2503.19786) without causality, as EmbeddingGemma (arXiv:2509.20354) uses it: norms
// on both sides of sublayers, windows in most layers, scaled embeddings.

#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/llama_like.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"gemma3_text"};

constexpr LayerModule kNorms[] = {
    {"layers.{N}.self_attn.q_norm", &W::q_norm, false},
    {"layers.{N}.self_attn.k_norm", &W::k_norm, false},
    {"layers.{N}.post_attention_layernorm", &W::post_norm1, false},
    {"layers.{N}.pre_feedforward_layernorm", &W::norm2, false},
    {"layers.{N}.post_feedforward_layernorm", &W::post_norm2, false},
};

constexpr std::string_view kIgnored[] = {"cache_implementation", "final_logit_softcapping"};

Status ReadLayersOf(JsonMembers* config, size_t max_positions, LayerConfig layer,
                    std::vector<LayerConfig>* out) {
  const RopeDefaults global{
      .head_size = layer.head_size, .max_positions = max_positions, .theta = 1000000};
  RopeDefaults local = global;
  local.theta = 10000;
  RotaryConfig rotary[2];  // of all tokens, of a window
  Status s = ReadRopeOfType(config, {"full_attention", "rope_theta", true}, global, &rotary[0]);
  if (!s.ok()) return s;
  s = ReadRopeOfType(config, {"sliding_attention", "rope_local_base_freq", false}, local,
                     &rotary[1]);
  if (!s.ok()) return s;
  const size_t both_sides = ReadExtent(config, "sliding_window", 4096);
  if (both_sides < 2) config->Refuse("sliding_window", "at least 2");
  // transformers takes one token more on each side where this key says again what
  // use_bidirectional_attention says.
  const size_t more = config->Bool("is_causal", true) ? 0 : 1;
  // transformers writes the same number under either name.
  const size_t other = ReadExtent(config, "_sliding_window_pattern", 6);
  const size_t every = ReadExtent(config, "sliding_window_pattern", other);
  const size_t layers = ReadLayers(config, "num_hidden_layers");
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, layers, [&](size_t i) { return (i + 1) % every != 0; });
  for (size_t i = 0; i < layers; ++i) {
    layer.rotary = rotary[sliding[i] ? 1 : 0];
    layer.window = sliding[i] ? std::optional<size_t>(both_sides / 2 + more) : std::nullopt;
    out->push_back(layer);
  }
  return config->status();
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  if (!config->Bool("use_bidirectional_attention", false) && config->ok()) {
    return Status(ErrorCode::kUnsupported,
                  config->where() +
                      ": use_bidirectional_attention is not true; encore computes Gemma 3 only as "
                      "an encoder, as EmbeddingGemma is one");
  }
  LayerConfig layer;
  Status s = ReadLlamaLike(config, {.head_size = 256, .max_positions = 131072}, &layer, plan);
  if (!s.ok()) return s;
  std::vector<LayerModule>& modules = plan->layer_modules;
  // What others call so is the norm before the network.
  std::erase_if(modules, [](const LayerModule& m) { return m.member == &W::norm2; });
  modules.insert(modules.end(), std::begin(kNorms), std::end(kNorms));
  layer.norm_placement = NormPlacement::kBoth;
  layer.norm.weight_offset = 1;
  layer.qk_norm = layer.norm;
  const double scalar = config->Number("query_pre_attn_scalar", 256);
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    config->Refuse("query_pre_attn_scalar", "a number above 0");
  }
  layer.attention_scale = 1 / std::sqrt(scalar);
  s = ReadActivation(config, "hidden_activation", "gelu_pytorch_tanh", &layer.activation);
  if (!s.ok()) return s;
  EncoderConfig& encoder = plan->encoder;
  encoder.final_norm = layer.norm;
  plan->embeddings.scale =
      static_cast<float>(std::sqrt(static_cast<double>(plan->encoder.d_model)));
  return ReadLayersOf(config, plan->embeddings.max_positions, layer, &encoder.layers);
}

}  // namespace

constinit const Family kGemma3 = {kTypes, &Read};

}  // namespace encore::internal
