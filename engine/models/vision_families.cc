// SPDX-License-Identifier: Apache-2.0
//
// Encoders of pictures: ViT and its kin, the picture sides of CLIP and SigLIP, DINOv2 and DINOv3.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr SupportedValue kColours[] = {{"num_channels", 3.0}};
constexpr HeadSpec kPatchesHead = {.out = "classifier", .of_picture = PictureRows::kPatches};
constexpr AbsentSizes kBaseSizes = {.d_model = 768, .layers = 12, .heads = 12, .d_ff = 3072};

// ---- CLIP and SigLIP. Whole models have the keys in an object of config.json.

// The other side, and what compares both.
constexpr WordList kOtherSide =
    "embeddings.position_ids text_model. text_projection. logit_scale logit_bias classifier.";
constexpr WordList kOtherKeys =
    "text_config text_config_dict vision_config_dict logit_scale_init_value";

void IgnoreOtherSide(JsonMembers* top) {
  for (const std::string_view key : kOtherKeys) top->Ignore(key);
}

Status ConfigureClipVision(JsonMembers* config, ModelSpec* spec) {
  spec->patches.projection_width = ReadExtent(config, {"projection_dim", 512});
  return config->status();
}

Status ConfigureTopOfClipVision(JsonMembers* top, ModelSpec* spec) {
  IgnoreOtherSide(top);
  return ConfigureClipVision(top, spec);
}

// The head's activation is that of the layers.
Status ConfigureSiglipVision(JsonMembers* config, ModelSpec* spec) {
  spec->final_norm_bias = true;
  return ReadHeadActivation(config, {"hidden_act", "gelu_pytorch_tanh"}, &spec->patches.activation);
}

Status ConfigureTopOfSiglipVision(JsonMembers* top, ModelSpec* /*spec*/) {
  IgnoreOtherSide(top);
  return top->status();
}

// CLIP (Radford et al. 2021, arXiv:2103.00020). The last states have no norm, their first row has.
constexpr Family kClipVision = {.model_types = "clip_vision_model",
                                .prefixes = "vision_model.",
                                .harmless_tensors = kOtherSide,
                                .keys = {.epsilon = {"layer_norm_eps", 1e-5},
                                         .activation = {"hidden_act", "quick_gelu"},
                                         .absent = kBaseSizes},
                                .supported = kColours,
                                .modules = {kClipModules},
                                .norm_placement = NormPlacement::kPre,
                                .embeddings = {.word = "embeddings.patch_embedding",
                                               .position = "embeddings.position_embedding.weight",
                                               .norm = "pre_layrnorm"},  // so it is spelt
                                .patches = {.image_size = 224,
                                            .patch_size = 32,
                                            .bias = false,
                                            .class_token = "embeddings.class_embedding",
                                            .norm = "post_layernorm",
                                            .projection = "visual_projection",
                                            .may_lack_projection = true},
                                .configure = ConfigureClipVision};

constexpr Family WholeClipVision() {
  Family family = kClipVision;
  family.model_types = "clip";
  family.parts = "vision_config_dict vision_config";
  family.head = kPatchesHead;
  family.ignored_keys = "projection_dim";
  family.patches.may_lack_projection = false;
  family.configure = nullptr;
  family.configure_top = ConfigureTopOfClipVision;
  return family;
}

constexpr SupportedValue kSiglipVisionSupported[] = {{"num_channels", 3.0},
                                                     {"vision_use_head", true}};

// SigLIP (Zhai et al. 2023, arXiv:2303.15343), and SigLIP 2 of one size, which says so too.
constexpr Family SiglipVision() {
  Family family = kClipVision;
  family.model_types = "siglip_vision_model";
  family.keys.epsilon = {"layer_norm_eps", 1e-6};
  family.keys.activation = {"hidden_act", "gelu_pytorch_tanh"};
  family.supported = kSiglipVisionSupported;
  family.final_norm = "post_layernorm";
  family.embeddings.norm = {};
  family.patches = {.image_size = 224, .patch_size = 16, .attention_head = "head"};
  family.configure = ConfigureSiglipVision;
  return family;
}

constexpr Family WholeSiglipVision() {
  Family family = SiglipVision();
  family.model_types = "siglip";
  family.parts = "vision_config";
  family.head = kPatchesHead;
  family.configure_top = ConfigureTopOfSiglipVision;
  return family;
}

// ---- ViT and DeiT.

