// SPDX-License-Identifier: Apache-2.0
//
// The system calls behind thread_affinity.h.

#include "engine/platform/thread_affinity.h"

#if defined(__linux__) && !defined(__ANDROID__)
#include <pthread.h>
#include <unistd.h>
#endif

namespace encore::inline v0_1::internal {

#if defined(__linux__) && !defined(__ANDROID__)

int CurrentCore() { return sched_getcpu(); }

AllowedCores::AllowedCores() {
  if (sched_getaffinity(0, sizeof(set_), &set_) != 0) CPU_ZERO(&set_);
}

size_t AllowedCores::count() const { return static_cast<size_t>(CPU_COUNT(&set_)); }

bool AllowedCores::Has(int core) const {
  return core >= 0 && core < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(core), &set_);
}

void PinThisThread(int core) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  CPU_SET(static_cast<size_t>(core), &wanted);
  (void)sched_setaffinity(0, sizeof(wanted), &wanted);
}

bool ThreadCores::MayGiveBack(const cpu_set_t& now) const {
  if (taken_ < 0 || !CPU_EQUAL(&now, &ours_)) return false;
  // The whole process may have been narrowed to what happens to be our mask. Its main thread tells,
  // unless that is pinned to another core of its own.
  cpu_set_t main;
  if (sched_getaffinity(getpid(), sizeof(main), &main) != 0) return false;
  return CPU_ISSET(static_cast<size_t>(taken_), &main) ||
         (CPU_COUNT(&main) == 1 && !CPU_EQUAL(&main, &now));
}

void ThreadCores::KeepOff(std::thread& thread, int core) {
  cpu_set_t now;
  if (core < 0 || core >= CPU_SETSIZE ||
      pthread_getaffinity_np(thread.native_handle(), sizeof(now), &now) != 0) {
    return;
  }
  cpu_set_t wanted = now;
  if (MayGiveBack(now)) CPU_SET(static_cast<size_t>(taken_), &wanted);
  const bool takes = CPU_ISSET(static_cast<size_t>(core), &wanted);
  CPU_CLR(static_cast<size_t>(core), &wanted);
  if (CPU_COUNT(&wanted) == 0) return;
  ours_ = wanted;
  taken_ = takes ? core : -1;
  if (CPU_EQUAL(&wanted, &now)) return;
  (void)pthread_setaffinity_np(thread.native_handle(), sizeof(wanted), &wanted);
}

void NameThisThread(const char* name) {
  char cut[16] = {};  // with its zero
  for (size_t i = 0; i + 1 < sizeof(cut) && name[i] != '\0'; ++i) cut[i] = name[i];
  (void)pthread_setname_np(pthread_self(), cut);
}

#else

int CurrentCore() { return -1; }
AllowedCores::AllowedCores() = default;
size_t AllowedCores::count() const { return 0; }
bool AllowedCores::Has(int) const { return false; }
void PinThisThread(int) {}
void ThreadCores::KeepOff(std::thread&, int) {}
void NameThisThread(const char*) {}

#endif

}  // namespace encore::internal
