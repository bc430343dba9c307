// SPDX-License-Identifier: Apache-2.0
//
// What EuroBERT, Qwen3 and Gemma 3 have in common.

#include "engine/models/llama_like.h"

#include <iterator>

#include "engine/models/config_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kPrefixes[] = {"", "model."};

constexpr LayerModule kModules[] = {
    {"layers.{N}.input_layernorm", &W::norm1, false},
    {"layers.{N}.self_attn.q_proj", &W::q_proj},
    {"layers.{N}.self_attn.k_proj", &W::k_proj},
    {"layers.{N}.self_attn.v_proj", &W::v_proj},
    {"layers.{N}.self_attn.o_proj", &W::out_proj},
    {"layers.{N}.post_attention_layernorm", &W::norm2, false},
    {"layers.{N}.mlp.gate_proj", &W::gate_proj},
    {"layers.{N}.mlp.up_proj", &W::up_proj},
    {"layers.{N}.mlp.down_proj", &W::linear2},
};

// Of models that write text.
constexpr std::string_view kHarmlessTensors[] = {"lm_head."};

}  // namespace

Status ReadLlamaLike(JsonMembers* config, const LlamaDefaults& defaults, LayerConfig* layer,
                     ModelPlan* plan) {
  const size_t d_model = ReadExtent(config, "hidden_size");
  layer->num_heads = ReadExtent(config, "num_attention_heads");
  layer->num_kv_heads = ReadKvHeads(config, layer->num_heads);
  size_t head_size = defaults.head_size;
  if (head_size == 0 && !config->Has("head_dim")) {
    head_size = d_model / ReadHeads(config, "num_attention_heads", "hidden_size", d_model);
  }
  layer->head_size = ReadExtent(config, "head_dim", head_size);
  layer->d_ff = ReadExtent(config, "intermediate_size");
  layer->gate = Gate::kFirstHalf;
  layer->norm_placement = NormPlacement::kPre;
  layer->norm = {NormType::kRmsNorm, ReadEpsilon(config, "rms_norm_eps", defaults.epsilon)};

  plan->encoder.d_model = d_model;
  plan->final_norm = "norm";
  plan->final_norm_bias = false;
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  if (!config->Bool("attention_bias", false)) {
    DropBiases({&W::q_proj, &W::k_proj, &W::v_proj, &W::out_proj}, &plan->layer_modules);
  }
  if (!defaults.mlp_bias_key || !config->Bool("mlp_bias", false)) {
    DropBiases({&W::gate_proj, &W::up_proj, &W::linear2}, &plan->layer_modules);
  }
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.word = "embed_tokens";
  e.position_rule = PositionRule::kNone;
  e.max_positions = ReadExtent(config, "max_position_embeddings", defaults.max_positions);
  e.any_length = true;
  return config->status();
}

}  // namespace encore::internal
