// SPDX-License-Identifier: Apache-2.0
//
// The system calls behind thread_affinity.h.

#include "engine/platform/thread_affinity.h"

#if defined(__linux__) && !defined(__ANDROID__)
#include <pthread.h>
#endif

namespace encore::internal {

#if defined(__linux__) && !defined(__ANDROID__)

int CurrentCore() { return sched_getcpu(); }

AllowedCores::AllowedCores() {
  if (sched_getaffinity(0, sizeof(set_), &set_) != 0) CPU_ZERO(&set_);
}

size_t AllowedCores::count() const { return static_cast<size_t>(CPU_COUNT(&set_)); }

void AllowedCores::KeepOff(std::thread& thread, int core) const {
  if (core < 0 || core >= CPU_SETSIZE || CPU_COUNT(&set_) == 0) return;
  cpu_set_t wanted = set_;
  CPU_CLR(static_cast<size_t>(core), &wanted);
  if (CPU_COUNT(&wanted) == 0) wanted = set_;
  (void)pthread_setaffinity_np(thread.native_handle(), sizeof(wanted), &wanted);
}

#else

int CurrentCore() { return -1; }
AllowedCores::AllowedCores() = default;
size_t AllowedCores::count() const { return 0; }
void AllowedCores::KeepOff(std::thread&, int) const {}

#endif

}  // namespace encore::internal
