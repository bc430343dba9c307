// SPDX-License-Identifier: Apache-2.0
//
// nomic-bert: BERT's placement of norms with rotary positions, and networks that are gated (1 and
// 1.5), or plain and of experts in turn (v2-moe).

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr LayerModule kNomicModules[] = {
    {"encoder.layers.{N}.attn.Wqkv", &W::in_proj, false},
    {"encoder.layers.{N}.attn.out_proj", &W::out_proj, false},
    {"encoder.layers.{N}.mlp.fc12", &W::gate_proj, false},
    {"encoder.layers.{N}.mlp.fc11", &W::up_proj, false},
    {"encoder.layers.{N}.mlp.fc2", &W::linear2, false},
};
constexpr LayerModule kNomicNorms[] = {
    {"encoder.layers.{N}.norm1", &W::norm1},
    {"encoder.layers.{N}.norm2", &W::norm2},
};
// Of the published code. The hook drops those of networks that the model does not have.
constexpr LayerModule kPublishedNomicModules[] = {
    {"encoder.layers.{N}.attn.Wqkv", &W::in_proj, true, "qkv_proj_bias"},
    {"encoder.layers.{N}.attn.out_proj", &W::out_proj, true, "qkv_proj_bias"},
    {"encoder.layers.{N}.mlp.fc12", &W::gate_proj, true, "mlp_fc1_bias"},
    {"encoder.layers.{N}.mlp.fc11", &W::up_proj, true, "mlp_fc1_bias"},
    {"encoder.layers.{N}.mlp.fc1", &W::linear1, true, "mlp_fc1_bias"},
    {"encoder.layers.{N}.mlp.fc2", &W::linear2, true, "mlp_fc2_bias"},
};
constexpr LayerModule kNomicExperts[] = {
    {"encoder.layers.{N}.mlp.router.layer", &W::router, false},
    {.name = "encoder.layers.{N}.mlp.experts.mlp.w1",
     .member = &W::experts_first,
     .bias = false,
     .weight = ""},
    {.name = "encoder.layers.{N}.mlp.experts.mlp.w2",
     .member = &W::experts_second,
     .bias = false,
     .weight = ""},
    {.name = "encoder.layers.{N}.mlp.experts",
     .member = &W::experts_bias,
     .bias = false,
     .weight = ".bias"},
};

constexpr SupportedValue kNomicSupported[] = {
    {"moe_every_n_layers", 0.0, " without the keys of GPT-2"}};
constexpr SupportedValue kPublishedNomicSupported[] = {
    {"expert_choice_router", false}, {"ffn_div", 1.0}, {"num_shared_experts", 0.0}};
// How the published code computes, where it lies, and GPT-2's keys. n_embd is the marker, which
// says nothing where it is null.
constexpr WordList kNomicIgnored =
    "add_pooling_layer attn_pdrop auto_map dense_seq_output embd_pdrop fused_bias_fc "
    "fused_dropout_add_ln last_layer_subset moe_impl moe_resid_pdrop n_embd "
    "pad_vocab_size_multiple reorder_and_upcast_attn resid_pdrop router_aux_loss_coef "
    "summary_activation summary_first_dropout summary_proj_to_labels summary_type "
    "summary_use_proj use_flash_attn use_xentropy";

// Folders may have transformers' spelling too: then it must say the same.
void WantTheSame(JsonMembers* config, const EncoderConfig& encoder) {
  const LayerConfig& layer = encoder.layers.front();
  const FamilyKeys now;
  const ConfigKey<size_t> sizes[] = {{now.d_model, encoder.d_model},
                                     {now.heads, layer.num_heads},
                                     {now.layers, encoder.num_layers()},
                                     {now.d_ff, layer.d_ff},
                                     {"head_dim", layer.head_size}};
  for (const auto& [key, value] : sizes) {
    if (config->Size(key, value) != value) {
      config->Refuse(key, std::to_string(value) + ", as its other name says");
    }
  }
  const double epsilon = layer.norm.epsilon;
  if (config->Number(now.epsilon.name, epsilon) != epsilon) {
    config->Refuse(now.epsilon.name, "layer_norm_epsilon");
  }
  const std::string activation(ActivationName(layer.activation));
  if (config->String(now.activation.name, activation) != activation) {
    config->Refuse(now.activation.name, Quoted(activation) + ", as activation_function says");
  }
  config->Ignore(now.max_positions.name);
}

