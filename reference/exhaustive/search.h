// SPDX-License-Identifier: Apache-2.0
//
// Tries all floats, or every n-th and those that are known to be hard, on one subject and many SIMD
// targets: the largest errors, equal bits between targets, order, special values.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_SEARCH_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reference/exhaustive/subject.h"
#include "reference/exhaustive/walk.h"

namespace encore::tool {

struct Peak {
  double error = 0;
  float x = 0;
  float y = 0;
};

struct TargetResult {
  std::string target;
  bool fma = false;
  uint64_t step = 1;        // every step-th float was tried
  std::vector<Peak> worst;  // of each measure, by the C library
  std::vector<Peak> peaks;  // of the first measure, the worst of each binade, largest first
  Count falls;              // f(next x) < f(x) where the subject rises
  Count differs;            // bits that are not those of `same_as`
  std::string same_as;      // the first target with FMA; empty for it and for those without
  Count wrong_special;
};

struct SearchPlan {
  uint64_t step = 1;         // on the best target and AVX2
  uint64_t others_step = 1;  // on the others; `step` if that is larger
  // reference::HardFloats of so many are tried as well, and thousands of consecutive floats around
  // each one of the list.
  int hard = 100000;
};

// In the order of targets.
std::vector<TargetResult> Search(const Subject& subject, const std::vector<TargetKernels>& targets,
                                 const SearchPlan& plan, const OnProgress& progress = {});

// The largest error of Subject::FastExact, relative to the exact result or to the smallest
// subnormal, over every step-th float.
double LargestFastError(const Subject& subject, uint64_t step);

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_SEARCH_H_
