// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: floats through the search of reference/exhaustive, some millions of them or all.
// The errors of the functions, of the activations inside a block and of softmax's exponential,
// their order, special values and equal bits; conversions to bf16 and f16 and back; and the tables
// of the largest errors in docs/accuracy.md.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tools/encore/definitions.h"
#include "tools/encore/text.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {
namespace {

// The list of the worst floats in a finding's detail.
constexpr size_t kWorstShown = 3;

std::string FloatText(float x) { return Formatted("%.9g", static_cast<double>(x)); }

std::string PlaceText(const Peak& peak) {
  return peak.error == 0 ? "" : "f(" + FloatText(peak.x) + ") = " + FloatText(peak.y);
}

std::string FirstText(const Count& count) {
  return count.times == 0 ? "" : "first at " + FloatText(std::bit_cast<float>(count.first_bits));
}

// "1.84 ulp at f(15.6) = 15.7; elsewhere 1.83 at 4.5"
std::string WorstText(const Measure& measure, const std::vector<Peak>& peaks) {
  if (peaks.empty()) return "";
  std::string text = Formatted("%.4f ", peaks[0].error) + measure.name +
                     (measure.allowance.empty() ? "" : ", ") + measure.allowance + " at " +
                     PlaceText(peaks[0]);
  for (size_t i = 1; i < std::min(kWorstShown, peaks.size()); ++i) {
    text += (i == 1 ? "; elsewhere " : ", ") + Formatted("%.4f at ", peaks[i].error) +
            FloatText(peaks[i].x);
  }
  return text;
}

void AddFindings(VerifyReport& report, const Subject& subject, const TargetResult& result) {
  Finding finding{.section = VerifySection::kFunctions,
                  .check = subject.name(),
                  .target = result.target,
                  .step = result.step};
  const auto add = [&](const std::string& what, double observed, double promise,
                       const std::string& detail) {
    finding.check = subject.name() + what;
    finding.kept = observed <= promise;
    finding.observed = observed;
    finding.promise = promise;
    finding.detail = detail;
    report.Add(finding);
  };
  for (size_t m = 0; m < subject.measures().size(); ++m) {
    const Measure& measure = subject.measures()[m];
    const double promise = result.fma ? measure.promise : measure.promise_no_fma;
    if (std::isinf(promise)) continue;
    add(m == 0 ? "" : ", " + measure.name, result.worst[m].error, promise,
        m == 0 ? WorstText(measure, result.peaks) : PlaceText(result.worst[m]));
  }
  if (subject.monotone()) {
    add(", falls", static_cast<double>(result.falls.times), 0, FirstText(result.falls));
  }
  // Special values that are right are not worth a line.
  if (result.wrong_special.times != 0) {
    add(", special values", static_cast<double>(result.wrong_special.times), 0,
        FirstText(result.wrong_special));
  }
  if (result.same_as.empty()) return;
  Finding& bits = report.Bits("functions on targets with FMA", result.target);
  const uint64_t tried = kAllFloats / result.step / (subject.non_positive_only() ? 2 : 1);
  bits.observed += static_cast<double>(tried);
  if (result.differs.times == 0) return;
  bits.kept = false;
  bits.detail +=
      (bits.detail.empty() ? "" : ", ") + subject.name() + " " + FirstText(result.differs);
}

// That the search's own reference is what it should be is a line only where it is not.
void CheckReference(VerifyReport& report, const Subject& subject, const std::string& target) {
  constexpr uint64_t kStep = 65537 * 2 - 1;
  const double error = LargestFastError(subject, kStep);
  if (error <= kFastError) return;
  report.Add({.section = VerifySection::kFunctions,
              .check = subject.name() + ", the search's own reference",
              .target = target,
              .kept = false,
              .observed = error,
              .promise = kFastError,
              .step = kStep});
}

// ---- Markdown --------------------------------------------------------------------------------

using Results = std::vector<TargetResult>;

// Of the targets with FMA those that were tried most densely, or those without.
Results TableTargets(const Results& results, bool fma) {
  uint64_t least = UINT64_MAX;
  for (const TargetResult& result : results) least = std::min(least, result.step);
  Results chosen;
  std::copy_if(results.begin(), results.end(), std::back_inserter(chosen), [&](const auto& result) {
    return result.fma == fma && (!fma || result.step == least);
  });
  return chosen;
}

std::string TargetsText(const Results& targets) {
  if (targets.empty()) return "none";
  std::vector<std::string> names;
  for (const TargetResult& result : targets) names.push_back(result.target);
  const uint64_t step = targets.front().step;
  return Joined(names) + " (" + (step == 1 ? "all floats" : "1 float in " + std::to_string(step)) +
         ")";
}

// The largest error of a measure. In ulps it is rounded up: what the table says is not exceeded.
std::string LargestText(const Results& targets, size_t measure) {
  if (targets.empty()) return "-";
  double largest = 0;
  for (const TargetResult& result : targets) {
    largest = std::max(largest, result.worst[measure].error);
  }
  const bool tiny = largest != 0 && largest < 1e-3;
  return tiny ? Formatted("%.1e", largest) : Formatted("%.2f", std::ceil(largest * 100) / 100);
}

std::string MonotoneText(const Subject& subject, const Results& results) {
  const bool falls = std::any_of(results.begin(), results.end(), [](const TargetResult& result) {
    return result.falls.times != 0;
  });
  if (subject.monotone()) return falls ? "BROKEN" : "yes, promised";
  return falls ? "no" : "yes";
}

// A subject's line of its family's table, after the head of the table if it is the first one.
std::string MarkdownRow(const Subject& subject, const Results& results, bool first) {
  const Results fma = TableTargets(results, true);
  const Results other = TableTargets(results, false);
  const Measure& main = subject.measures()[0];
  std::string text;
  if (first) {
    constexpr const char* kTitles[] = {"function", "in a block", "in softmax"};
    text = "\n" + TargetsText(fma) + "; without FMA " + TargetsText(other) + ":\n\n| " +
           kTitles[static_cast<size_t>(subject.family())] + " | " + main.name + " | promised |";
    std::string rule = "\n|---|---|---|";
    for (size_t m = 1; m < subject.measures().size(); ++m) {
      text += " " + subject.measures()[m].name + " |";
      rule += "---|";
    }
    text += " without FMA | promised | monotone |" + rule + "---|---|---|\n";
  }
  std::string allowance;
  for (const char c : main.allowance)
    allowance += c == '|' ? std::string("\\|") : std::string(1, c);
  if (!allowance.empty()) allowance = " " + allowance;
  text += "| " + subject.name() + " | " + LargestText(fma, 0) + " | " +
          Formatted("%g", main.promise) + allowance + " |";
  for (size_t m = 1; m < subject.measures().size(); ++m) text += " " + LargestText(fma, m) + " |";
  return text + " " + LargestText(other, 0) + " | " + Formatted("%g", main.promise_no_fma) +
         allowance + " | " + MonotoneText(subject, results) + " |\n";
}

}  // namespace

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names;
  for (const auto& subject : AllSubjects()) names.push_back(subject->name());
  return names;
}

