// SPDX-License-Identifier: Apache-2.0
//
// What a figure must be quoted with: machine, build, time, how threads wait. Not here: figures.

#ifndef ENCORE_BENCH_MEASURE_CONTEXT_H_
#define ENCORE_BENCH_MEASURE_CONTEXT_H_

#include <string>
#include <utility>
#include <vector>

namespace encore::bench {

// "AMD EPYC 9B45 64-Core Processor"; "unknown" where the system does not tell.
std::string CpuModel();

// "g++ 12.2.0".
std::string Compiler();

// How OpenMP's threads wait between calls: which variables of the environment order it, or that
// they sleep.
std::string WaitPolicy();

// Where they run, likewise.
std::string Binding();

// Name and value of each: version, date (UTC), cpu, caches, cores, compiler, target, wait_policy,
// binding.
std::vector<std::pair<std::string, std::string>> Context();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_CONTEXT_H_
