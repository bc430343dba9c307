// SPDX-License-Identifier: Apache-2.0
//
// MPNet (Song et al. 2020, arXiv:2004.09297): BERT without types, whose positions count around
// padding and whose scores have a bias by distance, one table for all layers.

#include <iterator>

#include "engine/base/quoted.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"mpnet"};
constexpr std::string_view kPrefixes[] = {"", "mpnet.", "model."};

constexpr LayerModule kModules[] = {
    {"encoder.relative_attention_bias", &W::position_bias, false},
    {"encoder.layer.{N}.attention.attn.q", &W::q_proj},
    {"encoder.layer.{N}.attention.attn.k", &W::k_proj},
    {"encoder.layer.{N}.attention.attn.v", &W::v_proj},
    {"encoder.layer.{N}.attention.attn.o", &W::out_proj},
    {"encoder.layer.{N}.attention.LayerNorm", &W::norm1},
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
    {"encoder.layer.{N}.output.LayerNorm", &W::norm2},
};

constexpr std::string_view kHarmlessTensors[] = {"embeddings.position_ids", "pooler.", "lm_head.",
                                                 "qa_outputs."};

Status Read(JsonMembers* config, ModelPlan* plan) {
  // transformers counts positions around id 1, whatever pad_token_id says, and has one size of the
  // table of buckets.
  constexpr size_t kPadding = 1;
  constexpr BucketConfig kBuckets = {.num_buckets = 32, .max_distance = 128};
  const size_t d_model = ReadExtent(config, "hidden_size");
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, "num_attention_heads", "hidden_size", d_model);
  layer.buckets = kBuckets;
  layer.d_ff = ReadExtent(config, "intermediate_size");
  layer.norm_placement = NormPlacement::kPost;
  layer.norm = {NormType::kLayerNorm, ReadEpsilon(config, "layer_norm_eps", 1e-12)};
  if (Status s = ReadActivation(config, "hidden_act", "gelu", &layer.activation); !s.ok()) return s;
  const size_t buckets = config->Size("relative_attention_num_buckets", kBuckets.num_buckets);
  if (config->ok() && buckets != kBuckets.num_buckets) {
    return Status(ErrorCode::kUnsupported,
                  config->where() + ": relative_attention_num_buckets is " +
                      std::to_string(buckets) + "; encore computes 32 only");
  }
  plan->encoder = EncoderConfig::Uniform(d_model, ReadLayers(config, "num_hidden_layers"), layer);
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;
  plan->head = {.dense = "classifier.dense",
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier.out_proj"};

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.max_positions = ReadExtent(config, "max_position_embeddings", 512);
  if (e.max_positions < kPadding + 2) config->Refuse("max_position_embeddings", "at least 3");
  e.word = "embeddings.word_embeddings";
  e.position = "embeddings.position_embeddings";
  e.position_rule = PositionRule::kAroundPadding;
  e.pad_token_id = kPadding;
  e.norm = "embeddings.LayerNorm";
  e.norm_epsilon = layer.norm.epsilon;
  return config->status();
}

}  // namespace

constinit const Family kMpnet = {kTypes, &Read};

}  // namespace encore::internal
