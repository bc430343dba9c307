// SPDX-License-Identifier: Apache-2.0
//
// Families with norms before sublayers: ModernBERT and T5. Those with Llama's layers are in
// llama_families.cc.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

// ---- ModernBERT.

constexpr LayerModule kModernBertModules[] = {
    {"layers.{N}.attn_norm", &W::norm1, false, "norm_bias"},
    {"layers.{N}.attn.Wqkv", &W::in_proj, false, "attention_bias"},
    {"layers.{N}.attn.Wo", &W::out_proj, false, "attention_bias"},
    {"layers.{N}.mlp_norm", &W::norm2, false, "norm_bias"},
    {"layers.{N}.mlp.Wi", &W::linear1, false, "mlp_bias"},
    {"layers.{N}.mlp.Wo", &W::linear2, false, "mlp_bias"},
};

Status ConfigureModernBertHead(JsonMembers* config, ModelSpec* spec) {
  HeadSpec& head = spec->head;
  head.dense_bias = config->Bool("classifier_bias", false);
  head.norm_bias = spec->final_norm_bias;
  head.norm_epsilon = spec->encoder.final_norm.epsilon;
  const std::string pooling = config->String("classifier_pooling", "cls");
  if (pooling == "mean") head.rows = OutputRows::kAll;
  if (pooling != "mean" && pooling != "cls")
    config->Refuse("classifier_pooling", "'cls' or 'mean'");
  return ReadHeadActivation(config, {"classifier_activation", "gelu"}, &head.activation);
}

// The same layers before the labels of tokens and before the decoder.
void ShareModernBertHead(JsonMembers* config, ModelSpec* spec) {
  const HeadSpec& head = spec->head;
  spec->token_head = head;
  spec->token_head.rows = OutputRows::kAll;
  spec->language = {.dense = head.dense,
                    .dense_bias = head.dense_bias,
                    .activation = head.activation,
                    .norm = head.norm,
                    .norm_epsilon = head.norm_epsilon,
                    .norm_bias = head.norm_bias,
                    .decoder = "decoder",
                    .has_bias = config->Bool("decoder_bias", true)};
}

Status ConfigureModernBert(JsonMembers* config, ModelSpec* spec) {
  // Both sides together; in a window of 1 a token sees itself only.
  const size_t both_sides = ReadExtent(config, {"local_attention", 128});
  if (both_sides < 2) config->Refuse("local_attention", "at least 2");
  const size_t every = ReadExtent(config, {"global_attn_every_n_layers", 3});
  ReadWindows(
      config, both_sides / 2, [&](size_t i) { return i % every != 0; }, &spec->encoder.layers);
  ENCORE_RETURN_IF_ERROR(ReadTwoRopes(config, {.theta = 160000, .theta_key = "global_rope_theta"},
                                      {.theta_key = "local_rope_theta"}, spec));
  spec->encoder.layers.front().attention_norm = false;  // the embeddings have been normalized
  spec->final_norm_bias = config->Bool("norm_bias", false);
  spec->embeddings.norm_bias = spec->final_norm_bias;
  ENCORE_RETURN_IF_ERROR(ConfigureModernBertHead(config, spec));
  ShareModernBertHead(config, spec);
  return {};
}

// ---- T5.

