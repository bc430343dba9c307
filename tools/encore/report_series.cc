// SPDX-License-Identifier: Apache-2.0
//
// Selections from a report; the declarations say what each function picks.

#include "tools/encore/report_series.h"

#include <algorithm>
#include <set>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kOwn = "encore";

template <typename Wanted>
Rows Select(const Rows& rows, const Wanted& wanted) {
  Rows selected;
  for (const ReportRow* row : rows) {
    if (wanted(*row)) selected.push_back(row);
  }
  return selected;
}

}  // namespace

std::string BestTarget(const Report& report) {
  std::vector<std::string> targets;
  for (const ReportRow& row : report.rows) {
    if (row.engine == kOwn) targets.push_back(row.target);
  }
  for (const std::string& target : report.machine.targets) {
    if (std::find(targets.begin(), targets.end(), target) != targets.end()) return target;
  }
  return targets.empty() ? "" : targets[0];
}

std::vector<int> ThreadCounts(const Report& report) {
  std::set<int> counts;
  for (const ReportRow& row : report.rows) counts.insert(row.threads);
  return {counts.begin(), counts.end()};
}

std::vector<std::string> WorkloadNames(const Report& report) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const ReportRow& row : report.rows) {
    if (seen.insert(row.workload).second) names.push_back(row.workload);
  }
  return names;
}

size_t PrecisionRank(const ReportRow& row) {
  if (row.amx_bf16) return 3;
  return row.precision == "f32" ? 0 : row.precision == "bf16" ? 1 : row.precision == "int8" ? 2 : 4;
}

std::string PrecisionOf(const ReportRow& row) {
  return row.amx_bf16 ? row.precision + " (AMX)" : row.precision;
}

std::string EngineOf(const ReportRow& row) { return row.engine == kOwn ? row.target : row.engine; }

Rows RowsOfBestTarget(const Report& report) {
  const std::string best = BestTarget(report);
  Rows rows;
  for (const ReportRow& row : report.rows) {
    if (row.engine != kOwn || row.target == best) rows.push_back(&row);
  }
  return rows;
}

Rows WarmRows(const Rows& rows) {
  Rows warm = Select(rows, [](const ReportRow& row) { return row.weights == "warm"; });
  return warm.empty() ? rows : warm;
}

Rows RowsWithThreads(const Rows& rows, int threads) {
  return Select(rows, [&](const ReportRow& row) { return row.threads == threads; });
}

std::string MachineText(const Report& report) {
  const ReportMachine& machine = report.machine;
  std::string text = machine.cpu + ", " + Counted(static_cast<size_t>(machine.cores), "core");
  for (const std::string& part : {machine.system, machine.compiler}) {
    if (!part.empty()) text += ", " + part;
  }
  if (!report.encore.empty()) text += ", encore " + report.encore;
  return Printable(text);
}

std::string TimeText(double seconds) {
  const auto three_digits = [](double value) {
    return Number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  };
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string ThreadsText(int threads) { return Counted(static_cast<size_t>(threads), "thread"); }

}  // namespace encore::tool
