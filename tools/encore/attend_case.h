// SPDX-License-Identifier: Apache-2.0
//
// Worked examples in a JSON file: {"cases": [{"name": ..., ...}]}. A case gives matrices, or sizes
// to draw them with, and any expected results, which are compared.
//
// What a case may hold (matrices are lists of rows):
//   Q, K, V                        attention of these
//   X, W_q, W_k, W_v               self-attention, Q = X W_q and so on; tokens: labels of the rows
//   embedding_dim, with tokens or sentence, and no matrices: they are drawn from the seed
//   a name attention_NxD, and no matrices: Q, K and V [N, D] are drawn from the seed
//   d_model, nhead, dim_feedforward, activation, input_shape: an encoder block with drawn weights
// Results: Q, K, V (with X), scores, weights, output; shapes {name: [extents]}; output_shape.

#ifndef ENCORE_TOOLS_ENCORE_ATTEND_CASE_H_
#define ENCORE_TOOLS_ENCORE_ATTEND_CASE_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/encore/attention_example.h"

namespace encore::tool {

// How far f32 results may be from the expected ones, which are of magnitude 1 to 12 in the worked
// examples: two units of the largest's last place.
inline constexpr double kCaseTolerance = 2e-6;

// One comparison of a case's results.
struct CaseCheck {
  std::string what;    // "scores"
  std::string detail;  // "largest error 4.1e-07"
  bool ok = false;
};

// The case of this name, or the only one if name is empty. Throws Failure: the file cannot be read
// or is no JSON, or there is no such case (naming those there are).
nlohmann::json LoadCase(const std::string& path, const std::string& name);

// Whether the case is an encoder block rather than attention alone.
bool IsBlockCase(const nlohmann::json& spec);

// An attention case's given or drawn matrices, shapes checked, nothing computed. Throws Failure.
AttentionExample ExampleFromCase(const nlohmann::json& spec, uint32_t seed);

// Compares a computed example with the case's expected results, and the sums of the weights' rows
// with 1.
std::vector<CaseCheck> CheckCase(const nlohmann::json& spec, const AttentionExample& example);

// The encoder block among the cases: sizes from the case, weights drawn; shapes, names and results
// checked.
struct BlockCaseResult {
  std::string title;
  std::vector<CaseCheck> checks;
};

// Throws Failure if the case is incomplete or its sizes make no block.
BlockCaseResult RunBlockCase(const nlohmann::json& spec, uint32_t seed);  // attend_case_check.cc

// The extents under `key`: {"shape": [32, 10, 64]}. Throws Failure.
std::vector<size_t> ExtentsFromCase(const nlohmann::json& spec, const std::string& key);

// An integer >= 0 under `key`. Throws Failure.
size_t SizeFromCase(const nlohmann::json& spec, const std::string& key);

// "case 'words'": what its errors start with.
std::string CaseLabel(const nlohmann::json& spec);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_ATTEND_CASE_H_
