// SPDX-License-Identifier: Apache-2.0
//
// ModernBERT (Warner et al. 2024, arXiv:2412.13663): norms before sublayers, rotary positions,
// gated networks, and layers that see a window only between those that see all.

#include <iterator>
#include <string>
#include <vector>

#include "engine/base/quoted.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"modernbert"};
constexpr std::string_view kPrefixes[] = {"", "model."};

constexpr LayerModule kModules[] = {
    {"layers.{N}.attn_norm", &W::norm1},  {"layers.{N}.attn.Wqkv", &W::in_proj},
    {"layers.{N}.attn.Wo", &W::out_proj}, {"layers.{N}.mlp_norm", &W::norm2},
    {"layers.{N}.mlp.Wi", &W::linear1},   {"layers.{N}.mlp.Wo", &W::linear2},
};

// Of pre-training.
constexpr std::string_view kHarmlessTensors[] = {"head.", "decoder."};

// The code of the family reads neither layer_norm_eps nor position_embedding_type, which the
// published folders have.
constexpr std::string_view kIgnored[] = {
    "decoder_bias",
    "deterministic_flash_attn",
    "embedding_dropout",
    "initializer_cutoff_factor",
    "layer_norm_eps",
    "mlp_dropout",
    "position_embedding_type",
    "reference_compile",
    "repad_logits_with_grad",
    "sparse_pred_ignore_index",
    "sparse_prediction",
};

Status ReadHead(JsonMembers* config, const NormConfig& norm, bool norm_bias, HeadPlan* head) {
  *head = {.dense = "head.dense",
           .dense_bias = config->Bool("classifier_bias", false),
           .norm = "head.norm",
           .norm_epsilon = norm.epsilon,
           .norm_bias = norm_bias,
           .out = "classifier"};
  const std::string pooling = config->String("classifier_pooling", "cls");
  if (pooling == "mean") head->input = HeadPlan::Input::kMean;
  if (pooling != "mean" && pooling != "cls") {
    config->Refuse("classifier_pooling", "'cls' or 'mean'");
  }
  const std::string activation = config->String("classifier_activation", "gelu");
  if (!config->ok()) return config->status();
  if (activation == "gelu") {
    head->activation = HeadPlan::Activation::kGelu;
  } else if (activation == "relu") {
    head->activation = HeadPlan::Activation::kRelu;
  } else if (activation != "tanh") {
    return Status(ErrorCode::kUnsupported, config->where() + ": classifier_activation is " +
                                               Quoted(activation) +
                                               "; encore computes gelu, relu and tanh only");
  }
  return {};
}

Status ReadLayersOf(JsonMembers* config, size_t layers, size_t max_positions, LayerConfig layer,
                    std::vector<LayerConfig>* out) {
  const RopeDefaults global{
      .head_size = layer.head_size, .max_positions = max_positions, .theta = 160000};
  RopeDefaults local = global;
  local.theta = 10000;
  RotaryConfig rotary[2];  // of all tokens, of a window
  Status s =
      ReadRopeOfType(config, {"full_attention", "global_rope_theta", true}, global, &rotary[0]);
  if (!s.ok()) return s;
  s = ReadRopeOfType(config, {"sliding_attention", "local_rope_theta", true}, local, &rotary[1]);
  if (!s.ok()) return s;
  // Both sides together; in a window of 1 a token sees itself only.
  const size_t both_sides = ReadExtent(config, "local_attention", 128);
  if (both_sides < 2) config->Refuse("local_attention", "at least 2");
  const size_t every = ReadExtent(config, "global_attn_every_n_layers", 3);
  const std::vector<bool> sliding =
      ReadSlidingLayers(config, layers, [&](size_t i) { return i % every != 0; });
  for (size_t i = 0; i < layers; ++i) {
    layer.attention_norm = i != 0;  // the embeddings have been normalized
    layer.rotary = rotary[sliding[i] ? 1 : 0];
    layer.window = sliding[i] ? std::optional<size_t>(both_sides / 2) : std::nullopt;
    out->push_back(layer);
  }
  return config->status();
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  const size_t d_model = ReadExtent(config, "hidden_size");
  const size_t max_positions = ReadExtent(config, "max_position_embeddings", 8192);
  const bool norm_bias = config->Bool("norm_bias", false);
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, "num_attention_heads", "hidden_size", d_model);
  layer.head_size = d_model / layer.num_heads;
  layer.d_ff = ReadExtent(config, "intermediate_size");
  layer.gate = Gate::kFirstHalf;
  layer.norm_placement = NormPlacement::kPre;
  layer.norm = {NormType::kLayerNorm, ReadEpsilon(config, "norm_eps", 1e-5)};
  if (Status s = ReadActivation(config, "hidden_activation", "gelu", &layer.activation); !s.ok()) {
    return s;
  }
  EncoderConfig& encoder = plan->encoder;
  encoder.d_model = d_model;
  encoder.final_norm = layer.norm;
  Status s = ReadLayersOf(config, ReadLayers(config, "num_hidden_layers"), max_positions, layer,
                          &encoder.layers);
  if (!s.ok()) return s;
  plan->final_norm = "final_norm";
  plan->final_norm_bias = norm_bias;
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  if (!config->Bool("attention_bias", false)) {
    DropBiases({&W::in_proj, &W::out_proj}, &plan->layer_modules);
  }
  if (!config->Bool("mlp_bias", false)) {
    DropBiases({&W::linear1, &W::linear2}, &plan->layer_modules);
  }
  if (!norm_bias) DropBiases({&W::norm1, &W::norm2}, &plan->layer_modules);
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.word = "embeddings.tok_embeddings";
  e.position_rule = PositionRule::kNone;
  e.max_positions = max_positions;
  e.any_length = true;
  e.norm = "embeddings.norm";
  e.norm_epsilon = layer.norm.epsilon;
  e.norm_bias = norm_bias;
  if (s = ReadHead(config, layer.norm, norm_bias, &plan->head); !s.ok()) return s;
  return config->status();
}

}  // namespace

constinit const Family kModernBert = {kTypes, &Read};

}  // namespace encore::internal
