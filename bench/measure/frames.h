// SPDX-License-Identifier: Apache-2.0
//
// A loop with a deadline: in each frame one call, then fixed integer work, then a wait until the
// next frame begins.

#ifndef ENCORE_BENCH_MEASURE_FRAMES_H_
#define ENCORE_BENCH_MEASURE_FRAMES_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "bench/measure/os.h"

namespace encore::bench {

struct FrameLoop {
  int hz = 0;  // frames a second; 0: one after another
  size_t frames = 0;
  // Seconds. The loop ends once p99 of its calls can no longer be below.
  double most = std::numeric_limits<double>::infinity();
};

struct FrameTimes {
  std::vector<double> calls;    // seconds of each frame's call
  std::vector<double> control;  // and of its integer work, about kControlSeconds
  size_t late = 0;              // calls that took longer than a frame
  // Of the whole process, a frame's.
  ProcessCounts counts;
  std::optional<double> allocations;  // calls of operator new; nothing if not counted
};

inline constexpr double kControlSeconds = 0.5e-3;

// call(i) is that of frame i. A frame that is late delays those behind it.
FrameTimes RunFrames(const FrameLoop& loop, const std::function<void(size_t i)>& call);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_FRAMES_H_
