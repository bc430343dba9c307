// SPDX-License-Identifier: Apache-2.0
//
// Which rows of two reports belong together. Not here: by how much they differ (comparison.h).

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_

#include <cstddef>
#include <vector>

#include "tools/encore/report_data.h"

namespace encore::tool {

struct RowPair {
  const ReportRow* base = nullptr;
  const ReportRow* other = nullptr;
};

struct RowPairs {
  std::vector<RowPair> pairs;  // in the order of the base's rows
  size_t base_alone = 0;       // rows of the base in no pair
  size_t other_alone = 0;
  bool across_engines = false;
};

// Pairs rows of one engine, workload (its name and all its sizes, for every custom one has the same
// name), layers, precision, amx_bf16, threads, weights and target. Where the best target of one
// report is not that of the other, the rows of these two are a pair as well. Two reports without an
// engine in common are paired across engines. Of rows that are alike in all this, the first counts.
// The reports must outlive the pairs.
RowPairs PairRows(const Report& base, const Report& other);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_
