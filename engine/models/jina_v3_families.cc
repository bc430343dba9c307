// SPDX-License-Identifier: Apache-2.0
//
// Jina v3 (Sturua et al. 2024, arXiv:2409.10173): XLM-R with rotary positions, and adapters for
// tasks.

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr LayerModule kJinaV3Modules[] = {
    {"encoder.layers.{N}.mixer.Wqkv", &W::in_proj},
    {"encoder.layers.{N}.mixer.out_proj", &W::out_proj},
    {"encoder.layers.{N}.mlp.fc1", &W::linear1},
    {"encoder.layers.{N}.mlp.fc2", &W::linear2},
    {"encoder.layers.{N}.norm1", &W::norm1},
    {"encoder.layers.{N}.norm2", &W::norm2},
};
constexpr EmbeddingSpec kJinaV3Embeddings = {.word = "embeddings.word_embeddings",
                                             .type = "embeddings.token_type_embeddings",
                                             .any_length = true,
                                             .position_rule = PositionRule::kNone,
                                             .norm = "emb_ln"};
constexpr WordList kJinaV3Tasks =
    "retrieval.query retrieval.passage separation classification text-matching";

Status ConfigureJinaV3(JsonMembers* /*config*/, ModelSpec* spec) {
  for (const std::string_view task : kJinaV3Tasks) spec->tasks.names.emplace_back(task);
  return {};
}

// The published code's: how it computes, where it lies, what its encode() adds, and how it trains.
constexpr std::string_view kPublishedJinaV3Ignored =
    "auto_map emb_pooler load_trained_adapters lora_dropout_p lora_main_params_trainable "
    "matryoshka_dimensions task_instructions truncate_dim use_flash_attn use_reentrant";
constexpr SupportedValue kPublishedJinaV3Supported[] = {{"position_embedding_type", "rotary"}};

// Adapters are stored in the order of lora_adaptations.
Status ConfigurePublishedJinaV3(JsonMembers* config, ModelSpec* spec) {
  TaskSpec& tasks = spec->tasks;
  tasks.in_file = true;
  for (const JsonValue& name : config->RequiredArray("lora_adaptations").items()) {
    if (!name.is_string()) config->Refuse("lora_adaptations", "a list of strings");
    if (name.is_string()) tasks.names.push_back(name.text());
  }
  tasks.rank = ReadRequired(config, "lora_rank");
  const double alpha = config->Number("lora_alpha", 1);
  if (!std::isfinite(alpha)) config->Refuse("lora_alpha", "a number");
  tasks.scale = alpha / static_cast<double>(tasks.rank);
  ENCORE_RETURN_IF_ERROR(config->status());
  if (config->String("position_embedding_type", "absolute") != "rotary") {
    config->Refuse("position_embedding_type", "'rotary'");
  }
  RotaryConfig rotary;
  ENCORE_RETURN_IF_ERROR(ReadRope(config,
                                  {.head_size = spec->encoder.layers.front().head_size,
                                   .max_positions = spec->embeddings.max_positions,
                                   .theta = 10000,
                                   .theta_key = "rotary_emb_base"},
                                  &rotary));
  for (LayerConfig& layer : spec->encoder.layers) layer.rotary = rotary;
  return {};
}

constexpr Family kJinaV3Families[] = {
    // As transformers has it. Adapters are PEFT's folders beside the model.
    {.model_types = "jina_embeddings_v3",
     .prefixes = "roberta.",
     .harmless_tensors = "pooler. lm_head. qa_outputs.",
     .keys = {.types = {"type_vocab_size", 1},
              .max_positions = {"max_position_embeddings", 8194},
              .epsilon = {"layer_norm_eps", 1e-5}},
     .modules = {kJinaV3Modules},
     .rope_theta = 20000,
     .embeddings = kJinaV3Embeddings,
     .head = {.dense = "classifier.dense", .out = "classifier.out_proj"},
     .token_head = kTokenHead,
     .language = kRobertaLanguage,
     .configure = ConfigureJinaV3},
    // The same as first published, with adapters for tasks in its file.
    {.model_types = "xlm-roberta",
     .marker_key = "lora_adaptations",
     .prefixes = "roberta.",
     .harmless_tensors = "pooler.",
     .keys = {.types = {"type_vocab_size", 1},
              .max_positions = {"max_position_embeddings", 8194},
              .epsilon = {"layer_norm_eps", 1e-5}},
     .own_keys = "lora_adaptations rotary_emb_base",
     .ignored_keys = kPublishedJinaV3Ignored,
     .supported = kPublishedJinaV3Supported,
     .modules = {kJinaV3Modules},
     .embeddings = kJinaV3Embeddings,
     .configure = ConfigurePublishedJinaV3},
};

}  // namespace

std::span<const Family> JinaV3Families() { return kJinaV3Families; }

}  // namespace encore::internal
