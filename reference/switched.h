// SPDX-License-Identifier: Apache-2.0
//
// Configurations with most switches of LayerConfig thrown, for tests of promises that hold whatever
// a layer computes: memory, threads, bits.

#ifndef ENCORE_REFERENCE_SWITCHED_H_
#define ENCORE_REFERENCE_SWITCHED_H_

#include <cstddef>

#include "encore/encoder.h"

namespace encore {

// Rotary positions, grouped heads, a gate, norms of heads, and a window in the second layer.
inline EncoderConfig RotaryAndGate(size_t num_heads = 4, size_t head_size = 12) {
  const NormConfig rms{.type = NormType::kRmsNorm};
  const LayerConfig global = {.num_heads = num_heads,
                              .num_kv_heads = num_heads / 2,
                              .head_size = head_size,
                              .qk_norm = rms,
                              .rotary = RotaryConfig{},
                              .d_ff = 70,
                              .activation = Activation::kSilu,
                              .gate = Gate::kFirstHalf,
                              .norm_placement = NormPlacement::kPre,
                              .norm = rms};
  LayerConfig local = global;
  local.window = 9;
  local.rotary->theta = 500;
  return {.d_model = 32, .layers = {global, local}, .final_norm = rms};
}

// A table of biases, norms on both sides, and heads that are no whole vectors.
inline EncoderConfig BucketsAndBothNorms() {
  return EncoderConfig::Uniform(26, 2,
                                {.num_heads = 2,
                                 .attention_scale = 1,
                                 .buckets = BucketConfig{.num_buckets = 16, .max_distance = 40},
                                 .d_ff = 33,
                                 .activation = Activation::kQuickGelu,
                                 .norm_placement = NormPlacement::kBoth,
                                 .norm = {.type = NormType::kRmsNorm, .weight_offset = 1}});
}

// Relative embeddings with shared projections and buckets, and with their own in a window.
inline EncoderConfig RelativeAndWindow() {
  EncoderConfig config = EncoderConfig::Uniform(
      30, 2,
      {.num_heads = 3,
       .attention_scale = 0.2,
       .relative = RelativeConfig{.buckets = 16, .max_distance = 60, .norm = {.epsilon = 1e-7}},
       .d_ff = 50,
       .activation = Activation::kGelu});
  config.layers[1].head_size = 16;
  config.layers[1].window = 100;
  config.layers[1].relative = RelativeConfig{.max_distance = 40, .own_projections = true};
  return config;
}

// Experts in the second of three layers, two for each token.
inline EncoderConfig ExpertsInTurn() {
  EncoderConfig config = EncoderConfig::Uniform(
      28, 3,
      {.num_heads = 2, .rotary = RotaryConfig{}, .d_ff = 45, .activation = Activation::kGelu});
  config.layers[1].experts = ExpertsConfig{.num_experts = 5, .top_k = 2};
  return config;
}

// The encoder's input in every layer, norms of values, and layers whose heads differ.
inline EncoderConfig LayerInputs() {
  const NormConfig rms{.type = NormType::kRmsNorm};
  EncoderConfig config =
      EncoderConfig::Uniform(24, 2,
                             {.num_heads = 4,
                              .num_kv_heads = 2,
                              .head_size = 8,
                              .attention_scale = 1,
                              .qk_norm = rms,
                              .v_norm = rms,
                              .window = 20,
                              .rotary = RotaryConfig{},
                              .d_ff = 30,
                              .activation = Activation::kGeluTanh,
                              .gate = Gate::kFirstHalf,
                              .layer_input = LayerInputConfig{.width = 37, .norm = rms},
                              .norm_placement = NormPlacement::kBoth,
                              .norm = rms});
  config.layers[1].head_size = 16;
  config.layers[1].num_kv_heads = 1;
  config.layers[1].window.reset();
  return config;
}

// A convolution after the first of two layers with relative embeddings, and a wider one after the
// last.
inline EncoderConfig Convolutions() {
  EncoderConfig config =
      EncoderConfig::Uniform(20, 2,
                             {.num_heads = 2,
                              .relative = RelativeConfig{.buckets = 8, .max_distance = 30},
                              .d_ff = 33,
                              .activation = Activation::kGelu,
                              .convolution = ConvolutionConfig{}});
  config.layers[1].convolution = ConvolutionConfig{.kernel = 7, .activation = Activation::kSilu};
  return config;
}

// Experts in the last layer, norms before sublayers, and windows.
inline EncoderConfig ExpertsLast() {
  EncoderConfig config = EncoderConfig::Uniform(24, 2,
                                                {.num_heads = 2,
                                                 .window = 30,
                                                 .d_ff = 40,
                                                 .activation = Activation::kSilu,
                                                 .norm_placement = NormPlacement::kPre});
  config.layers[1].experts = ExpertsConfig{.num_experts = 7, .top_k = 3, .normalize_weights = true};
  return config;
}

}  // namespace encore

#endif  // ENCORE_REFERENCE_SWITCHED_H_
