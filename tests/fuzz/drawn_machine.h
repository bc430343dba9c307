// SPDX-License-Identifier: Apache-2.0
//
// On what a drawn call runs: one of the SIMD targets that this machine supports, and whose threads.

#ifndef ENCORE_TESTS_FUZZ_DRAWN_MACHINE_H_
#define ENCORE_TESTS_FUZZ_DRAWN_MACHINE_H_

#include <string>

#include "encore/executor.h"
#include "tests/support/drawn_config.h"

namespace encore::fuzz {

// A drawn target is the active one as long as this lives, the best one afterwards.
class DrawnTarget {
 public:
  explicit DrawnTarget(Draw& draw);
  ~DrawnTarget();
  DrawnTarget(const DrawnTarget&) = delete;
  DrawnTarget& operator=(const DrawnTarget&) = delete;

  const std::string& name() const { return *name_; }
  bool has_fma() const;
  // Makes another one active that promises the same bits; this one again where there is none.
  void UseTwin(Draw& draw) const;
  void UseThis() const;

 private:
  const std::string* name_;
};

// Inline in most draws; else encore's pool of two threads, or a host's that has none.
Executor DrawExecutor(Draw& draw);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_DRAWN_MACHINE_H_
