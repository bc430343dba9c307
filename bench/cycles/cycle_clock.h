// SPDX-License-Identifier: Apache-2.0
//
// Times short pieces of work in cycles of the core. What a cycle lasts is measured beside them, by
// a chain of dependent additions, so that no clock rate is assumed. Not here: what is timed, and
// figures related to the peak (measure/samples.h).

#ifndef ENCORE_BENCH_CYCLES_CYCLE_CLOCK_H_
#define ENCORE_BENCH_CYCLES_CYCLE_CLOCK_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

namespace encore::bench {

// One of several ways to do the same work.
struct Contender {
  // Does piece i of the work. Pieces of 10 to 50 us are best: short against the system's time
  // slices, long against the clock's resolution. Work of a single shorter piece is repeated.
  std::function<void(size_t)> run;
  size_t pieces = 1;
  // Called before the pieces, or a single piece and its repetitions; not timed. May be empty.
  std::function<void()> prepare;
  size_t most_calls = std::numeric_limits<size_t>::max();  // between two calls of prepare
};

// Cycles that each contender takes for its work: the least of many samples, of each piece by
// itself, so that other work on the machine hardly shows. Contenders take turns, so clocks that
// change meet all of them. Takes about `seconds` for each.
std::vector<double> LeastCycles(const std::vector<Contender>& contenders, double seconds);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_CYCLES_CYCLE_CLOCK_H_
