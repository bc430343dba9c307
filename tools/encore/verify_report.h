// SPDX-License-Identifier: Apache-2.0
//
// What `encore verify` found: one finding for each check and SIMD target, as a table for people and
// as JSON. Not here: the checks (verify_checks.h).

#ifndef ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_
#define ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace encore::tool {

enum class VerifySection {
  kFunctions,   // largest errors in ulp
  kOperations,  // largest errors as shares of their bounds
  kBits,        // equal bits, in so many comparisons
  kPublished,   // hashes
};

// As the JSON and the command line call them: "functions", "operations", "bits", "published".
std::optional<VerifySection> SectionNamed(std::string_view name);

struct Finding {
  VerifySection section = VerifySection::kBits;
  std::string check;   // what was tried, the table's row: "exp", "matmul", "threads: OpenMP"
  std::string target;  // the SIMD target, the table's column
  bool kept = true;
  double observed = 0;  // an error (kFunctions, kOperations) or a number of comparisons (kBits)
  double promise = 0;   // what an error may be
  uint64_t hash = 0;    // kPublished: what was computed
  // Where the largest error is; what broke, if it did.
  std::string detail;
};

class VerifyReport {
 public:
  // `only` are the sections that are tried; all of them where it is empty.
  VerifyReport(bool full, std::vector<std::string> targets, std::vector<VerifySection> only = {})
      : full_(full), targets_(std::move(targets)), only_(std::move(only)) {}

  void Add(Finding finding) { findings_.push_back(std::move(finding)); }
  bool full() const { return full_; }
  const std::vector<std::string>& targets() const { return targets_; }
  const std::vector<Finding>& findings() const { return findings_; }
  size_t Broken() const;

  // A table a section, with a row a check and a column a target, then a sentence for each check
  // that failed, with its targets and what the first of them found.
  void Print(std::ostream& out, bool colour) const;
  std::string Json() const;

 private:
  void PrintSection(std::ostream& out, VerifySection section, bool colour) const;
  void PrintBroken(std::ostream& out) const;

  bool full_;
  std::vector<std::string> targets_;
  std::vector<VerifySection> only_;
  std::vector<Finding> findings_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_
