// SPDX-License-Identifier: Apache-2.0
//
// The tables and the JSON of `encore verify`.

#include "tools/encore/verify_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

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
    {VerifySection::kConversions, "conversions", "Conversions: numbers that came out right",
     "a number is not the nearest one"},
    {VerifySection::kBits, "bits", "The same bits: comparisons that held",
     "bits differ that were promised to be equal"},
    {VerifySection::kPublished, "published", "Published hashes",
     "not the bits that every machine was promised"},
};

const SectionText& TextOf(VerifySection section) {
  return *std::find_if(std::begin(kSections), std::end(kSections),
                       [&](const SectionText& text) { return text.section == section; });
}

bool IsError(VerifySection section) {
  return section == VerifySection::kFunctions || section == VerifySection::kOperations;
}

std::string CellText(const Finding& finding) {
  if (IsError(finding.section)) {
    return (std::isfinite(finding.observed) ? Number(finding.observed, 3) : "inf") +
           (finding.kept ? "" : "!");
  }
  if (!finding.kept) return "BROKEN";
  return finding.section == VerifySection::kPublished ? "ok" : Grouped(finding.observed);
}

void AddName(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

template <class Findings>
auto* Find(Findings& findings, VerifySection section, const std::string& check,
           const std::string& target) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.section == section && finding.check == check && finding.target == target;
  });
  return found == findings.end() ? nullptr : &*found;
}

// "1", "1 [1.25]" where targets differ.
std::string PromiseText(const std::deque<Finding>& findings, VerifySection section,
                        const std::string& check) {
  std::vector<std::string> promises;
  for (const Finding& finding : findings) {
    if (finding.section != section || finding.check != check) continue;
    AddName(promises, Formatted("%g", finding.promise));
  }
  std::string text = promises[0];
  for (size_t i = 1; i < promises.size(); ++i) text += " [" + promises[i] + "]";
  return text;
}

}  // namespace

std::string SectionName(VerifySection section) { return TextOf(section).name; }

Finding& VerifyReport::Bits(const std::string& check, const std::string& target) {
  if (Finding* found = Find(findings_, VerifySection::kBits, check, target)) return *found;
  return findings_.emplace_back(Finding{.check = check, .target = target});
}

size_t VerifyReport::Broken() const {
  return static_cast<size_t>(std::count_if(findings_.begin(), findings_.end(),
                                           [](const Finding& finding) { return !finding.kept; }));
}

void VerifyReport::PrintSection(std::ostream& out, VerifySection section, bool colour) const {
  std::vector<std::string> checks;  // rows, in the order in which they came
  std::vector<std::string> columns = targets_;
  size_t check_width = 0;
  size_t cell_width = 11;
  for (const Finding& finding : findings_) {
    if (finding.section != section) continue;
    AddName(checks, finding.check);
    AddName(columns, finding.target);
    check_width = std::max(check_width, DisplayWidth(finding.check));
    cell_width = std::max(cell_width, CellText(finding).size() + 2);
  }
  if (checks.empty()) return;
  for (const std::string& column : columns) cell_width = std::max(cell_width, column.size() + 2);

  constexpr size_t kPromiseWidth = 12;
  const bool promises = IsError(section);
  out << TextOf(section).title << "\n  " << PadRight("", check_width);
  if (promises) out << PadLeft("promise", kPromiseWidth);
  for (const std::string& column : columns) out << PadLeft(column, cell_width);
  out << "\n";
  for (const std::string& check : checks) {
    out << "  " << PadRight(check, check_width);
    if (promises) out << PadLeft(PromiseText(findings_, section, check), kPromiseWidth);
    for (const std::string& column : columns) {
      const Finding* cell = Find(findings_, section, check, column);
      const std::string text = PadLeft(cell == nullptr ? "-" : CellText(*cell), cell_width);
      const bool mark = cell != nullptr && !cell->kept && colour;
      out << (mark ? "\x1b[1;31m" + text + "\x1b[0m" : text);
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
  if (!only_.empty()) json["only"] = only_;
  json["kept"] = Broken() == 0;
  json["broken"] = Broken();
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings_) {
    nlohmann::ordered_json entry;
    entry["section"] = TextOf(finding.section).name;
    entry["check"] = finding.check;
    entry["target"] = finding.target;
    entry["kept"] = finding.kept;
    if (IsError(finding.section)) {
      // JSON has no infinity; nlohmann writes null for it.
      entry["error"] = finding.observed;
      entry["promise"] = finding.promise;
    } else if (finding.section == VerifySection::kPublished) {
      char hash[24];
      std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(finding.hash));
      entry["hash"] = hash;
    } else {
      entry["comparisons"] = finding.observed;
    }
    if (finding.step != 0) entry["step"] = finding.step;
    if (!finding.detail.empty()) entry["detail"] = finding.detail;
    json["findings"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace encore::tool
