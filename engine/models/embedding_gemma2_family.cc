// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingGemma 2's text side, by itself and in the whole model: Gemma 3's layers, into each of
// which the embeddings go once more. Layers that see all tokens have other heads than those with a
// window.

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr LayerModule kGemma2Attention[] = {
    {"layers.{N}.self_attn.q_proj", &W::q_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.k_proj", &W::k_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.v_proj", &W::v_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.o_proj", &W::out_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.q_norm", &W::q_norm, false},
    {"layers.{N}.self_attn.k_norm", &W::k_norm, false},
};
constexpr LayerModule kGemma2Network[] = {
    {"layers.{N}.mlp.gate_proj", &W::gate_proj, false},
    {"layers.{N}.mlp.up_proj", &W::up_proj, false},
    {"layers.{N}.mlp.down_proj", &W::linear2, false},
};
constexpr LayerModule kGemma2Norms[] = {
    {"layers.{N}.input_layernorm", &W::norm1, false},
    {"layers.{N}.post_attention_layernorm", &W::post_norm1, false},
    {"layers.{N}.pre_feedforward_layernorm", &W::norm2, false},
    {"layers.{N}.post_feedforward_layernorm", &W::post_norm2, false},
};
constexpr LayerModule kGemma2Inputs[] = {
    {.name = "ple.per_layer_model_projection",
     .member = &W::input_proj,
     .bias = false,
     .stacked = true},
    {"ple.per_layer_projection_norm", &W::input_norm, false},
    {"layers.{N}.ple_block.per_layer_input_gate", &W::input_gate, false},
    {"layers.{N}.ple_block.per_layer_projection", &W::input_output, false},
    {"layers.{N}.ple_block.post_per_layer_input_norm", &W::post_input_norm, false},
    {.name = "layers.{N}.layer_scalar", .member = &W::layer_scalar, .bias = false, .weight = ""},
};

// Heads of a layer: {"head_dim": 512, "num_key_value_heads": 1}.
Status ReadLayerHeads(const JsonValue& object, const std::string& where, LayerConfig* layer) {
  JsonMembers members(object, where);
  layer->head_size = ReadExtent(&members, {"head_dim", layer->head_size});
  layer->num_kv_heads = ReadExtent(&members, {"num_key_value_heads", layer->num_kv_heads});
  if (layer->num_heads % layer->num_kv_heads != 0) {
    members.Refuse("num_key_value_heads",
                   "a divisor of the " + std::to_string(layer->num_heads) + " heads");
  }
  const std::vector<std::string> unread = members.Unread();
  if (!unread.empty()) members.Refuse(unread.front(), "head_dim and num_key_value_heads only");
  return members.status();
}

// per_layer_config has heads by a layer's number. Without it, layers that see all tokens have
// global_head_dim and num_global_key_value_heads.
Status ReadHeads(JsonMembers* config, std::vector<LayerConfig>* layers) {
  constexpr std::string_view kKey = "per_layer_config";
  const size_t size = ReadExtent(config, {"global_head_dim", 512});
  const size_t kv_heads = ReadExtent(config, {"num_global_key_value_heads", 1});
  if (!config->Has(kKey)) {
    for (LayerConfig& layer : *layers) {
      if (layer.window) continue;
      layer.head_size = size;
      layer.num_kv_heads = kv_heads;
    }
    if (layers->front().num_heads % kv_heads != 0) {
      config->Refuse("num_global_key_value_heads", "a divisor of the heads");
    }
    return config->status();
  }
  for (const auto& [key, value] : config->RequiredObject(kKey).members()) {
    size_t i = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), i);
    if (error != std::errc() || end != key.data() + key.size() || i >= layers->size()) {
      config->Refuse(kKey, "an object by the numbers of layers");
      return config->status();
    }
    ENCORE_RETURN_IF_ERROR(ReadLayerHeads(
        value, config->where() + ": " + std::string(kKey) + ": " + key, &(*layers)[i]));
  }
  // Each type of layers has one table of positions.
  for (const LayerConfig& layer : *layers) {
    for (const LayerConfig& other : *layers) {
      if (layer.window.has_value() == other.window.has_value() &&
          layer.head_size != other.head_size) {
        config->Refuse(kKey, "one head_dim for all layers of a type");
      }
    }
  }
  return config->status();
}

