// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks ask of the operating system: where the calling thread may run, and how long
// it did run. The library never binds a thread; a measurement on a machine with other work does, so
// that its thread keeps its caches. Linux only, elsewhere nothing is bound and time is time.

#ifndef ENCORE_BENCH_MEASURE_OS_H_
#define ENCORE_BENCH_MEASURE_OS_H_

#include <algorithm>
#include <chrono>

#if defined(__linux__)
#include <sched.h>
#include <time.h>
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

#if defined(__linux__)

// Seconds that the calling thread has been on a core. A call costs about 250 ns.
inline double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Remembers the affinity mask that the process was started with. Made once, by the main thread.
class CoreMask {
 public:
  CoreMask() { known_ = sched_getaffinity(0, sizeof(all_), &all_) == 0; }

  // The highest core of the mask, since interrupts tend to go to the lowest; -1 if unknown.
  int Last() const {
    for (int cpu = CPU_SETSIZE - 1; known_ && cpu >= 0; --cpu) {
      if (CPU_ISSET(cpu, &all_)) return cpu;
    }
    return -1;
  }

  // Binds the calling thread to one core, or to all that it was started with (cpu < 0). Returns
  // whether it worked.
  bool Bind(int cpu) const {
    if (!known_) return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    if (cpu >= 0) CPU_SET(static_cast<size_t>(std::min(cpu, CPU_SETSIZE - 1)), &one);
    return sched_setaffinity(0, sizeof(one), cpu >= 0 ? &one : &all_) == 0;
  }

 private:
  cpu_set_t all_;
  bool known_ = false;
};

#else

inline double ThreadSeconds() { return WallSeconds(); }

class CoreMask {
 public:
  int Last() const { return -1; }
  bool Bind(int /*cpu*/) const { return false; }
};

#endif

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_OS_H_
