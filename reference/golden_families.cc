// SPDX-License-Identifier: Apache-2.0
//
// The families' switches, with sizes that no tile divides.

#include "reference/golden_families.h"

namespace encore::reference {
namespace {

constexpr NormConfig kRms = {.type = NormType::kRmsNorm, .epsilon = 1e-6};

}  // namespace

GoldenFamily ModernBert() {
  const NormConfig norm{.epsilon = 1e-5};
  const LayerConfig global = {.num_heads = 3,
                              .rotary = RotaryConfig{.theta = 160000},
                              .d_ff = 150,
                              .activation = Activation::kGelu,
                              .gate = Gate::kFirstHalf,
                              .norm_placement = NormPlacement::kPre,
                              .norm = norm,
                              .attention_norm = false};
  LayerConfig local = global;
  local.rotary->theta = 10000;
  local.window = 64;
  local.attention_norm = true;
  return {{.d_model = 96, .layers = {global, local}, .final_norm = norm}, {.biases = false}};
}

GoldenFamily Gemma() {
  NormConfig norm = kRms;
  norm.weight_offset = 1;
  const LayerConfig local = {.num_heads = 3,
                             .num_kv_heads = 1,
                             .head_size = 40,
                             .attention_scale = 0.125,
                             .qk_norm = norm,
                             .window = 100,
                             .rotary = RotaryConfig{.theta = 10000},
                             .d_ff = 130,
                             .activation = Activation::kGeluTanh,
                             .gate = Gate::kFirstHalf,
                             .norm_placement = NormPlacement::kBoth,
                             .norm = norm};
  LayerConfig global = local;
  global.window.reset();
  global.rotary->theta = 1e6;
  return {{.d_model = 72, .layers = {local, global}, .final_norm = norm},
          {.biases = false, .fused_qkv = false, .fused_first = false}};
}

GoldenFamily T5() {
  return {EncoderConfig::Uniform(56, 2,
                                 {.num_heads = 4,
                                  .head_size = 16,
                                  .attention_scale = 1,
                                  .buckets = BucketConfig{},
                                  .d_ff = 200,
                                  .activation = Activation::kRelu,
                                  .norm_placement = NormPlacement::kPre,
                                  .norm = kRms},
                                 kRms),
          {.biases = false, .fused_qkv = false, .shared_position_bias = true}};
}

GoldenFamily Qwen3() {
  return {EncoderConfig::Uniform(64, 2,
                                 {.num_heads = 4,
                                  .num_kv_heads = 2,
                                  .head_size = 32,
                                  .qk_norm = kRms,
                                  .causal = true,
                                  .rotary = RotaryConfig{.theta = 1e6},
                                  .d_ff = 190,
                                  .activation = Activation::kSilu,
                                  .gate = Gate::kFirstHalf,
                                  .norm_placement = NormPlacement::kPre,
                                  .norm = kRms},
                                 kRms),
          {.biases = false, .fused_qkv = false, .fused_first = false, .type = DType::kBF16}};
}

GoldenFamily Vit() {
  const NormConfig norm{.epsilon = 1e-6};
  return {EncoderConfig::Uniform(96, 2,
                                 {.num_heads = 3,
                                  .d_ff = 200,
                                  .activation = Activation::kQuickGelu,
                                  .norm_placement = NormPlacement::kPre,
                                  .norm = norm},
                                 norm),
          {.layer_scale = true}};
}

GoldenFamily Dinov3() {
  const NormConfig norm{};
  return {
      EncoderConfig::Uniform(96, 2,
                             {.num_heads = 3,
                              .rotary = RotaryConfig{.theta = 100, .grid = RotaryGrid{5, 21, 25}},
                              .d_ff = 110,
                              .activation = Activation::kSilu,
                              .gate = Gate::kFirstHalf,
                              .norm_placement = NormPlacement::kPre,
                              .norm = norm},
                             norm),
      {.fused_qkv = false, .fused_first = false, .layer_scale = true}};
}

GoldenFamily Jina() {
  return {EncoderConfig::Uniform(72, 2,
                                 {.num_heads = 6,
                                  .alibi = AlibiConfig{},
                                  .d_ff = 110,
                                  .activation = Activation::kGelu,
                                  .gate = Gate::kFirstHalf,
                                  .norm = {.epsilon = 1e-12}}),
          {.fused_qkv = false}};
}

}  // namespace encore::reference
