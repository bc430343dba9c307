// SPDX-License-Identifier: Apache-2.0
//
// The flags of the benchmarks that print a table of cycles, and where their figures go beside it.
// Not here: the tables.

#ifndef ENCORE_BENCH_CYCLES_OPTIONS_H_
#define ENCORE_BENCH_CYCLES_OPTIONS_H_

#include <string>
#include <vector>

#include "encore/status.h"
#include "nlohmann/json.hpp"

namespace encore::bench {

struct CycleOptions {
  std::vector<std::string> targets;  // SIMD targets that this machine can run
  double seconds;                    // for each figure
  std::string json;                  // a file, or empty
};

// Reads the flags, binds the process to a core and prints what the figures must be quoted with.
// Ends the process with a sentence if a flag is wrong, or after --help, which begins with `what`.
CycleOptions ParseCycleOptions(int argc, char** argv, const std::string& what);

// Ends the process with a sentence if there is a file to write and that fails.
void WriteFigures(const CycleOptions& options, const nlohmann::ordered_json& rows);

// The value; ends the process with the message if there is none.
[[noreturn]] void Fail(const std::string& sentence, int exit_status);
template <typename T>
T OrFail(Result<T> result) {
  if (!result.ok()) Fail(result.status().message(), 1);
  return *std::move(result);
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_OPTIONS_H_
