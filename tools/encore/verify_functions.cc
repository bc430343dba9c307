// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: the errors of the functions, of the activations inside a block and of softmax's
// exponential, their order, special values and equal bits, over some millions of floats or all of
// them: the search of tools/exhaustive.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/hard_floats.h"
#include "tools/encore/verify_checks.h"
#include "tools/exhaustive/rows.h"
#include "tools/exhaustive/search.h"

namespace encore::tool {
namespace {

constexpr double kSecondsQuick = 0.5;
constexpr double kSecondsFull = 20;

// Where all floats are tried on the best target and AVX2, every so many-th is on the others.
constexpr uint64_t kOthersStep = 251;

// The list of the worst floats in a finding's detail.
constexpr size_t kWorstShown = 3;

std::string WorstText(const std::vector<Peak>& peaks) {
  std::string text;
  for (size_t i = 1; i < std::min(kWorstShown, peaks.size()); ++i) {
    char number[64];
    std::snprintf(number, sizeof(number), "%s%.4f at %.9g", text.empty() ? "" : ", ",
                  peaks[i].error, static_cast<double>(peaks[i].x));
    text += number;
  }
  return text.empty() ? "" : "; elsewhere " + text;
}

std::string DetailOf(const Row& row, const std::vector<Peak>& peaks) {
  std::string text = PlaceText(row);
  if (row.kind == RowKind::kError && row.what[0] != ' ') {
    char number[64];
    std::snprintf(number, sizeof(number), "%.4f %s at ", row.observed, row.what.c_str());
    text = number + text + WorstText(peaks);
  }
  return text;
}

// "tile_gelu, before the last rounding"
std::string CheckName(const Row& row) {
  switch (row.kind) {
    case RowKind::kError:
      return row.what[0] == ' ' ? row.function + "," + row.what.substr(1) : row.function;
    case RowKind::kFalls:
      return row.function + ", falls";
    case RowKind::kSpecial:
      return row.function + ", special values";
    default:
      return row.function;
  }
}

// Equal bits of all functions, a finding a target.
class BitsFindings {
 public:
  void Add(const Row& row, uint64_t compared) {
    auto found = std::find_if(findings_.begin(), findings_.end(),
                              [&](const Finding& finding) { return finding.target == row.target; });
    if (found == findings_.end()) {
      findings_.push_back({.section = VerifySection::kBits,
                           .check = "functions on targets with FMA",
                           .target = row.target,
                           .detail = ""});
      found = findings_.end() - 1;
    }
    found->observed += static_cast<double>(compared);
    if (row.kept()) return;
    found->kept = false;
    found->detail += (found->detail.empty() ? "" : ", ") + row.function + " " + PlaceText(row);
  }
  void AddTo(VerifyReport& report) const {
    for (const Finding& finding : findings_) report.Add(finding);
  }

 private:
  std::vector<Finding> findings_;
};

void AddFindings(const VerifyContext& context, const Subject& subject,
                 const std::vector<TargetResult>& results, BitsFindings& bits) {
  for (const Row& row : RowsOf(subject, results)) {
    if (!row.promised()) continue;
    if (row.kind == RowKind::kBits) {
      bits.Add(row, kAllFloats / row.step / (subject.non_positive_only() ? 2 : 1));
      continue;
    }
    // Special values that are right are not worth a line.
    if (row.kind == RowKind::kSpecial && row.kept()) continue;
    const auto result =
        std::find_if(results.begin(), results.end(),
                     [&](const TargetResult& candidate) { return candidate.target == row.target; });
    const std::vector<Peak> peaks = result == results.end() ? std::vector<Peak>{} : result->peaks;
    context.report.Add({.section = VerifySection::kFunctions,
                        .check = CheckName(row),
                        .target = row.target,
                        .kept = row.kept(),
                        .observed = row.observed,
                        .promise = row.promise,
                        .detail = DetailOf(row, peaks)});
  }
}

}  // namespace

double FunctionsWork(bool full) {
  return static_cast<double>(AllSubjects().size()) * (full ? kSecondsFull : kSecondsQuick);
}

void VerifyFunctions(const VerifyContext& context) {
  const std::vector<TargetKernels> targets = AllTargetKernels();
  const std::vector<std::unique_ptr<Subject>> subjects = AllSubjects();
  const std::vector<float> hard = reference::HardFloats(context.full ? 400000 : 100000);
  const SearchPlan plan{.step = context.step,
                        .others_step = context.full ? kOthersStep : context.step,
                        .hard = hard,
                        .stretches = std::size(reference::kHardFloats)};
  BitsFindings bits;
  for (const std::unique_ptr<Subject>& subject : subjects) {
    context.progress.Begin(subject->name(),
                           FunctionsWork(context.full) / static_cast<double>(subjects.size()));
    const auto advance = [&](double share) { context.progress.Advance(share); };
    AddFindings(context, *subject, Search(*subject, targets, plan, advance), bits);
  }
  bits.AddTo(context.report);
}

}  // namespace encore::tool
