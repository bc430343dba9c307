// SPDX-License-Identifier: Apache-2.0
//
// What BERT, ELECTRA and RoBERTa have in common: keys, tensor names and the layer.

#ifndef ENCORE_ENGINE_MODELS_BERT_LIKE_H_
#define ENCORE_ENGINE_MODELS_BERT_LIKE_H_

#include <string_view>

#include "encore/status.h"
#include "engine/io/json_members.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// Fills in all of the plan but the head and the prefixes; positions count from zero. `activation`
// counts where there is no hidden_act.
Status ReadBertLike(JsonMembers* config, ModelPlan* plan, std::string_view activation = "gelu");

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_BERT_LIKE_H_
