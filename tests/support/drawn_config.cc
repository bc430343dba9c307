// SPDX-License-Identifier: Apache-2.0
//
// How often each switch is thrown, and what it is then.

#include "tests/support/drawn_config.h"

#include "engine/nn/layer_sizes.h"

namespace encore {
namespace {

NormConfig DrawNorm(Draw& draw) {
  return {.type = draw.Chance(2) ? NormType::kRmsNorm : NormType::kLayerNorm,
          .epsilon = draw.Chance(2) ? 1e-6 : 1e-5,
          .weight_offset = draw.Chance(4) ? 1.0 : 0.0};
}

RelativeConfig DrawRelative(Draw& draw) {
  RelativeConfig relative;
  relative.buckets = draw.Chance(3) ? 0 : draw.Between(2, 40);
  relative.max_distance = relative.buckets / 2 + draw.Between(2, 100);
  const size_t terms = draw.Between(1, 3);
  relative.content_to_position = terms != 1;
  relative.position_to_content = terms != 2;
  relative.own_projections = draw.Chance(3);
  if (draw.Chance(2)) relative.norm = DrawNorm(draw);
  return relative;
}

void DrawPositions(Draw& draw, size_t head_size, LayerConfig& layer) {
  switch (draw.Between(0, 5)) {
    case 0:
      layer.alibi = AlibiConfig{};
      break;
    case 1:
      layer.buckets = BucketConfig{.num_buckets = 4 * draw.Between(1, 8),
                                   .max_distance = draw.Between(10, 150)};
      break;
    case 2:
    case 3:
      if (head_size < 2) break;
      layer.rotary = RotaryConfig{.size = 2 * draw.Between(1, head_size / 2),
                                  .interleaved = draw.Chance(2),
                                  .theta = draw.Chance(2) ? 10000.0 : 160000.0,
                                  .magnitude = draw.Chance(4) ? 1.25 : 1.0};
      break;
    case 4:
      layer.relative = DrawRelative(draw);
      layer.qk_norm = {.type = NormType::kNone};
      break;
    default:
      break;
  }
}

void DrawSwitches(Draw& draw, DrawnSizes sizes, size_t head_size, LayerConfig& layer) {
  while (layer.num_kv_heads == 0 || layer.num_heads % layer.num_kv_heads != 0) {
    layer.num_kv_heads = draw.Between(1, layer.num_heads);
  }
  if (draw.Chance(3)) {
    layer.head_size = head_size = draw.Between(1, sizes == DrawnSizes::kSmall ? 9 : 40);
  }
  if (draw.Chance(4)) layer.attention_scale = 0.125 * static_cast<double>(draw.Between(1, 4));
  if (draw.Chance(3)) layer.qk_norm = DrawNorm(draw);
  layer.causal = draw.Chance(4);
  if (draw.Chance(3)) layer.window = draw.Between(1, draw.Chance(2) ? 200 : 20);
  DrawPositions(draw, head_size, layer);
  layer.activation = static_cast<Activation>(draw.Between(0, 4));
  layer.gate = static_cast<Gate>(draw.Between(0, 2));
  layer.norm_placement = static_cast<NormPlacement>(draw.Between(0, 2));
  layer.norm = DrawNorm(draw);
  layer.attention_norm = layer.norm_placement != NormPlacement::kPre || !draw.Chance(4);
  if (layer.gate == Gate::kNone && draw.Chance(4)) {
    layer.experts =
        ExpertsConfig{.num_experts = draw.Between(1, 9), .normalize_weights = draw.Chance(2)};
    layer.experts->top_k = draw.Between(1, layer.experts->num_experts);
  }
}

// Heads and d_ff; returns the head size.
size_t DrawSmallSizes(Draw& draw, LayerConfig& layer) {
  layer.num_heads = draw.Between(1, 4);
  layer.d_ff = draw.Between(1, 40);
  return draw.Between(1, 6);
}

size_t DrawUsualSizes(Draw& draw, LayerConfig& layer) {
  layer.num_heads = draw.Between(1, 6);
  // Odd sizes as often as round ones.
  size_t head_size = draw.Chance(3) ? 8 * draw.Between(1, 3) : draw.Between(1, 20);
  if (draw.Chance(20)) {  // wide, and no whole vectors of every target
    layer.num_heads = draw.Between(1, 2);
    head_size = 72;
  }
  layer.d_ff = draw.Chance(8) ? draw.Between(1000, 1200) : draw.Between(1, 150);
  return head_size;
}

}  // namespace

// FNV-1a.
uint32_t Draw::HashOf(std::string_view bytes) {
  uint32_t hash = 0x811C9DC5u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hash;
}

uint32_t Draw::Next(size_t most) {
  if (bytes_.empty()) return static_cast<uint32_t>(engine_());
  uint32_t number = 0;
  for (size_t i = 0; i < (most < 256 ? 1u : 4u) && !bytes_.empty(); ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
  }
  return number;
}

EncoderConfig DrawConfig(Draw& draw, DrawnSizes sizes) {
  LayerConfig layer;
  const size_t head_size =
      sizes == DrawnSizes::kSmall ? DrawSmallSizes(draw, layer) : DrawUsualSizes(draw, layer);
  layer.activation = static_cast<Activation>(draw.Between(0, 4));
  layer.norm_placement = draw.Chance(2) ? NormPlacement::kPre : NormPlacement::kPost;
  EncoderConfig config =
      EncoderConfig::Uniform(layer.num_heads * head_size, draw.Between(1, 2), layer);
  if (!draw.Chance(4)) {
    for (LayerConfig& each : config.layers) DrawSwitches(draw, sizes, head_size, each);
  }
  if (draw.Chance(3)) config.final_norm = DrawNorm(draw);
  return config;
}

std::vector<WeightChoices> DrawChoices(Draw& draw, const EncoderConfig& config) {
  const DType types[] = {DType::kF32, DType::kF32, DType::kBF16, DType::kF16, DType::kF64};
  std::vector<WeightChoices> choices(config.num_layers());
  for (WeightChoices& c : choices) {
    c.biases = !draw.Chance(4);
    c.norm_weights = !draw.Chance(6);
    c.fused_qkv = !draw.Chance(3);
    c.fused_first = !draw.Chance(3);
    c.layer_scale = draw.Chance(4);
    c.shared_position_bias = draw.Chance(2);
    c.type = types[draw.Between(0, 4)];
  }
  return choices;
}

std::string Describe(const EncoderConfig& config) {
  const auto number = [](size_t n) { return std::to_string(n); };
  std::string text = "d_model " + number(config.d_model);
  for (const LayerConfig& l : config.layers) {
    const internal::LayerSizes sizes(config.d_model, l);
    text += "; " + number(sizes.heads) + " heads of " + number(sizes.head_size) + " and " +
            number(sizes.kv_heads) + " key heads, d_ff " + number(l.d_ff) + ", " +
            std::string(ActivationName(l.activation)) + ", norms " +
            number(static_cast<size_t>(l.norm_placement));
    if (l.norm.type == NormType::kRmsNorm) text += " rms";
    if (l.gate != Gate::kNone) text += ", gated";
    if (l.experts) {
      text +=
          ", " + number(l.experts->top_k) + " of " + number(l.experts->num_experts) + " experts";
    }
    if (l.qk_norm.type != NormType::kNone) text += ", qk_norm";
    if (l.causal) text += ", causal";
    if (l.window) text += ", window " + number(*l.window);
    if (l.rotary) text += ", rotary " + number(l.rotary->size);
    if (l.alibi) text += ", alibi";
    if (l.buckets) text += ", buckets";
    if (l.relative) {
      text +=
          ", relative " + number(l.relative->buckets) + " to " + number(l.relative->max_distance);
    }
  }
  return text;
}

}  // namespace encore