constexpr LayerModule kVitModules[] = {
    {"encoder.layer.{N}.layernorm_before", &W::norm1},
    {"encoder.layer.{N}.attention.attention.query", &W::q_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.attention.key", &W::k_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.attention.value", &W::v_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.layernorm_after", &W::norm2},
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
};

Status ConfigureVit(JsonMembers* config, ModelSpec* spec) {
  spec->final_norm_bias = true;
  spec->patches.dense_width = config->Size("pooler_output_size", 0);
  if (spec->patches.dense_width == 0) spec->patches.dense_width = spec->encoder.d_model;
  return ReadHeadActivation(config, {"pooler_act", "tanh"}, &spec->patches.activation);
}

// ViT (Dosovitskiy et al. 2020, arXiv:2010.11929). The pooler's output counts where the file has
// one, which classifiers do not.
constexpr Family kVit = {.model_types = "vit",
                         .prefixes = "vit.",
                         .harmless_tensors = "embeddings.mask_token classifier. decoder.",
                         .keys = {.epsilon = {"layer_norm_eps", 1e-12}, .absent = kBaseSizes},
                         .own_keys = "image_size patch_size pooler_act pooler_output_size",
                         .ignored_keys = "encoder_stride",
                         .supported = kColours,
                         .modules = {kVitModules},
                         .norm_placement = NormPlacement::kPre,
                         .final_norm = "layernorm",
                         .embeddings = {.word = "embeddings.patch_embeddings.projection",
                                        .position = "embeddings.position_embeddings"},
                         .patches = {.image_size = 224,
                                     .patch_size = 16,
                                     .class_token = "embeddings.cls_token",
                                     .dense = "pooler.dense"},
                         .head = {.out = "classifier"},
                         .configure = ConfigureVit};

// DeiT (Touvron et al. 2020, arXiv:2012.12877): a second token, of distillation.
constexpr Family Deit() {
  Family family = kVit;
  family.model_types = "deit";
  family.prefixes = "deit.";
  family.harmless_tensors =
      "embeddings.mask_token classifier. cls_classifier. distillation_classifier. decoder.";
  family.patches.second_token = "embeddings.distillation_token";
  family.head.out_of_first = "cls_classifier";
  family.head.out_of_second = "distillation_classifier";
  return family;
}

// ---- DINOv2.

constexpr LayerModule kDinoModules[] = {
    {"encoder.layer.{N}.norm1", &W::norm1},
    {"encoder.layer.{N}.attention.attention.query", &W::q_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.attention.key", &W::k_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.attention.value", &W::v_proj, true, "qkv_bias"},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.layer_scale1", &W::layer_scale1, false, {}, ".lambda1"},
    {"encoder.layer.{N}.norm2", &W::norm2},
    {"encoder.layer.{N}.layer_scale2", &W::layer_scale2, false, {}, ".lambda1"},
};
constexpr LayerModule kDinoMlp[] = {{"encoder.layer.{N}.mlp.fc1", &W::linear1},
                                    {"encoder.layer.{N}.mlp.fc2", &W::linear2}};
constexpr LayerModule kDinoGated[] = {{"encoder.layer.{N}.mlp.weights_in", &W::linear1},
                                      {"encoder.layer.{N}.mlp.weights_out", &W::linear2}};
// Of training, and of what takes the states of inner layers.
constexpr WordList kDinoIgnored =
    "apply_layernorm drop_path_rate layerscale_value out_features out_indices "
    "reshape_hidden_states stage_names use_mask_token";

Status ConfigureDino(JsonMembers* config, ModelSpec* spec) {
  spec->final_norm_bias = true;
  const double ratio = config->Number("mlp_ratio", 4);
  const bool gated = config->Bool("use_swiglu_ffn", false);
  const auto d_model = static_cast<double>(spec->encoder.d_model);
  constexpr double kMost = 1 << 24;
  if (!(ratio * d_model >= 1 && ratio * d_model <= kMost)) {
    config->Refuse("mlp_ratio", "hidden_size times it to be 1 .. 2^24");
    return config->status();
  }
  auto d_ff = static_cast<size_t>(ratio * d_model);
  if (gated) d_ff = (d_ff * 2 / 3 + 7) / 8 * 8;
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.d_ff = d_ff;
    if (!gated) continue;
    layer.gate = Gate::kFirstHalf;
    layer.activation = Activation::kSilu;
  }
  for (const LayerModule& module : std::span<const LayerModule>(gated ? kDinoGated : kDinoMlp)) {
    spec->layer_modules.push_back(module);
  }
  return {};
}

