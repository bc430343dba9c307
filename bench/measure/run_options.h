// SPDX-License-Identifier: Apache-2.0
//
// The options that `encore bench` and the benchmarks share: threads, cores and SIMD target.

#ifndef ENCORE_BENCH_MEASURE_RUN_OPTIONS_H_
#define ENCORE_BENCH_MEASURE_RUN_OPTIONS_H_

#include <string>
#include <vector>

#include "encore/status.h"

namespace encore::bench {

struct RunOptions {
  std::vector<std::string> threads = {"1", "all"};
  std::string executor = "pool";
  int idle_spin = 0;  // us
  std::string target;
  std::vector<std::string> cpus;  // as ChooseCpus has them; empty: all

  // Makes cores, target and executor those of the process, and returns the thread counts, each
  // once: "all" are all usable cores, or all threads that OpenMP gives, and "1..all" all numbers up
  // to that. Errors name the option.
  Result<std::vector<int>> Apply() const;
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_RUN_OPTIONS_H_
