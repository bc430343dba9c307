// SPDX-License-Identifier: Apache-2.0
//
// The list of all families. Not here: what a family is (family.h), each family (its own file).

#ifndef ENCORE_ENGINE_MODELS_FAMILIES_H_
#define ENCORE_ENGINE_MODELS_FAMILIES_H_

#include <string>
#include <string_view>

#include "engine/models/family.h"

namespace encore::internal {

extern const Family kBert;
extern const Family kDistilBert;
extern const Family kElectra;
extern const Family kRoberta;

// The family of a model_type, or null.
const Family* FindFamily(std::string_view model_type);
// All model types: "bert, distilbert, ...".
std::string AllModelTypes();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_FAMILIES_H_