// moe_normalize_expert_weights is the p of a norm; true counts as 1, the sum.
bool ReadNormalized(JsonMembers* config) {
  constexpr std::string_view kKey = "moe_normalize_expert_weights";
  if (!config->Has(kKey)) return false;
  const JsonValue& value = *config->Find(kKey);
  const double p = value.is_bool()     ? (value.boolean() ? 1.0 : 0.0)
                   : value.is_number() ? value.number()
                                       : -1;
  if (p != 0 && p != 1) config->Refuse(kKey, "false, or true or 1: a sum of 1");
  return p == 1;
}

// Every second layer has experts, beginning with the second.
Status ReadNomicExperts(JsonMembers* config, bool gated, std::vector<LayerConfig>* layers) {
  constexpr std::string_view kEvery = "moe_every_n_layers";
  const size_t every = config->Size(kEvery, 0);
  if (every == 0) {
    for (const std::string_view key :
         {"moe_normalize_expert_weights", "moe_top_k", "num_experts"}) {
      config->Ignore(key);
    }
    return config->status();
  }
  if (gated) config->Refuse("activation_function", "'gelu' with experts");
  if (every != 2) {
    return Status(ErrorCode::kUnsupported, config->where() + ": " + std::string(kEvery) + " is " +
                                               std::to_string(every) +
                                               "; encore computes 0 and 2 only");
  }
  ExpertsConfig experts;
  experts.num_experts = ReadExtent(config, {"num_experts", 8});
  experts.top_k = ReadExtent(config, {"moe_top_k", 2});
  experts.normalize_weights = ReadNormalized(config);
  if (experts.num_experts > kMaxExperts) {
    config->Refuse("num_experts", "at most " + std::to_string(kMaxExperts));
  }
  if (experts.top_k > experts.num_experts) {
    config->Refuse("moe_top_k",
                   "at most num_experts, which is " + std::to_string(experts.num_experts));
  }
  for (size_t i = 1; i < layers->size(); i += 2) (*layers)[i].experts = experts;
  return config->status();
}

Status ConfigurePublishedNomic(JsonMembers* config, ModelSpec* spec) {
  const std::string activation = config->String("activation_function", "gelu");
  ENCORE_RETURN_IF_ERROR(config->status());
  const bool gated = activation == "swiglu" || activation == "geglu";
  if (!gated && activation != "gelu") {
    return Status(ErrorCode::kUnsupported, config->where() + ": activation_function is " +
                                               Quoted(activation) +
                                               "; encore computes gelu, swiglu and geglu only");
  }
  const double theta = config->Number("rotary_emb_base", 10000);
  if (!(theta > 0)) config->Refuse("rotary_emb_base", "a number above 0");
  EmbeddingSpec& e = spec->embeddings;
  RotaryConfig rotary;
  ENCORE_RETURN_IF_ERROR(ReadRope(config,
                                  {.head_size = spec->encoder.layers.front().head_size,
                                   .max_positions = e.max_positions,
                                   .theta = theta},
                                  &rotary));
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.activation = activation == "swiglu" ? Activation::kSilu : Activation::kGelu;
    layer.gate = gated ? Gate::kFirstHalf : Gate::kNone;
    layer.rotary = rotary;
  }
  // The head's layers have biases where the networks' first ones do.
  LanguageHeadSpec& language = spec->language;
  language.activation =
      &ActivationRowOf(activation == "swiglu" ? Activation::kSilu : Activation::kGelu);
  language.dense_bias = language.has_bias = config->Bool("mlp_fc1_bias", true);
  ENCORE_RETURN_IF_ERROR(ReadNomicExperts(config, gated, &spec->encoder.layers));
  std::erase_if(spec->layer_modules, [gated](const LayerModule& module) {
    const bool of_gates = module.member == &W::gate_proj || module.member == &W::up_proj;
    return gated ? module.member == &W::linear1 : of_gates;
  });
  // A factor stretches positions by the length of a batch's longest sequence where that has more
  // tokens than the model was trained with. Fewer are computed as without.
  const size_t trained = ReadExtent(config, {"max_trained_positions", 2048});
  if (config->Number("rotary_scaling_factor", 1) != 1) {
    e.max_positions = std::min(e.max_positions, trained);
    e.any_length = false;
  }
  WantTheSame(config, spec->encoder);
  return {};
}

