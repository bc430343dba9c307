// SPDX-License-Identifier: Apache-2.0
//
// ESM, and the text sides of CLIP and SigLIP: LayerNorms before sublayers, as GPT-2 has them.

#include <span>
#include <string>
#include <string_view>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

// ---- ESM.

constexpr LayerModule kEsmModules[] = {
    {"encoder.layer.{N}.attention.LayerNorm", &W::norm1},
    {"encoder.layer.{N}.attention.self.query", &W::q_proj},
    {"encoder.layer.{N}.attention.self.key", &W::k_proj},
    {"encoder.layer.{N}.attention.self.value", &W::v_proj},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.LayerNorm", &W::norm2},
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
};
constexpr WordList kEsmHarmless =
    "embeddings.position_ids embeddings.position_embeddings pooler. lm_head. contact_head.";
// The family's code reads no hidden_act. vocab_list is ESMFold's, with the next two.
constexpr SupportedValue kEsmSupported[] = {{"is_folding_model", false}, {"esmfold_config", {}}};
constexpr WordList kEsmOwnKeys = "emb_layer_norm_before token_dropout";

Status ConfigureEsm(JsonMembers* config, ModelSpec* spec) {
  EmbeddingSpec& e = spec->embeddings;
  if (!config->Bool("emb_layer_norm_before", false)) e.norm = {};
  if (config->Bool("token_dropout", false)) e.dropped_token = config->RequiredSize("mask_token_id");
  spec->final_norm_bias = true;
  const bool is_rotary = e.position_rule == PositionRule::kNone;
  const double theta = is_rotary ? config->Number("rope_theta", 10000) : 1;
  if (!(theta > 0)) config->Refuse("rope_theta", "a number above 0");
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.activation = Activation::kGelu;
    if (is_rotary) layer.rotary = {.theta = theta};
  }
  return {};
}

constexpr FamilyKeys kEsmKeys = {.max_positions = {"max_position_embeddings", 1026},
                                 .activation = {}};

// ESM-1b (Rives et al. 2021, PNAS 118(15)) and ESM-2 (Lin et al. 2022, Science 379): proteins.
// ESM-1b's positions are RoBERTa's, kFromPadding. ESM-2's are rotary, kNone: a table that some
// files have all the same is not used.
constexpr Family EsmFamily(PositionRule rule) {
  Family family = {.model_types = "esm",
                   .prefixes = "esm.",
                   .harmless_tensors = kEsmHarmless,
                   .keys = kEsmKeys,
                   .own_keys = kEsmOwnKeys,
                   .supported = kEsmSupported,
                   .modules = {kEsmModules},
                   .norm_placement = NormPlacement::kPre,
                   .final_norm = "encoder.emb_layer_norm_after",
                   .embeddings = {.word = "embeddings.word_embeddings",
                                  .position_rule = rule,
                                  .norm = "embeddings.layer_norm"},
                   .head = {.dense = "classifier.dense", .out = "classifier.out_proj"},
                   .token_head = kTokenHead,
                   .language = kRobertaLanguage,
                   .configure = ConfigureEsm};
  if (rule == PositionRule::kFromPadding) {
    family.ignored_keys = "hidden_act rope_theta vocab_list";
    family.embeddings.position = "embeddings.position_embeddings";
    return family;
  }
  family.marker_key = "position_embedding_type";
  family.marker_value = "rotary";
  family.ignored_keys = "hidden_act position_embedding_type vocab_list";
  // transformers 5.23 writes the asterisk.
  family.frequencies =
      "rotary_embeddings.inv_freq encoder.layer.{N}.attention.self.rotary_embeddings.inv_freq "
      "encoder.layer.*.attention.self.rotary_embeddings.inv_freq";
  family.embeddings.any_length = true;
  return family;
}

// ---- CLIP and SigLIP. Their whole models have the text side's keys in an object of config.json.

constexpr SupportedValue kClipSupported[] = {{"is_causal", true}};
constexpr SupportedValue kSiglipSupported[] = {{"is_causal", false}};
// Of a whole model: its other side, and what compares both.
constexpr WordList kClipHarmless = "embeddings.position_ids text_projection.";
constexpr WordList kWholeHarmless =
    "embeddings.position_ids vision_model. visual_projection. logit_scale logit_bias";
constexpr WordList kWholeIgnored =
    "vision_config vision_config_dict text_config_dict logit_scale_init_value";

Status ConfigureClip(JsonMembers* /*config*/, ModelSpec* spec) {
  spec->final_norm_bias = true;
  for (LayerConfig& layer : spec->encoder.layers) layer.causal = true;
  return {};
}

