// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks ask of the operating system: where the calling thread may run, and how long
// it did run. The library never binds a thread; a measurement on a machine with other work does, so
// that its thread keeps its caches. Linux only, elsewhere nothing is bound and time is time.

#ifndef ENCORE_BENCH_MEASURE_OS_H_
#define ENCORE_BENCH_MEASURE_OS_H_

#include <chrono>
#include <cstddef>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#endif

#include "engine/platform/core_mask.h"

namespace encore::bench {

// Seconds from an unspecified start.
inline double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long call() takes.
template <typename Call>
double SecondsOf(const Call& call) {
  const double start = WallSeconds();
  call();
  return WallSeconds() - start;
}

// What the system has done with all threads of the process so far.
struct ProcessCounts {
  double minor_faults = 0;
  double major_faults = 0;
  double voluntary_switches = 0;
  double involuntary_switches = 0;
};

#if defined(__linux__)

inline ProcessCounts CountsOfProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto number = [](long count) { return static_cast<double>(count); };
  return {number(usage.ru_minflt), number(usage.ru_majflt), number(usage.ru_nvcsw),
          number(usage.ru_nivcsw)};
}

// Seconds that the calling thread has been on a core. A call costs about 250 ns.
inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Remembers the affinity mask that the process was started with. Made once, by the main thread.
class CoreMask {
 public:
  // The highest core of the mask, since interrupts tend to go to the lowest; -1 if unknown.
  int Last() const {
    size_t left = all_.count();
    int core = -1;
    while (left > 0) {
      ++core;
      if (all_.Has(core)) --left;
    }
    return core;
  }

  // Binds the calling thread to one core, or to all that it was started with (cpu < 0). Returns
  // whether it worked.
  bool Bind(int cpu) const {
    internal::CoreMask one;
    if (all_.count() == 0 || (cpu >= 0 && !one.Add(cpu))) return false;
    const internal::CoreMask& wanted = cpu >= 0 ? one : all_;
    return sched_setaffinity(0, wanted.bytes(), internal::SystemMask(wanted.words())) == 0;
  }

 private:
  internal::CoreMask all_ = internal::CoreMask::OfThisThread();
};

#else

inline ProcessCounts CountsOfProcess() { return {}; }

inline double ThreadSeconds() { return WallSeconds(); }

class CoreMask {
 public:
  int Last() const { return -1; }
  bool Bind(int /*cpu*/) const { return false; }
};

#endif

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_OS_H_