constexpr LayerModule kT5Attention[] = {
    {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias", &W::position_bias, false},
    {"encoder.block.{N}.layer.0.layer_norm", &W::norm1, false},
    {"encoder.block.{N}.layer.0.SelfAttention.q", &W::q_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.k", &W::k_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.v", &W::v_proj, false},
    {"encoder.block.{N}.layer.0.SelfAttention.o", &W::out_proj, false},
    {"encoder.block.{N}.layer.1.layer_norm", &W::norm2, false},
    {"encoder.block.{N}.layer.1.DenseReluDense.wo", &W::linear2, false},
};
constexpr LayerModule kT5Plain = {"encoder.block.{N}.layer.1.DenseReluDense.wi", &W::linear1,
                                  false};
constexpr LayerModule kT5Gated[] = {
    {"encoder.block.{N}.layer.1.DenseReluDense.wi_0", &W::gate_proj, false},
    {"encoder.block.{N}.layer.1.DenseReluDense.wi_1", &W::up_proj, false},
};

// feed_forward_proj. gelu means the tanh form where it is gated, as the first models' code had no
// other.
constexpr struct {
  std::string_view name;
  Gate gate;
  Activation activation;
} kT5Networks[] = {
    {"relu", Gate::kNone, Activation::kRelu},
    {"gelu", Gate::kNone, Activation::kGelu},
    {"gated-relu", Gate::kFirstHalf, Activation::kRelu},
    {"gated-gelu", Gate::kFirstHalf, Activation::kGeluTanh},
    {"gated-silu", Gate::kFirstHalf, Activation::kSilu},
};

Status ConfigureT5(JsonMembers* config, ModelSpec* spec) {
  const bool multilingual = config->String("model_type", "") == "mt5";
  const std::string name =
      config->String("feed_forward_proj", multilingual ? "gated-gelu" : "relu");
  BucketConfig buckets;
  buckets.num_buckets = ReadExtent(config, {"relative_attention_num_buckets", 32});
  buckets.max_distance = ReadExtent(config, {"relative_attention_max_distance", 128});
  if (buckets.num_buckets % 4 != 0) {
    config->Refuse("relative_attention_num_buckets", "a multiple of 4");
  }
  if (buckets.max_distance <= buckets.num_buckets / 4) {
    config->Refuse("relative_attention_max_distance",
                   "more than a quarter of relative_attention_num_buckets");
  }
  ENCORE_RETURN_IF_ERROR(config->status());
  const auto* network = std::find_if(std::begin(kT5Networks), std::end(kT5Networks),
                                     [&](const auto& known) { return known.name == name; });
  if (network == std::end(kT5Networks)) {
    return Status(ErrorCode::kUnsupported,
                  config->where() + ": feed_forward_proj is " + Quoted(name) +
                      "; encore computes relu, gelu, gated-relu, gated-gelu and gated-silu only");
  }
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.attention_scale = 1;
    layer.buckets = buckets;
    layer.gate = network->gate;
    layer.activation = network->activation;
  }
  if (network->gate == Gate::kNone) {
    spec->layer_modules.push_back(kT5Plain);
  } else {
    spec->layer_modules.insert(spec->layer_modules.end(), std::begin(kT5Gated), std::end(kT5Gated));
  }
  return {};
}

// ---- The rows.

constexpr Family kPreNormFamilies[] = {
    // Warner et al. 2024, arXiv:2412.13663: rotary positions, gated networks, and layers that see a
    // window only between those that see all. The family's code reads neither layer_norm_eps nor
    // position_embedding_type, which the published folders have.
    {.model_types = "modernbert",
     .harmless_tensors = "head. decoder.",
     .keys = {.max_positions = {"max_position_embeddings", 8192},
              .epsilon = {"norm_eps", 1e-5},
              .activation = {"hidden_activation", "gelu"}},
     .own_keys = "classifier_activation classifier_bias classifier_pooling "
                 "global_attn_every_n_layers global_rope_theta layer_types local_attention "
                 "local_rope_theta",
     .ignored_keys = "decoder_bias deterministic_flash_attn embedding_dropout "
                     "initializer_cutoff_factor layer_norm_eps mlp_dropout "
                     "position_embedding_type reference_compile repad_logits_with_grad "
                     "sparse_pred_ignore_index sparse_prediction",
     .modules = {kModernBertModules},
     .norm_placement = NormPlacement::kPre,
     .gate = Gate::kFirstHalf,
     .final_norm = "final_norm",
     .embeddings = {.word = "embeddings.tok_embeddings",
                    .any_length = true,
                    .position_rule = PositionRule::kNone,
                    .norm = "embeddings.norm"},
     .head = {.dense = "head.dense", .norm = "head.norm", .out = "classifier"},
     .configure = ConfigureModernBert},
    // The encoder of T5 (Raffel et al. 2019, arXiv:1910.10683) and of T5 1.1, as Sentence-T5 uses
    // it: no biases, no scale of scores, a bias by distance that layers share. The encoder is the
    // same with a decoder beside it. dense_act_fn and is_gated_act are written from
    // feed_forward_proj; n_positions is a memory of training. Files have one of the two tables of
    // words, or both; where these differ, the encoder's own counts.
    {.model_types = "t5 mt5",
     .prefixes = "transformer.",
     .harmless_tensors = "decoder. lm_head.",
     .keys = {.d_model = "d_model",
              .layers = "num_layers",
              .heads = "num_heads",
              .d_ff = "d_ff",
              .head_size = {"d_kv", 64},
              .max_positions = {.absent = kAnyLength},
              .epsilon = {"layer_norm_epsilon", 1e-6},
              .activation = {}},
     .own_keys = "feed_forward_proj relative_attention_max_distance relative_attention_num_buckets",
     .ignored_keys = "dense_act_fn dropout_rate is_encoder_decoder is_gated_act n_positions "
                     "num_decoder_layers scale_decoder_outputs",
     .modules = {kT5Attention},
     .norm_placement = NormPlacement::kPre,
     .norm = NormType::kRmsNorm,
     .final_norm = "encoder.final_layer_norm",
     .embeddings = WordsAlone("encoder.embed_tokens", "shared"),
     .head = {.none = "it reads the decoder's states, which encore does not compute"},
     .token_head = kTokenHead,
     .configure = ConfigureT5},
};

}  // namespace

std::span<const Family> PreNormFamilies() { return kPreNormFamilies; }

}  // namespace encore::internal
