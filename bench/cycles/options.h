// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks that print a table of cycles have in common: their flags, the loop over SIMD
// targets, and where their figures go beside the table. Not here: the tables.

#ifndef ENCORE_BENCH_CYCLES_OPTIONS_H_
#define ENCORE_BENCH_CYCLES_OPTIONS_H_

#include <string>

#include "encore/status.h"
#include "nlohmann/json.hpp"

namespace encore::bench {

struct CycleBenchmark {
  const char* name;
  const char* what;    // --help begins with it
  const char* legend;  // above the tables
  // Prints the tables of the active target, with so many seconds for each figure, and appends the
  // figures to rows.
  void (*run)(const std::string& target, double seconds, nlohmann::ordered_json* rows);
};

// Reads the flags, binds the process to a core, prints what the figures must be quoted with, runs
// the benchmark on each target and writes the file of figures, if one is wanted. Returns the exit
// status; ends the process with a sentence if a flag is wrong or the file cannot be written.
int RunCycleBenchmark(int argc, char** argv, const CycleBenchmark& benchmark) noexcept;

// The value; ends the process with the message if there is none.
[[noreturn]] void Fail(const std::string& sentence, int exit_status);
template <typename T>
T OrFail(Result<T> result) {
  if (!result.ok()) Fail(result.status().message(), 1);
  return *std::move(result);
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_OPTIONS_H_
