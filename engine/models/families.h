// SPDX-License-Identifier: Apache-2.0
//
// The list of all families.

#ifndef ENCORE_ENGINE_MODELS_FAMILIES_H_
#define ENCORE_ENGINE_MODELS_FAMILIES_H_

#include <string>
#include <string_view>

#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

extern const Family kAlbert;
extern const Family kBert;
extern const Family kDistilBert;
extern const Family kElectra;
extern const Family kErnie;
extern const Family kEuroBert;
extern const Family kGemma3;
extern const Family kGte;
extern const Family kJinaBert;
extern const Family kModernBert;
extern const Family kMpnet;
extern const Family kNomicBert;
extern const Family kQwen3;
extern const Family kRoberta;
extern const Family kT5;

// The family of a model_type and, where several share it, of a position_embedding_type, or null.
const Family* FindFamily(std::string_view model_type, std::string_view position_embedding_type);
// All model types: "bert, distilbert, ...".
std::string AllModelTypes();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_FAMILIES_H_
