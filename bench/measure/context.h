// SPDX-License-Identifier: Apache-2.0
//
// What a figure must be quoted with: machine, build, time, where threads come from and how they
// wait (threads.h).

#ifndef ENCORE_BENCH_MEASURE_CONTEXT_H_
#define ENCORE_BENCH_MEASURE_CONTEXT_H_

#include <string>
#include <utility>
#include <vector>

namespace encore::bench {

// "g++ 12.2.0".
std::string Compiler();

// The sources' as git describes them when the build is configured: "v0.1.0-12-g0b7bc5d",
// "0b7bc5dc1a2b-dirty"; "" where they are no git repository.
std::string SourceCommit();
// "-O3 -DNDEBUG -ffp-contract=off": options of the build that name no path.
std::string CompilerFlags();

// "2026-11-23T05:10:52Z".
std::string Now();

// "x86_64", "Linux 6.1.0-18-amd64", or "unknown".
std::string Architecture();
std::string OperatingSystem();

// How threads wait between calls; of OpenMP's, which variables of the environment order it, or that
// they sleep.
std::string WaitPolicy();

// Where they run, likewise.
std::string Binding();

// Name and value of each: version and commit, date (UTC), cpu, caches, cores, compiler and flags,
// target, executor, idle_spin (of a pool), wait_policy, binding. One thread is always the calling
// one.
std::vector<std::pair<std::string, std::string>> Context();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_CONTEXT_H_
