// SPDX-License-Identifier: Apache-2.0
//
// The README's tables.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/reference/accuracy.h"
#include "tools/exhaustive/report.h"

namespace encore::tool {
namespace {

// The largest of a function's numbers of one sort over some targets.
struct Cell {
  double observed = -1;  // none
  double promise = 0;
  std::string targets;
  uint64_t step = 1;
};

template <class Wanted>
Cell LargestOf(const std::vector<Row>& rows, const std::string& function, Wanted wanted) {
  Cell cell;
  for (const Row& row : rows) {
    if (row.function != function || !wanted(row)) continue;
    cell.observed = std::max(cell.observed, row.observed);
    cell.promise = row.promise;
    const std::string listed = ", " + cell.targets + ", ";
    if (listed.find(", " + row.target + ", ") == std::string::npos) {
      cell.targets += (cell.targets.empty() ? "" : ", ") + row.target;
    }
    cell.step = std::max(cell.step, row.step);
  }
  return cell;
}

std::string Text(const char* format, double value) {
  if (value < 0) return "-";
  if (!std::isfinite(value)) return "inf";
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Errors are rounded up: what the table says is not exceeded.
std::string Ulps(double value) {
  return Text("%.2f", value < 0 ? value : std::ceil(value * 100) / 100);
}

std::string Floats(const Cell& cell) {
  return cell.step == 1 ? "all floats" : "1 of " + std::to_string(cell.step);
}

std::vector<std::string> FunctionsOf(const std::vector<Row>& rows, Family family) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.family == family && std::find(names.begin(), names.end(), row.function) == names.end())
      names.push_back(row.function);
  }
  return names;
}

// Errors by the measure of this name on the targets with FMA that were tried most densely, or on
// those without.
Cell ErrorCell(const std::vector<Row>& rows, const std::string& function, std::string_view what,
               bool fma) {
  uint64_t least = UINT64_MAX;
  for (const Row& row : rows) {
    if (row.function == function && row.kind == RowKind::kError) least = std::min(least, row.step);
  }
  return LargestOf(rows, function, [&](const Row& row) {
    return row.kind == RowKind::kError && row.what == what &&
           reference::TargetHasFma(row.target) == fma && (!fma || row.step == least);
  });
}

// What the function's first measure is called.
std::string FirstMeasure(const std::vector<Row>& rows, const std::string& function) {
  for (const Row& row : rows) {
    if (row.function == function && row.kind == RowKind::kError) return row.what;
  }
  return "";
}

std::string FallsText(const std::vector<Row>& rows, const std::string& function) {
  const Cell cell =
      LargestOf(rows, function, [](const Row& row) { return row.kind == RowKind::kFalls; });
  if (cell.promise == 0) return cell.observed == 0 ? "yes, promised" : "BROKEN";
  return cell.observed == 0 ? "yes" : "no";
}

// A bar would end the cell.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string FunctionTable(const std::vector<Row>& rows) {
  const std::vector<std::string> names = FunctionsOf(rows, Family::kFunction);
  if (names.empty()) return "";
  const Cell fma = ErrorCell(rows, names[0], "ulp", true);
  const Cell other = ErrorCell(rows, names[0], "ulp", false);
  std::string out = "| function | " + fma.targets + " (" + Floats(fma) + ") | promised | " +
                    other.targets + " (" + Floats(other) +
                    ") | promised | rises wherever it should |\n|---|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    const Cell with = ErrorCell(rows, name, "ulp", true);
    const Cell without = ErrorCell(rows, name, "ulp", false);
    out += "| " + name + " | " + Ulps(with.observed) + " | " + Text("%g", with.promise) + " | " +
           Ulps(without.observed) + " | " + Text("%g", without.promise) + " | " +
           FallsText(rows, name) + " |\n";
  }
  return out;
}

std::string TileTable(const std::vector<Row>& rows) {
  const std::vector<std::string> names = FunctionsOf(rows, Family::kTile);
  if (names.empty()) return "";
  std::string out =
      "| in a block | ulp of x | promised | before the last rounding | absolute, x < 0 | absolute, "
      "x > 0 | without FMA, ulp of x | promised |\n|---|---|---|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    const Cell whole = ErrorCell(rows, name, "ulp of x", true);
    const Cell without = ErrorCell(rows, name, "ulp of x", false);
    out += "| " + name + " | " + Ulps(whole.observed) + " | " + Text("%g", whole.promise) + " | " +
           Ulps(ErrorCell(rows, name, "  before the last rounding", true).observed) + " | " +
           Text("%.1e", ErrorCell(rows, name, "  absolute, x < 0", true).observed) + " | " +
           Text("%.1e", ErrorCell(rows, name, "  absolute, x > 0", true).observed) + " | " +
           Ulps(without.observed) + " | " + Text("%g", without.promise) + " |\n";
  }
  return out;
}

std::string SoftmaxTable(const std::vector<Row>& rows) {
  const std::vector<std::string> names = FunctionsOf(rows, Family::kSoftmaxExp);
  if (names.empty()) return "";
  std::string out =
      "| in softmax | ulp | promised | without the allowance | without FMA, ulp | "
      "rises |\n|---|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    const std::string measure = FirstMeasure(rows, name);
    const Cell beyond = ErrorCell(rows, name, measure, true);
    const Cell without = ErrorCell(rows, name, measure, false);
    out += "| " + name + " | " + Ulps(beyond.observed) + " | " + Text("%g", beyond.promise) + " " +
           Escaped(measure.substr(measure.find(", ") + 2)) + " | " +
           Ulps(ErrorCell(rows, name, "  ulp", true).observed) + " | " + Ulps(without.observed) +
           " | " + FallsText(rows, name) + " |\n";
  }
  return out;
}

}  // namespace

std::string MarkdownOf(const std::vector<Row>& rows) {
  std::string out;
  for (const std::string& table : {FunctionTable(rows), TileTable(rows), SoftmaxTable(rows)}) {
    if (table.empty()) continue;
    out += (out.empty() ? "" : "\n") + table;
  }
  return out;
}

}  // namespace encore::tool
