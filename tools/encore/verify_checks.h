// SPDX-License-Identifier: Apache-2.0
//
// The checks of `encore verify`, and what they find: one finding for each check and SIMD target, as
// a table for people and as JSON. Each check adds its findings for all targets; the best SIMD
// target is active before and after.

#ifndef ENCORE_TOOLS_ENCORE_VERIFY_CHECKS_H_
#define ENCORE_TOOLS_ENCORE_VERIFY_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "encore/precision.h"
#include "tools/encore/progress.h"

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

struct VerifyContext {
  bool full = false;
  uint64_t step = 1;                 // every step-th float is tried on the best target and AVX2
  uint64_t others_step = 1;          // and on the others
  std::set<std::string> functions;   // that are tried; empty: all
  size_t batches = 0;                // random ones of each model; 0: by the mode
  std::set<Precision> precisions;    // of the blocks whose bits are compared
  std::vector<std::string> targets;  // those that this machine can run, best first
  VerifyReport& report;
  Progress& progress;
  std::string& markdown;  // tables of what was found go to its end
};

// Calls body(target) with each target active; then the best is active again.
void ForEachVerifyTarget(const VerifyContext& context,
                         const std::function<void(const std::string&)>& body);

// Names that VerifyContext::functions may have.
std::vector<std::string> FunctionNames();

void VerifyFunctions(const VerifyContext& context);    // verify_functions.cc
void VerifyConversions(const VerifyContext& context);  // verify_functions.cc
void VerifyOperations(const VerifyContext& context);   // verify_operations.cc
void VerifyOrder(const VerifyContext& context);        // verify_order.cc
void VerifyBits(const VerifyContext& context);         // verify_bits.cc
void VerifyPublished(const VerifyContext& context);    // verify_order.cc

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VERIFY_CHECKS_H_