// DINOv2 (Oquab et al. 2023, arXiv:2304.07193).
constexpr Family kDinov2 = {
    .model_types = "dinov2",
    .prefixes = "dinov2.",
    .harmless_tensors = "embeddings.mask_token classifier.",
    .keys = {.d_ff = {}, .epsilon = {"layer_norm_eps", 1e-6}, .absent = kBaseSizes},
    .own_keys = "mlp_ratio use_swiglu_ffn",
    .ignored_keys = kDinoIgnored,
    .supported = kColours,
    .modules = {kDinoModules},
    .norm_placement = NormPlacement::kPre,
    .final_norm = "layernorm",
    .embeddings = kVit.embeddings,
    .patches = {.image_size = 224, .patch_size = 14, .class_token = "embeddings.cls_token"},
    .head = {.out = "classifier", .of_picture = PictureRows::kFirstAndPatches},
    .configure = ConfigureDino};

void ReadRegisters(JsonMembers* config, size_t absent, ModelSpec* spec) {
  spec->patches.num_registers = config->Size("num_register_tokens", absent);
  if (spec->patches.num_registers > 1024) config->Refuse("num_register_tokens", "at most 1024");
}

Status ConfigureRegisters(JsonMembers* config, ModelSpec* spec) {
  ReadRegisters(config, 4, spec);
  return ConfigureDino(config, spec);
}

// With registers (Darcet et al. 2023, arXiv:2309.16588).
constexpr Family Dinov2WithRegisters() {
  Family family = kDinov2;
  family.model_types = "dinov2_with_registers";
  family.prefixes = "dinov2_with_registers.";
  family.own_keys = "num_register_tokens";
  family.patches.patch_size = 16;
  family.patches.registers = "embeddings.register_tokens";
  family.patches.antialias = true;
  family.configure = ConfigureRegisters;
  return family;
}

// ---- DINOv3.

constexpr LayerModule kDinov3Modules[] = {
    {"layer.{N}.norm1", &W::norm1},
    {"layer.{N}.attention.q_proj", &W::q_proj, true, "query_bias"},
    {"layer.{N}.attention.k_proj", &W::k_proj, false, "key_bias"},
    {"layer.{N}.attention.v_proj", &W::v_proj, true, "value_bias"},
    {"layer.{N}.attention.o_proj", &W::out_proj, true, "proj_bias"},
    {"layer.{N}.layer_scale1", &W::layer_scale1, false, {}, ".lambda1"},
    {"layer.{N}.norm2", &W::norm2},
    {"layer.{N}.mlp.down_proj", &W::linear2, true, "mlp_bias"},
    {"layer.{N}.layer_scale2", &W::layer_scale2, false, {}, ".lambda1"},
};

// Positions are those of patches in the picture, which ImageModel knows.
Status ConfigureDinov3(JsonMembers* config, ModelSpec* spec) {
  spec->final_norm_bias = true;
  ReadRegisters(config, 0, spec);
  const double theta = config->Number("rope_theta", 100);
  if (!(theta > 0)) config->Refuse("rope_theta", "a number above 0");
  const bool gated = config->Bool("use_gated_mlp", false);
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.rotary = RotaryConfig{.theta = theta};
    if (gated) layer.gate = Gate::kFirstHalf;
  }
  const bool bias = config->Bool("mlp_bias", true);
  if (gated) spec->layer_modules.push_back({"layer.{N}.mlp.gate_proj", &W::gate_proj, bias});
  spec->layer_modules.push_back({"layer.{N}.mlp.up_proj", gated ? &W::up_proj : &W::linear1, bias});
  return {};
}

// DINOv3 (Siméoni et al. 2025, arXiv:2508.10104).
constexpr Family kDinov3 = {
    .model_types = "dinov3_vit",
    .harmless_tensors = "embeddings.mask_token",
    .keys = {.epsilon = {"layer_norm_eps", 1e-5},
             .absent = {.d_model = 384, .layers = 12, .heads = 6, .d_ff = 1536}},
    .own_keys = "use_gated_mlp",
    .ignored_keys =
        "apply_layernorm drop_path_rate layerscale_value out_features out_indices "
        "pos_embed_jitter pos_embed_rescale pos_embed_shift reshape_hidden_states "
        "return_class_token stage_names",
    .supported = kColours,
    .modules = {kDinov3Modules},
    .norm_placement = NormPlacement::kPre,
    .final_norm = "norm",
    .embeddings = {.word = "embeddings.patch_embeddings"},
    .patches = {.image_size = 224,
                .patch_size = 16,
                .class_token = "embeddings.cls_token",
                .registers = "embeddings.register_tokens"},
    .configure = ConfigureDinov3};

// ---- The rows.

constexpr Family kVisionFamilies[] = {
    kClipVision, WholeClipVision(),     SiglipVision(), WholeSiglipVision(), kVit, Deit(),
    kDinov2,     Dinov2WithRegisters(), kDinov3,
};

}  // namespace

std::span<const Family> VisionFamilies() { return kVisionFamilies; }

}  // namespace encore::internal
