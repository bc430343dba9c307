// SPDX-License-Identifier: Apache-2.0
//
// What the engine will do with a layer and a batch on this machine, for `encore info --plan`: tiles
// of the active target, how each matrix is cut, who does what. Not here: the choices themselves
// (engine/ops/gemm_blocking.h, engine/nn/thread_plan.h).

#ifndef ENCORE_TOOLS_ENCORE_PLAN_H_
#define ENCORE_TOOLS_ENCORE_PLAN_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "engine/nn/thread_plan.h"
#include "nlohmann/json.hpp"

namespace encore::tool {

// The largest microtile of each width.
struct PlannedTile {
  size_t vectors;
  size_t mr;  // rows
  size_t nr;  // columns
};

// y [tokens, n] = x [tokens, k] W, W packed in panels of nr columns.
struct PlannedMatrix {
  std::string name;  // "linear1"
  size_t n;
  size_t k;
  size_t nr;
  size_t panels;
  size_t mr;     // rows of its tile at most
  size_t mc;     // rows that pass over a panel while it is in cache
  size_t kc;     // length of a slice of K
  size_t bytes;  // packed
};

struct PlannedBatch {
  std::string lengths;  // "8x128"
  size_t tokens;
  int threads;
};

// Whole sequences that one thread takes through the layer.
struct PlannedGroup {
  size_t first_sequence;
  size_t sequences;
  size_t rows;
};

// Who does what of the batch; engine/nn/thread_plan.h says what it means.
struct PlannedThreads {
  internal::ThreadPlanKind kind;
  size_t count;
  std::vector<PlannedGroup> groups;  // kSequences: in the order in which they are taken
  std::vector<size_t> row_blocks;    // kRows: rows of each
  bool attention_apart;              // kRows
  bool heads_together;               // kColumns
};

struct Plan {
  std::string target;
  size_t lanes;  // floats a vector
  std::vector<PlannedTile> tiles;
  std::vector<PlannedMatrix> matrices;
  PlannedBatch batch;
  PlannedThreads threads;
};

// For the active target, in f32.
Plan MakePlan(const bench::NamedWorkload& workload, int threads);

void PrintPlan(std::ostream& out, const Plan& plan);

// An object with the plan's members.
nlohmann::ordered_json PlanJson(const Plan& plan);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_PLAN_H_
