// SPDX-License-Identifier: Apache-2.0
//
// The table for people, the lines of hard floats, and JSON. Not here: Markdown (markdown.cc).

#include "tools/exhaustive/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "encore/version.h"
#include "nlohmann/json.hpp"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr size_t kWhatWidth = 32;
constexpr size_t kObservedWidth = 10;
constexpr size_t kPromiseWidth = 9;
constexpr size_t kFloatsWidth = 13;

std::string Formatted(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string ObservedText(const Row& row) {
  if (!std::isfinite(row.observed)) return "inf";
  const bool counts =
      row.kind == RowKind::kFalls || row.kind == RowKind::kBits || row.kind == RowKind::kSpecial;
  if (counts) return Grouped(row.observed);
  const bool tiny = row.observed != 0 && row.observed < 1e-3;
  return Formatted(tiny ? "%.2e" : "%.4f", row.observed);
}

bool SameLine(const Row& a, const Row& b) {
  return a.what == b.what && a.step == b.step && a.promise == b.promise &&
         a.observed == b.observed && PlaceText(a) == PlaceText(b);
}

std::string TriedText(uint64_t step) { return step == 1 ? "all" : "1 of " + std::to_string(step); }

const char* KindName(RowKind kind) {
  switch (kind) {
    case RowKind::kError:
      return "error";
    case RowKind::kJump:
      return "jump";
    case RowKind::kFalls:
      return "falls";
    case RowKind::kBits:
      return "bits";
    case RowKind::kSpecial:
      return "special values";
    case RowKind::kReference:
      return "reference";
  }
  return "";
}

}  // namespace

void PrintRowsHeader(std::ostream& out) {
  out << PadRight("function", kWhatWidth) << PadLeft("largest", kObservedWidth)
      << PadLeft("promise", kPromiseWidth) << "  " << PadRight("floats", kFloatsWidth)
      << "targets, and where\n";
}

void PrintRows(std::ostream& out, const std::vector<Row>& rows, bool colour) {
  if (rows.empty()) return;
  out << rows.front().function << "\n";
  std::vector<bool> printed(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (printed[i]) continue;
    std::string targets;
    for (size_t j = i; j < rows.size(); ++j) {
      if (printed[j] || !SameLine(row, rows[j])) continue;
      printed[j] = true;
      targets += (targets.empty() ? "" : " ") + rows[j].target;
    }
    std::string line =
        PadRight("  " + row.what, kWhatWidth) + PadLeft(ObservedText(row), kObservedWidth) +
        PadLeft(row.promised() ? Formatted("%.3g", row.promise) : "-", kPromiseWidth) + "  " +
        PadRight(TriedText(row.step), kFloatsWidth) + targets;
    const std::string place = PlaceText(row);
    if (!place.empty()) line += ": " + place;
    if (!row.kept()) line += "  BROKEN";
    out << (row.kept() || !colour ? line : "\x1b[1;31m" + line + "\x1b[0m") << "\n";
  }
  out.flush();
}

void PrintHardFloats(std::ostream& out, const std::string& function,
                     const std::vector<TargetResult>& results, size_t most) {
  for (const bool fma : {true, false}) {
    const auto result =
        std::find_if(results.begin(), results.end(),
                     [&](const TargetResult& candidate) { return candidate.fma == fma; });
    if (result == results.end()) continue;
    for (size_t i = 0; i < std::min(most, result->peaks.size()); ++i) {
      const Peak& peak = result->peaks[i];
      std::string number = Formatted("%.9g", static_cast<double>(peak.x));
      if (number.find_first_of(".en") == std::string::npos) number += ".0";
      if (std::isfinite(peak.x)) number += 'f';
      out << "    " << number << ",  // " << function << " " << Formatted("%.4f", peak.error)
          << (fma ? "" : " without FMA") << "\n";
    }
  }
}

std::string JsonOf(const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["version"] = ENCORE_VERSION_STRING;
  json["kept"] = std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.kept(); });
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json entry;
    entry["function"] = row.function;
    entry["kind"] = KindName(row.kind);
    entry["what"] = row.what.substr(std::min(row.what.find_first_not_of(' '), row.what.size()));
    if (!row.target.empty()) entry["target"] = row.target;
    entry["step"] = row.step;
    // JSON has no infinity; nlohmann writes null for it.
    entry["observed"] = row.observed;
    if (row.promised()) entry["promise"] = row.promise;
    entry["kept"] = row.kept();
    if (row.at_float) {
      entry["x"] = row.x;
      if (row.kind == RowKind::kError) entry["y"] = row.y;
    }
    json["rows"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
