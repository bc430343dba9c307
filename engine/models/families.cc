// SPDX-License-Identifier: Apache-2.0
//
// The list of all families.

#include "engine/models/families.h"

#include <algorithm>
#include <array>

namespace encore::internal {
namespace {

constexpr std::array<const Family*, 4> kFamilies = {&kBert, &kDistilBert, &kElectra, &kRoberta};

}  // namespace

const Family* FindFamily(std::string_view model_type) {
  for (const Family* family : kFamilies) {
    const auto& types = family->model_types;
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return family;
  }
  return nullptr;
}

std::string AllModelTypes() {
  std::string all;
  for (const Family* family : kFamilies) {
    for (const std::string_view type : family->model_types) {
      all += (all.empty() ? "" : ", ") + std::string(type);
    }
  }
  return all;
}

}  // namespace encore::internal
