// SPDX-License-Identifier: Apache-2.0
//
// What pages and comparisons pick from a report, and its words: the best target, thread counts,
// workloads in their order, rows that suit a picture.

#ifndef ENCORE_TOOLS_ENCORE_REPORT_SERIES_H_
#define ENCORE_TOOLS_ENCORE_REPORT_SERIES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/encore/report_data.h"

namespace encore::tool {

using Rows = std::vector<const ReportRow*>;

// The first of the machine's targets that encore has a row of; "" without any.
std::string BestTarget(const Report& report);

// Numbers of threads of the rows, ascending.
std::vector<int> ThreadCounts(const Report& report);

// Names of the workloads, in the rows' order.
std::vector<std::string> WorkloadNames(const Report& report);

// 0 for f32, 1 for bf16, 2 for int8, 3 for bf16 on AMX, 4 for anything else: the colour of a
// series, and the order of bars.
size_t PrecisionRank(const ReportRow& row);
// "f32", "bf16", "int8", "bf16 (AMX)".
std::string PrecisionOf(const ReportRow& row);

// "AVX2" of encore; a peer's name of the others.
std::string EngineOf(const ReportRow& row);

// Rows of the best target, and of peers.
Rows RowsOfBestTarget(const Report& report);
// Those with weights in cache, or all if none are.
Rows WarmRows(const Rows& rows);
Rows RowsWithThreads(const Rows& rows, int threads);

// "AMD EPYC, 2 cores, Linux 6.1, g++ 12.2.0, encore 0.1.0".
std::string MachineText(const Report& report);

// A time with its unit: "812 us", "3.41 ms", "1.20 s".
std::string TimeText(double seconds);

// "1 thread", "8 threads".
std::string ThreadsText(int threads);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_REPORT_SERIES_H_
