// SPDX-License-Identifier: Apache-2.0
//
// RoBERTa (Liu et al. 2019, arXiv:1907.11692), XLM-RoBERTa (arXiv:1911.02116) and CamemBERT
// (arXiv:1911.03894): BERT whose positions count around padding, and a classifier of two layers.

#include <string>

#include "engine/models/bert_like.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTypes[] = {"roberta", "xlm-roberta", "camembert"};
// All three name their base model "roberta".
constexpr std::string_view kPrefixes[] = {"", "roberta.", "model."};

Status Read(JsonMembers* config, ModelPlan* plan) {
  plan->prefixes = kPrefixes;
  plan->head = {.dense = "classifier.dense",
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier.out_proj"};
  if (Status s = ReadBertLike(config, plan); !s.ok()) return s;
  EmbeddingPlan& e = plan->embeddings;
  e.position_rule = PositionRule::kAroundPadding;
  const JsonValue* pad = config->Find("pad_token_id");
  e.pad_token_id = config->Size("pad_token_id", 1);
  // A sequence has a token, whose position is pad_token_id + 1.
  if ((pad != nullptr && pad->is_null()) || e.pad_token_id >= e.vocab_size || e.max_positions < 2 ||
      e.pad_token_id > e.max_positions - 2) {
    config->Refuse("pad_token_id", "a number below vocab_size " + std::to_string(e.vocab_size) +
                                       " and below max_position_embeddings " +
                                       std::to_string(e.max_positions) +
                                       " - 1, as positions count from it");
  }
  return config->status();
}

}  // namespace

constinit const Family kRoberta = {kTypes, &Read};

}  // namespace encore::internal
