// SPDX-License-Identifier: Apache-2.0
//
// The list of all families.

#include "engine/models/families.h"

#include <algorithm>

namespace encore::inline v0_1::internal {
namespace {

constexpr const Family* kFamilies[] = {
    &kBert, &kJinaBert, &kDistilBert, &kElectra, &kRoberta, &kMpnet,  &kModernBert, &kNomicBert,
    &kGte,  &kEuroBert, &kQwen3,      &kGemma3,  &kT5,      &kAlbert, &kErnie,
};

}  // namespace

const Family* FindFamily(std::string_view model_type, std::string_view position_embedding_type) {
  const Family* found = nullptr;
  for (const Family* family : kFamilies) {
    const auto& types = family->model_types;
    if (std::find(types.begin(), types.end(), model_type) == types.end()) continue;
    if (family->position_embedding_type == position_embedding_type) return family;
    if (family->position_embedding_type.empty()) found = family;
  }
  return found;
}

void DropBiases(std::initializer_list<LayerMember> members, std::vector<LayerModule>* modules) {
  for (LayerModule& module : *modules) {
    const auto* found = std::find(members.begin(), members.end(), module.member);
    if (found != members.end()) module.bias = false;
  }
}

std::string AllModelTypes() {
  std::string all;
  for (const Family* family : kFamilies) {
    if (!family->position_embedding_type.empty()) continue;  // named by another
    for (const std::string_view type : family->model_types) {
      all += (all.empty() ? "" : ", ") + std::string(type);
    }
  }
  return all;
}

}  // namespace encore::internal
