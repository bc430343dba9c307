// SPDX-License-Identifier: Apache-2.0
//
// ELECTRA (Clark et al. 2020, arXiv:2003.10555): BERT whose embeddings may be narrower than its
// layers, and a classifier without a pooler.

#include "engine/models/bert_like.h"
#include "engine/models/config_keys.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTypes[] = {"electra"};
constexpr std::string_view kPrefixes[] = {"", "electra.", "model."};

Status Read(JsonMembers* config, ModelPlan* plan) {
  config->Ignore("pad_token_id");  // no part of the computation
  // Of ElectraForMultipleChoice alone.
  for (const auto* key :
       {"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"}) {
    config->Ignore(key);
  }
  plan->prefixes = kPrefixes;
  plan->head = {.dense = "classifier.dense",
                .activation = HeadPlan::Activation::kGelu,
                .out = "classifier.out_proj"};
  if (Status s = ReadBertLike(config, plan); !s.ok()) return s;
  plan->embeddings.width = ReadExtent(config, "embedding_size", 128);
  if (plan->embeddings.width != plan->encoder.d_model) {
    plan->embeddings.projection = "embeddings_project";
  }
  return config->status();
}

}  // namespace

constinit const Family kElectra = {kTypes, &Read};

}  // namespace encore::internal
