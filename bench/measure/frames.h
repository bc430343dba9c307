// SPDX-License-Identifier: Apache-2.0
//
// Calls in a rhythm: a loop with a deadline, in each frame one call, then fixed integer work, then
// a wait until the next frame begins; or a server, whose calls arrive whether or not it is free.

#ifndef ENCORE_BENCH_MEASURE_FRAMES_H_
#define ENCORE_BENCH_MEASURE_FRAMES_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "bench/measure/os.h"

namespace encore::bench {

void SleepFor(double seconds);

struct FrameLoop {
  int hz = 0;  // frames a second; 0: one after another
  size_t frames = 0;
  // Seconds. The loop ends once p99 of its calls can no longer be below.
  double most = std::numeric_limits<double>::infinity();
  // Of a server, which does no integer work. Calls at once: 1 is the calling thread, more are
  // threads that are bound to a core each. They take calls in the order in which these arrive.
  std::optional<size_t> callers = {};
  // When each call arrives, seconds after the start, which its time is counted from, however long
  // it waits for its turn. Empty: they are there all the time, and count from their turn.
  std::vector<double> arrivals = {};
  // Another clock than the system's, of a simulation.
  std::function<double()> now = WallSeconds;
  std::function<void(double)> sleep = SleepFor;
};

struct FrameTimes {
  std::vector<double> calls;    // seconds of each frame's call
  std::vector<double> control;  // and of its integer work, about kControlSeconds; none of a server
  size_t late = 0;              // calls that took longer than a frame
  double seconds = 0;           // of the whole loop
  // Of the whole process, a frame's.
  ProcessCounts counts;
  std::optional<double> allocations;  // calls of operator new; nothing if not counted
};

inline constexpr double kControlSeconds = 0.5e-3;

// call(i, caller) is that of frame i, made by one of loop.callers. A frame that is late delays
// those behind it; an arrival does not. Rethrows what call throws.
FrameTimes RunFrames(const FrameLoop& loop,
                     const std::function<void(size_t i, size_t caller)>& call);

// Of Poisson's process with so many arrivals a second: the same ones each time, whatever the rate
// but for their scale.
std::vector<double> PoissonArrivals(size_t count, double rate);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_FRAMES_H_
