// SPDX-License-Identifier: Apache-2.0
//
// Pairs of rows, by a key without the target and then by targets.

#include "tools/encore/compare_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace encore::tool {
namespace {

// Engine (or nothing, across engines) and workload; d_model, heads and d_ff; activation; layers,
// sequences, tokens and operations, in which lengths differ that have one sum; precision, amx_bf16,
// threads, weights.
using Key = std::tuple<std::string, std::string, size_t, size_t, size_t, std::string, size_t,
                       size_t, size_t, double, std::string, bool, int, std::string>;
using Rows = std::vector<const ReportRow*>;

Key KeyOf(const ReportRow& row, bool across_engines) {
  return {across_engines ? "" : row.engine,
          row.workload,
          row.d_model,
          row.heads,
          row.d_ff,
          row.activation,
          row.layers,
          row.sequences,
          row.tokens,
          row.flops,
          row.precision,
          row.amx_bf16,
          row.threads,
          row.weights};
}

std::map<Key, Rows> RowsByKey(const Report& report, bool across_engines) {
  std::map<Key, Rows> rows;
  for (const ReportRow& row : report.rows) rows[KeyOf(row, across_engines)].push_back(&row);
  return rows;
}

bool ShareAnEngine(const Report& base, const Report& other) {
  std::set<std::string> engines;
  for (const ReportRow& row : base.rows) engines.insert(row.engine);
  return std::any_of(other.rows.begin(), other.rows.end(),
                     [&](const ReportRow& row) { return engines.contains(row.engine); });
}

// The row of the target that the report's machine names first.
const ReportRow* Best(const Rows& rows, const std::vector<std::string>& targets) {
  const auto rank = [&](const ReportRow* row) {
    return std::find(targets.begin(), targets.end(), row->target) - targets.begin();
  };
  return *std::min_element(rows.begin(), rows.end(), [&](const ReportRow* a, const ReportRow* b) {
    return rank(a) < rank(b);
  });
}

const ReportRow* OfTarget(const Rows& rows, const std::string& target) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ReportRow* row) { return row->target == target; });
  return found == rows.end() ? nullptr : *found;
}

}  // namespace

RowPairs PairRows(const Report& base, const Report& other) {
  RowPairs result;
  result.across_engines = !ShareAnEngine(base, other);
  const std::map<Key, Rows> base_rows = RowsByKey(base, result.across_engines);
  const std::map<Key, Rows> other_rows = RowsByKey(other, result.across_engines);
  std::set<const ReportRow*> paired;
  for (const ReportRow& row : base.rows) {
    const Key key = KeyOf(row, result.across_engines);
    const auto theirs = other_rows.find(key);
    if (theirs == other_rows.end()) continue;
    const Rows& ours = base_rows.at(key);
    const auto pair = [&](const ReportRow* with) {
      result.pairs.push_back({&row, with});
      paired.insert({&row, with});
    };
    const ReportRow* same = OfTarget(theirs->second, row.target);
    if (same != nullptr && OfTarget(ours, row.target) == &row) pair(same);
    const ReportRow* best = Best(theirs->second, other.machine.targets);
    if (Best(ours, base.machine.targets) == &row && best->target != row.target) pair(best);
  }
  const auto alone = [&](const Report& report) {
    return static_cast<size_t>(
        std::count_if(report.rows.begin(), report.rows.end(),
                      [&](const ReportRow& row) { return !paired.contains(&row); }));
  };
  result.base_alone = alone(base);
  result.other_alone = alone(other);
  return result;
}

}  // namespace encore::tool
