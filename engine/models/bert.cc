// SPDX-License-Identifier: Apache-2.0
//
// BERT (Devlin et al. 2018, arXiv:1810.04805).

#include "engine/models/bert_like.h"
#include "engine/models/families.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kTypes[] = {"bert"};
constexpr std::string_view kPrefixes[] = {"", "bert.", "model."};

Status Read(JsonMembers* config, ModelPlan* plan) {
  config->Ignore("pad_token_id");  // no part of the computation
  plan->prefixes = kPrefixes;
  // The classifier goes on from the pooler, which was trained with it.
  plan->head = {.dense = "pooler.dense",
                .dense_in_base = true,
                .activation = HeadPlan::Activation::kTanh,
                .out = "classifier"};
  return ReadBertLike(config, plan);
}

}  // namespace

constinit const Family kBert = {kTypes, &Read};

}  // namespace encore::internal
