// SPDX-License-Identifier: Apache-2.0
//
// The checks of `encore verify`, one .cc each. Each adds its findings for all targets. The best
// SIMD target is active before and after. Not here: how findings are shown (verify_report.h).

#ifndef ENCORE_TOOLS_ENCORE_VERIFY_CHECKS_H_
#define ENCORE_TOOLS_ENCORE_VERIFY_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "encore/precision.h"
#include "tools/encore/progress.h"
#include "tools/encore/verify_report.h"

namespace encore::tool {

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
