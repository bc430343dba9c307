// SPDX-License-Identifier: Apache-2.0
//
// All families: which one a config.json is of, and how its row becomes a plan.

#ifndef ENCORE_ENGINE_MODELS_FAMILIES_H_
#define ENCORE_ENGINE_MODELS_FAMILIES_H_

#include <string>
#include <string_view>

#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// The family of a model_type and, where several share it, of a key that marks one; or null.
const Family* FindFamily(std::string_view model_type, const JsonValue& config);
// All model types: "bert, distilbert, ...".
std::string AllModelTypes();
// Whether a family reads the key.
bool IsFamilyKey(std::string_view key);

// Reads the family's keys into the plan. Keys that mean the same in all families, and keys that
// mean nothing here, are left to other_keys.h.
Status ReadFamily(const Family& family, JsonMembers* config, ModelPlan* plan);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_FAMILIES_H_
