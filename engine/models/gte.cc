// SPDX-License-Identifier: Apache-2.0
//
// GTE 1.5 (Zhang et al. 2024, arXiv:2407.19669): BERT with rotary positions and gated networks. The
// published folders are model_type "new", with code of their own; transformers calls it "gte", and
// so do others who publish that code.

#include <iterator>
#include <string>

#include "engine/base/quoted.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"new", "gte"};
constexpr std::string_view kPrefixes[] = {"", "new.", "gte.", "model."};

constexpr LayerModule kModules[] = {
    {"encoder.layer.{N}.attention.qkv_proj", &W::in_proj},
    {"encoder.layer.{N}.attention.o_proj", &W::out_proj},
    {"encoder.layer.{N}.attn_ln", &W::norm1},
    {"encoder.layer.{N}.mlp.up_gate_proj", &W::linear1, false},
    {"encoder.layer.{N}.mlp.down_proj", &W::linear2},
    {"encoder.layer.{N}.mlp_ln", &W::norm2},
};

constexpr std::string_view kHarmlessTensors[] = {"pooler.", "lm_head.", "qa_outputs."};

// How the published code computes, and where it lies.
constexpr std::string_view kIgnored[] = {"auto_map", "matryoshka_dimensions", "unpad_inputs",
                                         "use_memory_efficient_attention"};

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  const bool published = config->String("model_type", "") == "new" || config->Has("auto_map");
  const std::string positions = config->String("position_embedding_type", "rope");
  const size_t d_model = ReadExtent(config, "hidden_size");
  const size_t max_positions = ReadExtent(config, "max_position_embeddings", 8192);
  LayerConfig layer;
  layer.num_heads = ReadHeads(config, "num_attention_heads", "hidden_size", d_model);
  layer.d_ff = ReadExtent(config, "intermediate_size");
  layer.gate = Gate::kSecondHalf;
  layer.norm_placement = NormPlacement::kPost;
  layer.norm = {NormType::kLayerNorm, ReadEpsilon(config, "layer_norm_eps", 1e-12)};
  if (Status s = ReadActivation(config, "hidden_act", "gelu", &layer.activation); !s.ok()) return s;
  if (positions != "rope") {
    return Status(ErrorCode::kUnsupported, config->where() + ": position_embedding_type is " +
                                               Quoted(positions) +
                                               "; encore computes 'rope' only in this family");
  }
  Status s = ReadRope(config,
                      {.head_size = d_model / layer.num_heads,
                       .max_positions = max_positions,
                       .theta = published ? 10000.0 : 160000.0,
                       .ntk = published},
                      &layer.rotary.emplace());
  if (!s.ok()) return s;
  plan->encoder = EncoderConfig::Uniform(d_model, ReadLayers(config, "num_hidden_layers"), layer);
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;
  plan->head = {.dense = "pooler.dense",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};

  EmbeddingPlan& e = plan->embeddings;
  e.width = d_model;
  e.vocab_size = ReadExtent(config, "vocab_size");
  e.type_vocab_size = ReadTypes(config, 1);
  e.word = "embeddings.word_embeddings";
  e.type = "embeddings.token_type_embeddings";
  e.position_rule = PositionRule::kNone;
  e.max_positions = max_positions;
  e.any_length = true;
  e.norm = "embeddings.LayerNorm";
  e.norm_epsilon = layer.norm.epsilon;
  return config->status();
}

}  // namespace

constinit const Family kGte = {kTypes, &Read};

}  // namespace encore::internal
