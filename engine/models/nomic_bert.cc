// SPDX-License-Identifier: Apache-2.0
//
// nomic-bert 1 and 1.5 (Nussbaum et al. 2024, arXiv:2402.01613): BERT with rotary positions and
// gated networks. The published folders have GPT-2's names of keys; transformers has BERT's.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"nomic_bert"};
constexpr std::string_view kPrefixes[] = {"", "bert.", "nomic_bert.", "model."};

constexpr LayerModule kModules[] = {
    {"encoder.layers.{N}.attn.Wqkv", &W::in_proj},
    {"encoder.layers.{N}.attn.out_proj", &W::out_proj},
    {"encoder.layers.{N}.norm1", &W::norm1},
    {"encoder.layers.{N}.mlp.fc12", &W::gate_proj},
    {"encoder.layers.{N}.mlp.fc11", &W::up_proj},
    {"encoder.layers.{N}.mlp.fc2", &W::linear2},
    {"encoder.layers.{N}.norm2", &W::norm2},
};

constexpr std::string_view kHarmlessTensors[] = {"pooler.", "cls."};

// How the published code computes, where it lies, and GPT-2's keys.
constexpr std::string_view kIgnored[] = {
    "attn_pdrop",
    "auto_map",
    "dense_seq_output",
    "embd_pdrop",
    "fused_bias_fc",
    "fused_dropout_add_ln",
    "last_layer_subset",
    "pad_vocab_size_multiple",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "use_flash_attn",
    "use_xentropy",
};

// The names of the keys that both spellings have.
struct KeyNames {
  std::string_view d_model, heads, layers, d_ff, epsilon, max_positions;
};
constexpr KeyNames kPublished = {"n_embd",     "n_head", "n_layer", "n_inner", "layer_norm_epsilon",
                                 "n_positions"};
constexpr KeyNames kNow = {"hidden_size",       "num_attention_heads", "num_hidden_layers",
                           "intermediate_size", "layer_norm_eps",      "max_position_embeddings"};

// Folders may have both spellings: then the second one must say the same.
void WantTheSame(JsonMembers* config, size_t d_model, size_t layers, const LayerConfig& layer) {
  const std::pair<std::string_view, size_t> sizes[] = {{kNow.d_model, d_model},
                                                       {kNow.heads, layer.num_heads},
                                                       {kNow.layers, layers},
                                                       {kNow.d_ff, layer.d_ff},
                                                       {"head_dim", layer.head_size}};
  for (const auto& [key, value] : sizes) {
    if (config->Size(key, value) != value) {
      config->Refuse(key, std::to_string(value) + ", as its other name says");
    }
  }
  if (config->Number(kNow.epsilon, layer.norm.epsilon) != layer.norm.epsilon) {
    config->Refuse(kNow.epsilon, "layer_norm_epsilon");
  }
  const std::string activation(ActivationName(layer.activation));
  if (config->String("hidden_act", activation) != activation) {
    config->Refuse("hidden_act", Quoted(activation) + ", as activation_function says");
  }
  config->Ignore(kNow.max_positions);
}

// Keys of the published folders alone.
Status ReadPublished(JsonMembers* config, LayerConfig* layer, size_t* max_positions,
                     bool* any_length, std::vector<LayerModule>* modules) {
  const std::string activation = config->String("activation_function", "gelu");
  if (!config->ok()) return config->status();
  if (activation != "swiglu" && activation != "geglu") {
    return Status(ErrorCode::kUnsupported, config->where() + ": activation_function is " +
                                               Quoted(activation) +
                                               "; encore computes swiglu and geglu only");
  }
  layer->activation = activation == "swiglu" ? Activation::kSilu : Activation::kGelu;
  const double theta = config->Number("rotary_emb_base", 10000);
  if (!(theta > 0)) config->Refuse("rotary_emb_base", "a number above 0");
  Status s = ReadRope(
      config, {.head_size = layer->head_size, .max_positions = *max_positions, .theta = theta},
      &*layer->rotary);
  if (!s.ok()) return s;
  // A factor stretches positions by the length of a batch's longest sequence where that has more
  // tokens than the model was trained with. Fewer are computed as without.
  const size_t trained = ReadExtent(config, "max_trained_positions", 2048);
  if (config->Number("rotary_scaling_factor", 1) != 1) {
    *max_positions = std::min(*max_positions, trained);
    *any_length = false;
  }
  if (!config->Bool("qkv_proj_bias", true)) {
    DropBiases({&W::in_proj, &W::out_proj}, modules);
  }
  if (!config->Bool("mlp_fc1_bias", true)) {
    DropBiases({&W::gate_proj, &W::up_proj}, modules);
  }
  if (!config->Bool("mlp_fc2_bias", true)) DropBiases({&W::linear2}, modules);
  return config->status();
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  const bool published = config->Has("n_embd");
  const KeyNames& keys = published ? kPublished : kNow;
  if (config->Size("moe_every_n_layers", 0) != 0) {
    return Status(ErrorCode::kUnsupported,
                  config->where() + ": moe_every_n_layers is not 0; encore has no experts");
  }
  const size_t d_model = ReadExtent(config, keys.d_model);
  size_t max_positions = ReadExtent(config, keys.max_positions, 2048);
  std::vector<LayerModule> modules(std::begin(kModules), std::end(kModules));
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, keys.heads, keys.d_model, d_model);
  layer.head_size = d_model / layer.num_heads;
  layer.d_ff = ReadExtent(config, keys.d_ff);
  layer.gate = Gate::kFirstHalf;
  layer.norm_placement = NormPlacement::kPost;
  layer.norm = {NormType::kLayerNorm, ReadEpsilon(config, keys.epsilon, published ? 1e-5 : 1e-12)};
  layer.rotary.emplace();
  bool any_length = true;
  Status s;
  if (published) {
    s = ReadPublished(config, &layer, &max_positions, &any_length, &modules);
  } else {
    layer.head_size = ReadExtent(config, "head_dim", layer.head_size);
    DropBiases({&W::in_proj, &W::out_proj, &W::gate_proj, &W::up_proj, &W::linear2}, &modules);
    s = ReadActivation(config, "hidden_act", "silu", &layer.activation);
    if (s.ok()) {
      s = ReadRope(config,
                   {.head_size = layer.head_size, .max_positions = max_positions, .theta = 1000},
                   &*layer.rotary);
    }
  }
  if (!s.ok()) return s;
  const size_t layers = ReadLayers(config, keys.layers);
  if (published) WantTheSame(config, d_model, layers, layer);
  plan->encoder = EncoderConfig::Uniform(d_model, layers, layer);
  plan->layer_modules = std::move(modules);
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;
  plan->head = {.dense = "pooler.dense",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.type_vocab_size = ReadTypes(config, 2);
  e.word = "embeddings.word_embeddings";
  e.type = "embeddings.token_type_embeddings";
  e.position_rule = PositionRule::kNone;
  e.max_positions = max_positions;
  e.any_length = any_length;
  e.norm = "emb_ln";
  e.norm_epsilon = layer.norm.epsilon;
  return config->status();
}

}  // namespace

constinit const Family kNomicBert = {kTypes, &Read};

}  // namespace encore::internal