void VerifyFunctions(const VerifyContext& context) {
  const std::vector<TargetKernels> targets = AllTargetKernels();
  std::vector<std::unique_ptr<Subject>> subjects = AllSubjects();
  std::erase_if(subjects, [&](const auto& subject) {
    return !context.functions.empty() && !context.functions.contains(subject->name());
  });
  const SearchPlan plan{.step = context.step,
                        .others_step = context.others_step,
                        .hard = context.full ? 400000 : 100000};
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject& subject = *subjects[i];
    const Results results = Search(subject, targets, plan, [&](double share) {
      context.progress.Advance(
          (static_cast<double>(i) + share) / static_cast<double>(subjects.size()), subject.name());
    });
    for (const TargetResult& result : results) AddFindings(context.report, subject, result);
    CheckReference(context.report, subject, targets.front().name);
    const bool first = i == 0 || subjects[i - 1]->family() != subject.family();
    context.markdown += MarkdownRow(subject, results, first);
  }
}

void VerifyConversions(const VerifyContext& context) {
  const std::vector<Conversion> conversions = AllConversions();
  for (size_t i = 0; i < conversions.size(); ++i) {
    const Conversion& conversion = conversions[i];
    const auto advance = [&](double share) {
      context.progress.Advance((static_cast<double>(i) + share) /
                               static_cast<double>(conversions.size()));
    };
    const uint64_t floats = conversion.Floats(context.step);
    const Count wrong = WrongOf(conversion, context.step, advance);
    char detail[64] = "";
    if (wrong.times != 0) {
      std::snprintf(detail, sizeof(detail), "%llu wrong, first at 0x%08x",
                    static_cast<unsigned long long>(wrong.times), wrong.first_bits);
    }
    context.report.Add({.section = VerifySection::kConversions,
                        .check = conversion.what,
                        .target = conversion.target,
                        .kept = wrong.times == 0,
                        .observed = static_cast<double>(floats),
                        .step = conversion.Step(context.step),
                        .detail = detail});
  }
}

}  // namespace encore::tool
