// SPDX-License-Identifier: Apache-2.0
//
// What BERT, ALBERT, ELECTRA, ERNIE and RoBERTa have in common.

#include "engine/models/bert_like.h"

#include <iterator>

#include "engine/models/config_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr LayerModule kModules[] = {
    {"encoder.layer.{N}.attention.self.query", &W::q_proj},
    {"encoder.layer.{N}.attention.self.key", &W::k_proj},
    {"encoder.layer.{N}.attention.self.value", &W::v_proj},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.attention.output.LayerNorm", &W::norm1},
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
    {"encoder.layer.{N}.output.LayerNorm", &W::norm2},
};

// position_ids are 0, 1, 2 ... in a buffer; the others are heads of pre-training and other tasks.
constexpr std::string_view kHarmlessTensors[] = {
    "embeddings.position_ids",
    "pooler.",
    "cls.",
    "lm_head.",
    "discriminator_predictions.",
    "generator_predictions.",
    "generator_lm_head.",
    "qa_outputs.",
};

}  // namespace

Status ReadBertLike(JsonMembers* config, ModelPlan* plan, std::string_view activation) {
  const size_t d_model = ReadExtent(config, "hidden_size");
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, "num_attention_heads", "hidden_size", d_model);
  layer.d_ff = ReadExtent(config, "intermediate_size");
  layer.norm_placement = NormPlacement::kPost;
  layer.norm = {NormType::kLayerNorm, ReadEpsilon(config, "layer_norm_eps", 1e-12)};
  if (Status s = ReadActivation(config, "hidden_act", activation, &layer.activation); !s.ok())
    return s;
  plan->encoder = EncoderConfig::Uniform(d_model, ReadLayers(config, "num_hidden_layers"), layer);
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->harmless_tensors = kHarmlessTensors;

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.type_vocab_size = ReadExtent(config, "type_vocab_size", 2);
  e.max_positions = ReadExtent(config, "max_position_embeddings", 512);
  e.word = "embeddings.word_embeddings";
  e.type = "embeddings.token_type_embeddings";
  e.position = "embeddings.position_embeddings";
  e.norm = "embeddings.LayerNorm";
  e.norm_epsilon = layer.norm.epsilon;
  return config->status();
}

}  // namespace encore::internal
