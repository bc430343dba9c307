// SPDX-License-Identifier: Apache-2.0
//
// The system calls behind thread_affinity.h.

#include "engine/platform/thread_affinity.h"

#if defined(__linux__) && !defined(__ANDROID__)
#include <pthread.h>
#include <unistd.h>
#endif

#include <utility>

namespace encore::inline v0_1::internal {

#if defined(__linux__) && !defined(__ANDROID__)

int CurrentCore() { return sched_getcpu(); }

void PinThisThread(int core) {
  CoreMask wanted;
  if (!wanted.Add(core)) return;
  (void)sched_setaffinity(0, wanted.bytes(), SystemMask(wanted.words()));
}

bool ThreadCores::MayGiveBack(const CoreMask& now) const {
  if (taken_ < 0 || now != ours_) return false;
  // The whole process may have been narrowed to what happens to be our mask. The mask of its main
  // thread shows that, unless it is pinned to another core of its own.
  const CoreMask main = CoreMask::OfThread(getpid());
  return main.Has(taken_) || (main.count() == 1 && main != now);
}

void ThreadCores::KeepOff(std::thread& thread, int core) {
  CoreMask wanted = CoreMask::Read([&](size_t bytes, CoreMask::Word* words) {
    return pthread_getaffinity_np(thread.native_handle(), bytes, SystemMask(words));
  });
  if (core < 0) return;
  const bool gives = MayGiveBack(wanted) && !wanted.Has(taken_) && wanted.Add(taken_);
  const bool takes = wanted.Has(core);
  wanted.Remove(core);
  if (wanted.count() == 0) return;
  const bool same = gives && taken_ == core;  // given back and taken again
  taken_ = takes ? core : -1;
  if ((gives || takes) && !same) {
    (void)pthread_setaffinity_np(thread.native_handle(), wanted.bytes(),
                                 SystemMask(wanted.words()));
  }
  ours_ = std::move(wanted);
}

void NameThisThread(const char* name) {
  char cut[16] = {};  // with its zero
  for (size_t i = 0; i + 1 < sizeof(cut) && name[i] != '\0'; ++i) cut[i] = name[i];
  (void)pthread_setname_np(pthread_self(), cut);
}

#else

int CurrentCore() { return -1; }
void PinThisThread(int) {}
void ThreadCores::KeepOff(std::thread&, int) {}
void NameThisThread(const char*) {}

#endif

}  // namespace encore::internal
