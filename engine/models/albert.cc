// SPDX-License-Identifier: Apache-2.0
//
// ALBERT (Lan et al. 2019, arXiv:1909.11942): BERT whose layers are all the same one, with
// embeddings that are narrower than it.

#include <iterator>
#include <string>

#include "engine/models/bert_like.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

constexpr std::string_view kTypes[] = {"albert"};
constexpr std::string_view kPrefixes[] = {"", "albert.", "model."};

// Without a layer's number: layers share these tensors.
#define ENCORE_ALBERT_LAYER "encoder.albert_layer_groups.0.albert_layers.0."
constexpr LayerModule kModules[] = {
    {ENCORE_ALBERT_LAYER "attention.query", &W::q_proj},
    {ENCORE_ALBERT_LAYER "attention.key", &W::k_proj},
    {ENCORE_ALBERT_LAYER "attention.value", &W::v_proj},
    {ENCORE_ALBERT_LAYER "attention.dense", &W::out_proj},
    {ENCORE_ALBERT_LAYER "attention.LayerNorm", &W::norm1},
    {ENCORE_ALBERT_LAYER "ffn", &W::linear1},
    {ENCORE_ALBERT_LAYER "ffn_output", &W::linear2},
    {ENCORE_ALBERT_LAYER "full_layer_layer_norm", &W::norm2},
};
#undef ENCORE_ALBERT_LAYER

// A buffer, and heads of pre-training and other tasks.
constexpr std::string_view kHarmlessTensors[] = {"embeddings.position_ids", "pooler.",
                                                 "predictions.", "sop_classifier.", "qa_outputs."};

// Of training, and of the first code's other networks: none reads them today.
constexpr std::string_view kIgnored[] = {
    "classifier_dropout_prob", "down_scale_factor", "gap_size",     "layers_to_keep",
    "net_structure_type",      "num_memory_blocks", "pad_token_id",
};

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  for (const auto* key : {"num_hidden_groups", "inner_group_num"}) {
    const size_t count = config->Size(key, 1);
    if (!config->ok() || count == 1) continue;
    return Status(ErrorCode::kUnsupported, config->where() + ": " + key + " is " +
                                               std::to_string(count) +
                                               "; encore computes 1 only: one layer for all");
  }
  if (Status s = ReadBertLike(config, plan, "gelu_new"); !s.ok()) return s;
  plan->layer_modules.assign(std::begin(kModules), std::end(kModules));
  plan->prefixes = kPrefixes;
  plan->harmless_tensors = kHarmlessTensors;
  plan->embeddings.width = ReadExtent(config, "embedding_size", 128);
  plan->embeddings.projection = "encoder.embedding_hidden_mapping_in";
  plan->head = {.dense = "pooler",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};
  return config->status();
}

}  // namespace

constinit const Family kAlbert = {kTypes, &Read};

}  // namespace encore::internal
