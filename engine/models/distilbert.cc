// SPDX-License-Identifier: Apache-2.0
//
// DistilBERT (Sanh et al. 2019, arXiv:1910.01108): BERT with names of its own and without types.

#include <iterator>

#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"distilbert"};
constexpr std::string_view kPrefixes[] = {"", "distilbert.", "model."};

constexpr LayerModule kModules[] = {
    {"transformer.layer.{N}.attention.q_lin", &W::q_proj},
    {"transformer.layer.{N}.attention.k_lin", &W::k_proj},
    {"transformer.layer.{N}.attention.v_lin", &W::v_proj},
    {"transformer.layer.{N}.attention.out_lin", &W::out_proj},
    {"transformer.layer.{N}.sa_layer_norm", &W::norm1},
    {"transformer.layer.{N}.ffn.lin1", &W::linear1},
    {"transformer.layer.{N}.ffn.lin2", &W::linear2},
    {"transformer.layer.{N}.output_layer_norm", &W::norm2},
};

// Of pre-training and other tasks.
constexpr std::string_view kHarmlessTensors[] = {"embeddings.position_ids", "vocab_transform.",
                                                 "vocab_layer_norm.", "vocab_projector.",
                                                 "qa_outputs."};

Status Read(JsonMembers* config, ModelPlan* plan) {
  constexpr double kEpsilon = 1e-12;  // the family has no key for it
  // Sinusoidal positions are in the file as any others; padding has no part in the computation.
  for (const auto* key : {"sinusoidal_pos_embds", "tie_weights_", "pad_token_id"}) {
    config->Ignore(key);
  }
  const size_t d_model = ReadExtent(config, "dim");
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, "n_heads", "dim", d_model);
  layer.d_ff = ReadExtent(config, "hidden_dim");
  layer.norm_placement = NormPlacement::kPost;
  layer.norm = {NormType::kLayerNorm, kEpsilon};
  if (Status s = ReadActivation(config, "activation", "gelu", &layer.activation); !s.ok()) return s;
  plan->encoder = EncoderConfig::Uniform(d_model, ReadLayers(config, "n_layers"), layer);
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.max_positions = ReadExtent(config, "max_position_embeddings", 512);
  e.word = "embeddings.word_embeddings";
  e.position = "embeddings.position_embeddings";
  e.norm = "embeddings.LayerNorm";
  e.norm_epsilon = kEpsilon;
  plan->head = {
      .dense = "pre_classifier", .activation = HeadPlan::Activation::kRelu, .out = "classifier"};
  return config->status();
}

}  // namespace

constinit const Family kDistilBert = {kTypes, &Read};

}  // namespace encore::internal