constexpr EmbeddingSpec kNomicEmbeddings = {.word = "embeddings.word_embeddings",
                                            .type = "embeddings.token_type_embeddings",
                                            .any_length = true,
                                            .position_rule = PositionRule::kNone,
                                            .norm = "emb_ln"};
constexpr HeadSpec kNomicHead = {
    .dense = "pooler.dense", .dense_in_base = true, .out = "classifier"};

constexpr LanguageHeadSpec kNomicLanguage = {.dense = "cls.predictions.transform.dense",
                                             .layer_activation = true,
                                             .norm = "cls.predictions.transform.layer_norm",
                                             .decoder = "cls.predictions.decoder",
                                             .bias = "cls.predictions.bias"};

constexpr Family kNomicFamilies[] = {
    // nomic-bert 1 and 1.5 (Nussbaum et al. 2024, arXiv:2402.01613) in transformers' spelling, and
    // in that of the published folders, which is GPT-2's. Only the latter has experts (Nussbaum and
    // Duderstadt 2025, arXiv:2502.07972).
    {.model_types = "nomic_bert",
     .prefixes = "bert. nomic_bert.",
     .harmless_tensors = "pooler. cls.",
     .keys = {.head_size = {"head_dim"},
              .min_types = 0,
              .max_positions = {"max_position_embeddings", 2048},
              .activation = {"hidden_act", "silu"}},
     .ignored_keys = kNomicIgnored,
     .supported = kNomicSupported,
     .modules = {kNomicModules, kNomicNorms},
     .gate = Gate::kFirstHalf,
     .rope_theta = 1000,
     .embeddings = kNomicEmbeddings,
     .head = kNomicHead,
     .token_head = kTokenHead,
     .language = kNomicLanguage},
    {.model_types = "nomic_bert",
     .marker_key = "n_embd",
     .prefixes = "bert. nomic_bert.",
     .harmless_tensors = "pooler. cls.",
     .keys = {.d_model = "n_embd",
              .layers = "n_layer",
              .heads = "n_head",
              .d_ff = "n_inner",
              .min_types = 0,
              .max_positions = {"n_positions", 2048},
              .epsilon = {"layer_norm_epsilon", 1e-5},
              .activation = {}},
     .own_keys = "activation_function rotary_emb_base max_trained_positions rotary_scaling_factor "
                 "moe_every_n_layers moe_normalize_expert_weights moe_top_k num_experts",
     .ignored_keys = kNomicIgnored,
     .supported = kPublishedNomicSupported,
     .modules = {kPublishedNomicModules, kNomicExperts, kNomicNorms},
     .gate = Gate::kFirstHalf,
     .embeddings = kNomicEmbeddings,
     .head = kNomicHead,
     .token_head = kTokenHead,
     .language = kNomicLanguage,
     .configure = ConfigurePublishedNomic},
};

}  // namespace

std::span<const Family> NomicFamilies() { return kNomicFamilies; }

}  // namespace encore::internal
