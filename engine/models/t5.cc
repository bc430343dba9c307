// SPDX-License-Identifier: Apache-2.0
//
// The encoder of T5 (Raffel et al. 2019, arXiv:1910.10683) and of T5 1.1, as Sentence-T5 uses it:
// RMSNorm before sublayers, no biases, no scale of scores, a bias by distance that layers share.

#include <iterator>
#include <string>

#include "engine/base/quoted.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"t5", "mt5"};
constexpr std::string_view kPrefixes[] = {"", "transformer.", "model."};

constexpr LayerModule kAttention[] = {
    {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias", &W::position_bias, false},
    {"encoder.block.{N}.layer.0.layer_norm", &W::norm1, false},
    {"encoder.block.{N}.layer.0.SelfAttention.q", &W::q_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.k", &W::k_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.v", &W::v_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.o", &W::out_proj, false},
    {"encoder.block.{N}.layer.1.layer_norm", &W::norm2, false},
    {"encoder.block.{N}.layer.1.DenseReluDense.wo", &W::linear2, false},
};
constexpr LayerModule kPlain[] = {
    {"encoder.block.{N}.layer.1.DenseReluDense.wi", &W::linear1, false},
};
constexpr LayerModule kGated[] = {
    {"encoder.block.{N}.layer.1.DenseReluDense.wi_0", &W::gate_proj, false},
    {"encoder.block.{N}.layer.1.DenseReluDense.wi_1", &W::up_proj, false},
};

// The decoder, and what it writes with.
constexpr std::string_view kHarmlessTensors[] = {"decoder.", "lm_head."};

// The encoder is the same with a decoder beside it. dense_act_fn and is_gated_act are written from
// feed_forward_proj; n_positions is a memory of training.
constexpr std::string_view kIgnored[] = {
    "dense_act_fn", "dropout_rate",       "is_encoder_decoder",    "is_gated_act",
    "n_positions",  "num_decoder_layers", "scale_decoder_outputs",
};

// "relu", "gated-gelu" and the like. gelu means the tanh form where it is gated, as the first
// models' code had no other.
Status ReadNetwork(JsonMembers* config, std::string_view absent, LayerConfig* layer) {
  constexpr std::string_view kKey = "feed_forward_proj";
  constexpr std::string_view kGate = "gated-";
  const std::string name = config->String(kKey, absent);
  if (name.starts_with(kGate)) layer->gate = Gate::kFirstHalf;
  if (name == "gated-gelu") {
    layer->activation = Activation::kGeluTanh;
  } else if (name == "relu" || name == "gated-relu") {
    layer->activation = Activation::kRelu;
  } else if (name == "gelu") {
    layer->activation = Activation::kGelu;
  } else if (name == "gated-silu") {
    layer->activation = Activation::kSilu;
  } else if (config->ok()) {
    return Status(ErrorCode::kUnsupported,
                  config->where() + ": " + std::string(kKey) + " is " + Quoted(name) +
                      "; encore computes relu, gelu, gated-relu, gated-gelu and gated-silu only");
  }
  return config->status();
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  const bool multilingual = config->String("model_type", "") == "mt5";
  const size_t d_model = ReadExtent(config, "d_model");
  LayerConfig layer;
  layer.num_heads = ReadExtent(config, "num_heads");
  layer.head_size = ReadExtent(config, "d_kv", 64);
  layer.attention_scale = 1;
  BucketConfig& buckets = layer.buckets.emplace();
  buckets.num_buckets = ReadExtent(config, "relative_attention_num_buckets", 32);
  buckets.max_distance = ReadExtent(config, "relative_attention_max_distance", 128);
  if (buckets.num_buckets % 4 != 0) {
    config->Refuse("relative_attention_num_buckets", "a multiple of 4");
  }
  if (buckets.max_distance <= buckets.num_buckets / 4) {
    config->Refuse("relative_attention_max_distance",
                   "more than a quarter of relative_attention_num_buckets");
  }
  layer.d_ff = ReadExtent(config, "d_ff");
  if (Status s = ReadNetwork(config, multilingual ? "gated-gelu" : "relu", &layer); !s.ok()) {
    return s;
  }
  layer.norm_placement = NormPlacement::kPre;
  layer.norm = {NormType::kRmsNorm, ReadEpsilon(config, "layer_norm_epsilon", 1e-6)};
  plan->encoder =
      EncoderConfig::Uniform(d_model, ReadLayers(config, "num_layers"), layer, layer.norm);
  plan->final_norm = "encoder.final_layer_norm";
  plan->final_norm_bias = false;
  plan->layer_modules.assign(std::begin(kAttention), std::end(kAttention));
  const std::span<const LayerModule> first =
      layer.gate == Gate::kNone ? std::span<const LayerModule>(kPlain) : kGated;
  plan->layer_modules.insert(plan->layer_modules.end(), first.begin(), first.end());
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  // Files have one of the two, or both. Where these differ, the encoder's own counts.
  e.word = "encoder.embed_tokens";
  e.word_alias = "shared";
  e.position_rule = PositionRule::kNone;
  e.max_positions = kAnyLength;
  return config->status();
}

}  // namespace

constinit const Family kT5 = {kTypes, &Read};

}  // namespace encore::internal
