// SPDX-License-Identifier: Apache-2.0
//
// Keeping threads off a core (Linux; elsewhere nothing happens). Not here: how many cores there are
// (encore/cpu.h).

#ifndef ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
#define ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_

#include <cstddef>
#include <thread>

#if defined(__linux__) && !defined(__ANDROID__)
#include <sched.h>
#endif

namespace encore::internal {

// The core that the calling thread is on, or -1 if the system does not tell. Takes some 20 ns.
int CurrentCore();

// The cores that the thread which made this object may run on.
class AllowedCores {
 public:
  AllowedCores();
  size_t count() const;  // 0 if the system does not tell
  // Lets the thread run on all of them but `core`; on all if that leaves none. A wish: whether it
  // was granted does not matter.
  void KeepOff(std::thread& thread, int core) const;

 private:
#if defined(__linux__) && !defined(__ANDROID__)
  cpu_set_t set_;
#endif
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
