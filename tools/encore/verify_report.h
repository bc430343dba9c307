// SPDX-License-Identifier: Apache-2.0
//
// What `encore verify` found: one finding for each check and SIMD target, as a table for people and
// as JSON. Not here: the checks (verify_checks.h).

#ifndef ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_
#define ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace encore::tool {

enum class VerifySection {
  kFunctions,    // largest errors in ulp
  kOperations,   // largest errors as shares of their bounds
  kConversions,  // of so many numbers
  kBits,         // equal bits, in so many comparisons
  kPublished,    // hashes
};

// As the JSON and the command line call it: "functions", "operations" and so on.
std::string SectionName(VerifySection section);

struct Finding {
  VerifySection section = VerifySection::kBits;
  std::string check;   // what was tried, the table's row: "exp", "matmul", "threads: OpenMP"
  std::string target;  // the SIMD target, the table's column
  bool kept = true;
  double observed = 0;  // an error (kFunctions, kOperations) or a number of comparisons
  double promise = 0;   // what an error may be
  uint64_t step = 0;    // kFunctions, kConversions: every step-th float was tried
  uint64_t hash = 0;    // kPublished: what was computed
  // Where the largest error is; what broke, if it did.
  std::string detail{};

  // One more comparison; `where` is told of the first that is not the same.
  void Compare(bool same, const std::string& where) {
    ++observed;
    if (!same && std::exchange(kept, false)) detail = where;
  }
};

class VerifyReport {
 public:
  // `only` names the sections that are tried; all of them where it is empty.
  VerifyReport(bool full, std::vector<std::string> targets, std::set<std::string> only = {})
      : full_(full), targets_(std::move(targets)), only_(std::move(only)) {}

  void Add(Finding finding) { findings_.push_back(std::move(finding)); }
  // The finding of a check of kBits, added when it is first asked for. It stays where it is.
  Finding& Bits(const std::string& check, const std::string& target);
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
  std::set<std::string> only_;
  std::deque<Finding> findings_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VERIFY_REPORT_H_
