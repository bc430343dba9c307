// SPDX-License-Identifier: Apache-2.0
//
// What `encore info` shows besides the machine (info.cc): the plan for a layer and a batch, a
// model's folder, a file of weights. Each is gathered as JSON and, where words are wanted, printed
// from that.

#ifndef ENCORE_TOOLS_ENCORE_INFO_PARTS_H_
#define ENCORE_TOOLS_ENCORE_INFO_PARTS_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "encore/precision.h"
#include "nlohmann/json.hpp"

namespace encore::tool {

// What the engine will do with a layer and a batch on this machine, in f32 on the active target:
// tiles, how each matrix is cut, who does what. The choices themselves are those of
// engine/ops/gemm_blocking.h and engine/nn/thread_plan.h.
//   tiles     the largest of each width: vectors, mr rows, nr columns
//   matrices  y [tokens, n] = x [tokens, k] W, packed in panels of nr columns; mr rows of a tile at
//             most, mc rows that pass over a panel while it is in cache, kc of K in a slice
//   threads   of kind "sequences": groups of whole sequences, in the order in which they are taken;
//             "rows": the rows of each row block; "columns"
nlohmann::ordered_json PlanJson(const bench::NamedWorkload& workload, int threads);
void PrintPlan(std::ostream& out, const nlohmann::ordered_json& plan);

// What encore makes of a model's folder: sizes, and every decision with the file that it comes
// from. Throws Failure.
struct ModelInfoOptions {
  std::string folder;
  bool ignore_unknown_keys = false;
  bool json = false;
  std::optional<Precision> precision = {};
  std::vector<MatrixOfLayer> keep = {};
};
void PrintModelInfo(std::ostream& out, const ModelInfoOptions& options);

// The memory that a file or folder of weights takes in each precision, counted before any matrix is
// read, and the bytes of a folder's tables of embeddings.
// Throws Failure where the file is none of weights.
struct WeightsInfoRequest {
  std::string path;
  int threads = 1;  // beside 1
  bool json = false;
};
void PrintWeightsInfo(std::ostream& out, const WeightsInfoRequest& request);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_INFO_PARTS_H_