// Configurations before transformers 4.31 have eos_token_id 2, which is no text's end: their
// models take the largest id for it.
Status ConfigureWholeClip(JsonMembers* config, ModelSpec* spec) {
  constexpr size_t kOldEnd = 2;
  const size_t end = config->Size("eos_token_id", 49407);
  spec->pooling = {end == kOldEnd ? TextPooling::kLargestId : TextPooling::kEosToken, end};
  return ConfigureClip(config, spec);
}

Status ConfigureTopOfClip(JsonMembers* config, ModelSpec* spec) {
  for (const std::string_view key : kWholeIgnored) config->Ignore(key);
  spec->projection = {"text_projection", ReadExtent(config, {"projection_dim", 512})};
  return config->status();
}

Status ConfigureSiglip(JsonMembers* config, ModelSpec* spec) {
  spec->final_norm_bias = true;
  spec->pads = true;
  config->Ignore("projection_size");
  return {};
}

Status ConfigureWholeSiglip(JsonMembers* config, ModelSpec* spec) {
  const size_t width = ReadExtent(config, {"projection_size", spec->encoder.d_model});
  ENCORE_RETURN_IF_ERROR(ConfigureSiglip(config, spec));
  spec->projection = {"text_model.head", width, /*bias=*/true};
  spec->pooling = {.token = TextPooling::kLastToken};
  return config->status();
}

Status ConfigureTopOfSiglip(JsonMembers* config, ModelSpec* /*spec*/) {
  for (const std::string_view key : kWholeIgnored) config->Ignore(key);
  return {};
}

constexpr FamilyKeys kClipKeys = {.max_positions = {"max_position_embeddings", 77},
                                  .epsilon = {"layer_norm_eps", 1e-5},
                                  .activation = {"hidden_act", "quick_gelu"}};
constexpr FamilyKeys kSiglipKeys = {.max_positions = {"max_position_embeddings", 64},
                                    .epsilon = {"layer_norm_eps", 1e-6},
                                    .activation = {"hidden_act", "gelu_pytorch_tanh"}};
constexpr EmbeddingSpec kClipEmbeddings = {.word = "embeddings.token_embedding",
                                           .position = "embeddings.position_embedding"};

// The text side of CLIP (Radford et al. 2021, arXiv:2103.00020), by itself. transformers has
// projection_dim for a class that sentence-transformers does not open.
constexpr Family kClipText = {.model_types = "clip_text_model",
                              .prefixes = "text_model.",
                              .harmless_tensors = kClipHarmless,
                              .keys = kClipKeys,
                              .ignored_keys = "projection_dim",
                              .supported = kClipSupported,
                              .modules = {kClipModules},
                              .norm_placement = NormPlacement::kPre,
                              .final_norm = "final_layer_norm",
                              .embeddings = kClipEmbeddings,
                              .configure = ConfigureClip};

// The row of the text side of a whole model: its keys are in an object, and it makes features.
constexpr Family Whole(Family family, WordList model_types, WordList parts, AbsentSizes absent) {
  family.model_types = model_types;
  family.harmless_tensors = kWholeHarmless;
  family.keys.absent = absent;
  family.parts = parts;
  family.pools_text = true;
  return family;
}

constexpr Family WholeClip() {
  Family family =
      Whole(kClipText, "clip", "text_config_dict text_config",
            {.d_model = 512, .layers = 12, .heads = 8, .d_ff = 2048, .vocab_size = 49408});
  family.configure = ConfigureWholeClip;
  family.configure_top = ConfigureTopOfClip;
  return family;
}

// That of SigLIP (Zhai et al. 2023, arXiv:2303.15343) and SigLIP 2 (Tschannen et al. 2025,
// arXiv:2502.14786). The head belongs to the whole model's vectors.
constexpr Family SiglipText() {
  Family family = kClipText;
  family.model_types = "siglip_text_model siglip2_text_model";
  family.harmless_tensors = "embeddings.position_ids head.";
  family.keys = kSiglipKeys;
  family.ignored_keys = {};
  family.supported = kSiglipSupported;
  family.configure = ConfigureSiglip;
  return family;
}

constexpr Family WholeSiglip() {
  Family family =
      Whole(SiglipText(), "siglip siglip2", "text_config",
            {.d_model = 768, .layers = 12, .heads = 12, .d_ff = 3072, .vocab_size = 32000});
  family.configure = ConfigureWholeSiglip;
  family.configure_top = ConfigureTopOfSiglip;
  return family;
}

// ---- The rows.

constexpr Family kEsmClipFamilies[] = {
    EsmFamily(PositionRule::kFromPadding),
    EsmFamily(PositionRule::kNone),
    kClipText,
    WholeClip(),
    SiglipText(),
    WholeSiglip(),
};

}  // namespace

std::span<const Family> EsmAndClipFamilies() { return kEsmClipFamilies; }

}  // namespace encore::internal
