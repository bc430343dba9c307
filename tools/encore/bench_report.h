// SPDX-License-Identifier: Apache-2.0
//
// How `encore bench` shows its rows: a table as they come, and a JSON file at the end. Not here:
// measuring (bench_measure.h).

#ifndef ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_
#define ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tools/encore/bench_measure.h"

namespace encore::tool {

// Names and values, as bench/measure/context.h has them.
using BenchContext = std::vector<std::pair<std::string, std::string>>;

void PrintBenchHead(std::ostream& out, const BenchContext& context);
void PrintBenchRow(std::ostream& out, const BenchRow& row);

// The workloads there are: names, sizes, operations.
void PrintWorkloads(std::ostream& out);

// {"context": {...}, "rows": [{...}, ...]}, a member for each field of a row and its workload's
// sizes.
std::string BenchJson(const BenchContext& context, const std::vector<BenchRow>& rows);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_
