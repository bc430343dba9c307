// SPDX-License-Identifier: Apache-2.0
//
// The tables and the JSON of `encore verify`.

#include "tools/encore/verify_report.h"

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

struct SectionText {
  VerifySection section;
  const char* name;     // in JSON
  const char* title;    // of the table
  const char* promise;  // what is broken when one of its checks fails
};

constexpr SectionText kSections[] = {
    {VerifySection::kFunctions, "functions", "Functions: largest error in ulp",
     "an error is larger than promised"},
    {VerifySection::kOperations, "operations",
     "Operations: largest error as a share of its bound, against double precision",
     "an error is beyond its bound"},
    {VerifySection::kBits, "bits", "The same bits: comparisons that held",
     "bits differ that were promised to be equal"},
    {VerifySection::kPublished, "published", "Published hashes",
     "not the bits that every machine was promised"},
};

const SectionText& TextOf(VerifySection section) {
  return *std::find_if(std::begin(kSections), std::end(kSections),
                       [&](const SectionText& text) { return text.section == section; });
}

std::string Hex(uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

bool IsError(VerifySection section) {
  return section == VerifySection::kFunctions || section == VerifySection::kOperations;
}

std::string CellText(const Finding& finding) {
  switch (finding.section) {
    case VerifySection::kFunctions:
    case VerifySection::kOperations:
      return std::isfinite(finding.observed) ? Number(finding.observed, 3) : "inf";
    case VerifySection::kBits:
      return finding.kept ? Grouped(finding.observed) : "BROKEN";
    case VerifySection::kPublished:
      return finding.kept ? "ok" : "BROKEN";
  }
  return "";
}

// "1", "1 [1.25]" where targets differ, "" where there is no such number.
std::string PromiseText(const std::vector<const Finding*>& row) {
  if (!IsError(row.front()->section)) return "";
  std::vector<double> promises;
  for (const Finding* finding : row) {
    if (std::find(promises.begin(), promises.end(), finding->promise) == promises.end()) {
      promises.push_back(finding->promise);
    }
  }
  std::string text;
  for (const double promise : promises) {
    char number[32];
    std::snprintf(number, sizeof(number), "%g", promise);
    text += text.empty() ? std::string(number) : " [" + std::string(number) + "]";
  }
  return text;
}

}  // namespace

std::optional<VerifySection> SectionNamed(std::string_view name) {
  for (const SectionText& text : kSections) {
    if (name == text.name) return text.section;
  }
  return std::nullopt;
}

size_t VerifyReport::Broken() const {
  return static_cast<size_t>(std::count_if(findings_.begin(), findings_.end(),
                                           [](const Finding& finding) { return !finding.kept; }));
}

void VerifyReport::PrintSection(std::ostream& out, VerifySection section, bool colour) const {
  // Rows in the order in which checks came.
  std::vector<std::pair<std::string, std::vector<const Finding*>>> rows;
  size_t check_width = 0;
  for (const Finding& finding : findings_) {
    if (finding.section != section) continue;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const auto& r) { return r.first == finding.check; });
    if (row == rows.end()) row = rows.insert(rows.end(), {finding.check, {}});
    row->second.push_back(&finding);
    check_width = std::max(check_width, DisplayWidth(finding.check));
  }
  if (rows.empty()) return;

  constexpr size_t kPromiseWidth = 10;
  size_t cell_width = 11;
  for (const std::string& target : targets_) cell_width = std::max(cell_width, target.size() + 2);
  for (const auto& [check, cells] : rows) {
    for (const Finding* cell : cells) cell_width = std::max(cell_width, CellText(*cell).size() + 2);
  }
  const bool promises = IsError(section);
  out << TextOf(section).title << "\n  " << PadRight("", check_width);
  if (promises) out << PadLeft("promise", kPromiseWidth + 2);
  for (const std::string& target : targets_) out << PadLeft(target, cell_width);
  out << "\n";
  for (const auto& [check, cells] : rows) {
    out << "  " << PadRight(check, check_width);
    if (promises) out << PadLeft(PromiseText(cells), kPromiseWidth + 2);
    for (const std::string& target : targets_) {
      const auto cell = std::find_if(cells.begin(), cells.end(),
                                     [&](const Finding* f) { return f->target == target; });
      if (cell == cells.end()) {
        out << PadLeft("-", cell_width);
        continue;
      }
      const bool mark = !(*cell)->kept;
      std::string text = CellText(**cell);
      if (mark && IsError(section)) text += '!';
      text = PadLeft(text, cell_width);
      out << (mark && colour ? "\x1b[1;31m" + text + "\x1b[0m" : text);
    }
    out << "\n";
  }
  out << "\n";
}

void VerifyReport::PrintBroken(std::ostream& out) const {
  for (auto first = findings_.begin(); first != findings_.end(); ++first) {
    const auto same = [&](const Finding& other) {
      return !other.kept && other.section == first->section && other.check == first->check;
    };
    if (first->kept || std::find_if(findings_.begin(), first, same) != first) continue;
    out << "BROKEN: " << TextOf(first->section).promise << ": " << first->check << " on "
        << first->target;
    for (auto other = first + 1; other != findings_.end(); ++other) {
      if (same(*other)) out << ", " << other->target;
    }
    out << (first->detail.empty() ? "" : ": " + first->detail) << "\n";
  }
}

void VerifyReport::Print(std::ostream& out, bool colour) const {
  for (const SectionText& text : kSections) PrintSection(out, text.section, colour);
  PrintBroken(out);
  const size_t broken = Broken();
  if (broken == 0) {
    out << (only_.empty() ? "Every promise was kept (" : "What was tried was kept (")
        << Counted(findings_.size(), "check") << ").\n";
  } else {
    out << Counted(broken, "check") << " of " << findings_.size() << " failed.\n";
  }
}

std::string VerifyReport::Json() const {
  nlohmann::ordered_json json;
  json["version"] = ENCORE_VERSION_STRING;
  json["mode"] = full_ ? "full" : "quick";
  json["targets"] = targets_;
  if (!only_.empty()) {
    for (const VerifySection section : only_) json["only"].push_back(TextOf(section).name);
  }
  json["kept"] = Broken() == 0;
  json["broken"] = Broken();
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings_) {
    nlohmann::ordered_json entry;
    entry["section"] = TextOf(finding.section).name;
    entry["check"] = finding.check;
    entry["target"] = finding.target;
    entry["kept"] = finding.kept;
    switch (finding.section) {
      case VerifySection::kFunctions:
      case VerifySection::kOperations:
        // JSON has no infinity; nlohmann writes null for it.
        entry["error"] = finding.observed;
        entry["promise"] = finding.promise;
        break;
      case VerifySection::kBits:
        entry["comparisons"] = finding.observed;
        break;
      case VerifySection::kPublished:
        entry["hash"] = Hex(finding.hash);
        break;
    }
    if (!finding.detail.empty()) entry["detail"] = finding.detail;
    json["findings"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
