// SPDX-License-Identifier: Apache-2.0
//
// How `encore bench` shows its rows: a table as they come. Not here: measuring (bench_measure.h),
// JSON (report_data.h).

#ifndef ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_
#define ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tools/encore/report_data.h"

namespace encore::tool {

// Names and values, as bench/measure/context.h has them.
void PrintBenchHead(std::ostream& out,
                    const std::vector<std::pair<std::string, std::string>>& context);
// A line for each number of threads.
void PrintRoofs(std::ostream& out, const std::vector<ReportRoof>& roofs);
void PrintBenchColumns(std::ostream& out);
// shared_peak: what the threads had of the peak of as many single ones.
void PrintBenchRow(std::ostream& out, const ReportRow& row, double shared_peak);
void PrintNoise(std::ostream& out, const ReportNoise& noise);

// The workloads there are: names, sizes, operations.
void PrintWorkloads(std::ostream& out);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_REPORT_H_
