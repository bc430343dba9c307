// SPDX-License-Identifier: Apache-2.0
//
// Frames, the integer work in them, and what the system counts meanwhile.

#include "bench/measure/frames.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <random>
#include <thread>

#include "bench/measure/allocations.h"
#include "bench/measure/cpus.h"
#include "bench/measure/os.h"
#include "bench/measure/threads.h"

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

void SleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

FrameTimes RunFrames(const FrameLoop& loop,
                     const std::function<void(size_t i, size_t caller)>& call) {
  const size_t steps = loop.callers ? 0 : ControlSteps();
  const double period = loop.hz > 0 ? 1.0 / loop.hz : 0;
  FrameTimes times;
  times.calls.assign(loop.frames, 0);  // touched before the loop
  times.control.assign(loop.callers ? 0 : loop.frames, 0);
  std::atomic<size_t> slow = 0;
  std::atomic<size_t> next = 0;
  const size_t allocated = allocations_made;
  const ProcessCounts before = CountsOfProcess();
  const double start = loop.now();
  const auto work = [&](size_t caller) {
    double due = start;
    while (slow <= loop.frames / 100) {
      const size_t i = next++;
      if (i >= loop.frames) break;
      const double now = loop.now();
      due = loop.arrivals.empty() ? std::max(due + period, now) : start + loop.arrivals[i];
      if (due > now) loop.sleep(due - now);
      const double begin = loop.arrivals.empty() ? loop.now() : due;
      call(i, caller);
      const double seconds = times.calls[i] = loop.now() - begin;
      if (!loop.callers) times.control[i] = SecondsOf([&] { DoSteps(steps); });
      if (seconds > loop.most) ++slow;
      if (loop.hz > 0 && seconds > period) ++times.late;
    }
  };
  if (loop.callers.value_or(1) == 1) {
    work(0);
  } else {
    std::vector<std::future<void>> callers;
    for (size_t caller = 0; caller < *loop.callers; ++caller) {
      callers.push_back(std::async(std::launch::async, [&, caller] {
        const std::vector<int>& cpus = CpusOfProcess();
        if (*loop.callers <= cpus.size()) (void)RunOn({cpus[caller]});
        work(caller);
      }));
    }
    for (std::future<void>& one : callers) one.wait();
    for (std::future<void>& one : callers) one.get();
  }
  times.seconds = loop.now() - start;
  times.counts = CountsOfProcess();
  const size_t done = std::min<size_t>(next, loop.frames);
  times.calls.resize(done);
  times.control.resize(std::min(done, times.control.size()));
  const auto frames = static_cast<double>(done);
  for (double ProcessCounts::*const count :
       {&ProcessCounts::minor_faults, &ProcessCounts::major_faults,
        &ProcessCounts::voluntary_switches, &ProcessCounts::involuntary_switches}) {
    times.counts.*count = (times.counts.*count - before.*count) / frames;
  }
  if (allocated > 0) times.allocations = static_cast<double>(allocations_made - allocated) / frames;
  return times;
}

std::vector<double> PoissonArrivals(size_t count, double rate) {
  std::mt19937_64 random(1);  // the distributions of <random> differ between libraries
  std::vector<double> arrivals;
  double now = 0;
  for (size_t i = 0; i < count; ++i) {
    now -= std::log((static_cast<double>(random() >> 11) + 0.5) * 0x1p-53) / rate;
    arrivals.push_back(now);
  }
  return arrivals;
}

}  // namespace encore::bench