Status ConfigureEmbeddingGemma2(JsonMembers* config, ModelSpec* spec) {
  EncoderConfig& encoder = spec->encoder;
  std::vector<LayerConfig>& layers = encoder.layers;
  LayerInputConfig input{.width = ReadExtent(config, {"hidden_size_per_layer_input", 512}),
                         .norm = encoder.final_norm};
  // Projections are divided by the root of d_model before their norm, which undoes it but for the
  // epsilon.
  input.norm.epsilon *= static_cast<double>(encoder.d_model);
  for (LayerConfig& layer : layers) {
    layer.qk_norm = encoder.final_norm;
    layer.v_norm = encoder.final_norm;
    layer.attention_scale = 1;
    layer.layer_input = input;
  }
  spec->embeddings.scale = static_cast<float>(std::sqrt(static_cast<double>(encoder.d_model)));
  spec->projection = {"embedding_projection", ReadExtent(config, {"embedding_dim", 768})};
  const size_t every = ReadExtent(config, {"sliding_window_pattern", 6});
  const size_t window = ReadExtent(config, {"sliding_window", 512});
  ReadWindows(
      config, window, [&](size_t i) { return (i + 1) % every != 0; }, &layers);
  layers.back().window.reset();  // whatever layer_types says
  if (config->Has("rope_scaling")) config->Refuse("rope_scaling", "null");
  ENCORE_RETURN_IF_ERROR(config->status());
  const size_t head_size = layers.front().head_size;
  ENCORE_RETURN_IF_ERROR(ReadHeads(config, &layers));
  size_t local = head_size;
  for (const LayerConfig& layer : layers) {
    if (layer.window) local = layer.head_size;
  }
  return ReadTwoRopes(config,
                      {.head_size = layers.back().head_size, .theta = 1000000, .theta_key = {}},
                      {.head_size = local, .theta_key = {}, .scaled = false}, spec);
}

// Tokens of images and sounds have the row of padding.
Status ConfigureWholeEmbeddingGemma2(JsonMembers* config, ModelSpec* spec) {
  EmbeddingSpec& e = spec->embeddings;
  e.pad_token_id = config->Size("pad_token_id", 0);
  if (e.pad_token_id >= e.vocab_size) {
    config->Refuse("pad_token_id", "an id below vocab_size, " + std::to_string(e.vocab_size));
  }
  // sentence-transformers cuts texts by the keys at the top alone.
  e.max_positions = kAnyLength;
  return ConfigureEmbeddingGemma2(config, spec);
}

Status ConfigureTopOfEmbeddingGemma2(JsonMembers* config, ModelSpec* spec) {
  constexpr WordList kIgnored =
      "vision_config audio_config initializer_range boi_token_id eoi_token_id boa_token_id "
      "eoa_token_index";
  for (const std::string_view key : kIgnored) {
    config->Ignore(key);
  }
  spec->embeddings.placeholders = {config->Size("image_token_id", 258880),
                                   config->Size("video_token_id", 258884),
                                   config->Size("audio_token_id", 258881)};
  return config->status();
}

// Saved by itself.
constexpr Family kEmbeddingGemma2Text = {
    .model_types = "embedding_gemma2_text",
    .prefixes = "language_model.",
    .harmless_tensors = "lm_head. vision_tower. audio_tower. embed_vision. embed_audio.",
    .keys = {.kv_heads = {"num_key_value_heads", 2},
             .head_size = {"head_dim", 256},
             .max_positions = {"max_position_embeddings", 262144},
             .epsilon = {"rms_norm_eps", 1e-6},
             .activation = {"hidden_activation", "gelu_pytorch_tanh"}},
    .own_keys =
        "embedding_dim global_head_dim hidden_size_per_layer_input layer_types "
        "num_global_key_value_heads per_layer_config sliding_window "
        "sliding_window_pattern",
    .modules = {kGemma2Attention, kGemma2Network, kGemma2Norms, kGemma2Inputs},
    .norm_placement = NormPlacement::kBoth,
    .norm = NormType::kRmsNorm,
    .gate = Gate::kFirstHalf,
    .final_norm = "norm",
    .embeddings = WordsAlone("embed_tokens"),
    .configure = ConfigureEmbeddingGemma2};

// google/embeddinggemma-2, of texts, images and sounds.
constexpr Family WholeEmbeddingGemma2() {
  Family family = kEmbeddingGemma2Text;
  family.model_types = "embedding_gemma2";
  family.keys.absent = {
      .d_model = 512, .layers = 24, .heads = 4, .d_ff = 2048, .vocab_size = 262144};
  family.parts = "text_config";
  family.configure = ConfigureWholeEmbeddingGemma2;
  family.configure_top = ConfigureTopOfEmbeddingGemma2;
  return family;
}

constexpr Family kEmbeddingGemma2Families[] = {kEmbeddingGemma2Text, WholeEmbeddingGemma2()};

}  // namespace

std::span<const Family> EmbeddingGemma2Families() { return kEmbeddingGemma2Families; }

}  // namespace encore::internal
