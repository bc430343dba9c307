// SPDX-License-Identifier: Apache-2.0
//
// EuroBERT (Boizard et al. 2025, arXiv:2503.05500): Llama's layers without causality.

#include <string>

#include "engine/models/config_keys.h"
#include "engine/models/families.h"
#include "engine/models/llama_like.h"
#include "engine/models/rope_keys.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTypes[] = {"eurobert"};

// Of tokenizers and training, and where the published code lies.
constexpr std::string_view kIgnored[] = {"auto_map",       "bos_token",  "eos_token",
                                         "hidden_dropout", "mask_token", "pad_token",
                                         "pretraining_tp"};

// Of the first token or of the mean of all. With "late", which is the mean of every token's
// logits, there is no head: a classifier is refused, and a model without one does not mind.
void ReadHead(JsonMembers* config, HeadPlan* head) {
  // The published code has another name of the key than transformers.
  const bool published = config->Has("clf_pooling");
  const std::string_view key = published ? "clf_pooling" : "classifier_pooling";
  const std::string pooling = config->String(key, "late");
  if (pooling != "bos" && pooling != "mean" && pooling != "late") {
    config->Refuse(key, "'bos', 'mean' or 'late'");
  }
  if (published && config->String("classifier_pooling", pooling) != pooling) {
    config->Refuse("classifier_pooling", "'" + pooling + "', as clf_pooling has it");
  }
  if (pooling == "late") return;
  *head = {.input = pooling == "bos" ? HeadPlan::Input::kFirstToken : HeadPlan::Input::kMean,
           .dense = "dense",
           .activation = HeadPlan::Activation::kGelu,
           .out = "classifier",
           .note = published ? ", by clf_pooling of the folder's own code; sentence-transformers "
                               "reads the key with that code only"
                             : ""};
}

Status Read(JsonMembers* config, ModelPlan* plan) {
  IgnoreKeys(config, kIgnored);
  LayerConfig layer;
  Status s = ReadLlamaLike(config, {.epsilon = 1e-5, .max_positions = 8192, .mlp_bias_key = true},
                           &layer, plan);
  if (!s.ok()) return s;
  s = ReadActivation(config, "hidden_act", "silu", &layer.activation);
  if (!s.ok()) return s;
  s = ReadRope(config,
               {.head_size = layer.head_size, .max_positions = plan->embeddings.max_positions},
               &layer.rotary.emplace());
  if (!s.ok()) return s;
  plan->encoder = EncoderConfig::Uniform(
      plan->encoder.d_model, ReadLayers(config, "num_hidden_layers"), layer, layer.norm);
  ReadHead(config, &plan->head);
  return config->status();
}

}  // namespace

constinit const Family kEuroBert = {kTypes, &Read};

}  // namespace encore::internal
