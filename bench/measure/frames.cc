// SPDX-License-Identifier: Apache-2.0
//
// Frames, the integer work in them, and what the system counts meanwhile.

#include "bench/measure/frames.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "bench/measure/allocations.h"
#include "bench/measure/os.h"

namespace encore::bench {
namespace {

// Steps that no compiler joins.
void DoSteps(size_t steps) {
  volatile uint32_t x = 1;
  for (size_t i = 0; i < steps; ++i) x = x * 1664525u + 1013904223u;
}

size_t ControlSteps() {
  constexpr size_t kTried = 100'000;
  double least = 1;
  for (int i = 0; i < 8; ++i) {
    least = std::min(least, SecondsOf([] { DoSteps(kTried); }));
  }
  return static_cast<size_t>(kTried * kControlSeconds / least);
}

}  // namespace

FrameTimes RunFrames(const FrameLoop& loop, const std::function<void(size_t i)>& call) {
  const size_t steps = ControlSteps();
  const double period = loop.hz > 0 ? 1.0 / loop.hz : 0;
  FrameTimes times;
  times.calls.assign(loop.frames, 0);  // touched before the loop
  times.control.assign(loop.frames, 0);
  size_t slow = 0;
  size_t done = 0;
  const size_t allocated = allocations_made;
  const ProcessCounts before = CountsOfProcess();
  double next = WallSeconds();
  for (; done < loop.frames && slow <= loop.frames / 100; ++done) {
    if (loop.hz > 0) {
      const double now = WallSeconds();
      next = std::max(next + period, now);
      std::this_thread::sleep_for(std::chrono::duration<double>(next - now));
    }
    const double seconds = SecondsOf([&] { call(done); });
    times.calls[done] = seconds;
    times.control[done] = SecondsOf([&] { DoSteps(steps); });
    if (seconds > loop.most) ++slow;
    if (loop.hz > 0 && seconds > period) ++times.late;
  }
  times.counts = CountsOfProcess();
  times.calls.resize(done);
  times.control.resize(done);
  const auto frames = static_cast<double>(done);
  for (double ProcessCounts::*const count :
       {&ProcessCounts::minor_faults, &ProcessCounts::major_faults,
        &ProcessCounts::voluntary_switches, &ProcessCounts::involuntary_switches}) {
    times.counts.*count = (times.counts.*count - before.*count) / frames;
  }
  if (allocated > 0) times.allocations = static_cast<double>(allocations_made - allocated) / frames;
  return times;
}

}  // namespace encore::bench
