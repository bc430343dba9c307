// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks ask of the operating system: how long a thread ran, and what was done with
// the process. Linux only, elsewhere time is time.

#ifndef ENCORE_BENCH_MEASURE_OS_H_
#define ENCORE_BENCH_MEASURE_OS_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#endif

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

// The one that the calling thread is on.
inline size_t CurrentProcessor() { return static_cast<size_t>(std::max(sched_getcpu(), 0)); }

// Of the process, now; 0 if unknown.
inline size_t ResidentBytes() {
  size_t size = 0;
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Seconds that the calling thread has been on a core. A call costs about 250 ns.
inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

#else

inline ProcessCounts CountsOfProcess() { return {}; }

inline size_t CurrentProcessor() { return 0; }
inline size_t ResidentBytes() { return 0; }

inline double ThreadSeconds() { return WallSeconds(); }

#endif

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_OS_H_
