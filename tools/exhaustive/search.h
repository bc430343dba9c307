// SPDX-License-Identifier: Apache-2.0
//
// Tries all floats, or every n-th and those that are known to be hard, on one subject and many SIMD
// targets: the largest errors, equal bits between targets, order, special values. Not here: what is
// promised (subject.h) and how it is shown (report.h, `encore verify`).

#ifndef ENCORE_TOOLS_EXHAUSTIVE_SEARCH_H_
#define ENCORE_TOOLS_EXHAUSTIVE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/exhaustive/subject.h"

namespace encore::tool {

inline constexpr uint64_t kAllFloats = uint64_t{1} << 32;

struct Peak {
  double error = 0;
  float x = 0;
  float y = 0;
};

// How often something happened, and the first time in the order of bits.
struct Count {
  uint64_t times = 0;
  uint32_t first_bits = UINT32_MAX;
};

struct TargetResult {
  std::string target;
  bool fma = false;
  uint64_t step = 1;        // every step-th float was tried
  std::vector<Peak> worst;  // of each measure, by the C library
  std::vector<Peak> peaks;  // of the first measure, the worst of each binade, largest first
  Peak jump;                // largest difference of the errors of neighbours, in ulps
  Count falls;              // f(next x) < f(x) where the subject rises
  Count differs;            // bits that are not those of `same_as`
  std::string same_as;      // the first target with FMA; empty for it and for those without
  Count wrong_special;
};

struct SearchPlan {
  uint64_t step = 1;              // on the best target and AVX2
  uint64_t others_step = 1;       // on the others; `step` if that is larger
  std::span<const float> hard{};  // tried as well, and thousands of consecutive floats around the
  size_t stretches = 0;           // first so many of them
};

// In the order of targets. progress(share), if given, is called from the calling thread with what
// is done, in [0, 1]. Uses all usable cores.
std::vector<TargetResult> Search(const Subject& subject, const std::vector<TargetKernels>& targets,
                                 const SearchPlan& plan,
                                 const std::function<void(double)>& progress = {});

// The largest error of Subject::FastExact, relative to the exact result or to the smallest
// subnormal, over every step-th float.
double LargestFastError(const Subject& subject, uint64_t step);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_EXHAUSTIVE_SEARCH_H_
