// SPDX-License-Identifier: Apache-2.0
//
// The encoder block among the cases of `encore attend`: sizes from the case, weights drawn, shapes,
// names and results checked. Not here: the block itself (seeded_block.h).

#ifndef ENCORE_TOOLS_ENCORE_BLOCK_CASE_H_
#define ENCORE_TOOLS_ENCORE_BLOCK_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/encore/attend_case.h"

namespace encore::tool {

struct BlockCaseResult {
  std::string title;
  std::vector<CaseCheck> checks;
};

// Throws Failure if the case is incomplete or its sizes make no block.
BlockCaseResult RunBlockCase(const nlohmann::json& spec, uint32_t seed);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BLOCK_CASE_H_
