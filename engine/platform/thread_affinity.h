// SPDX-License-Identifier: Apache-2.0
//
// Which cores threads run on, and what they are called (Linux; elsewhere nothing happens).

#ifndef ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
#define ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_

#include <cstddef>
#include <thread>

#if defined(__linux__) && !defined(__ANDROID__)
#include <sched.h>
#endif

namespace encore::inline v0_1::internal {

// The core that the calling thread is on, or -1 if the system does not tell. Takes some 20 ns.
int CurrentCore();

// The cores that the thread which made this object may run on.
class AllowedCores {
 public:
  AllowedCores();
  size_t count() const;  // 0 if the system does not tell
  bool Has(int core) const;

 private:
#if defined(__linux__) && !defined(__ANDROID__)
  cpu_set_t set_;
#endif
};

// Lets the calling thread run on that core alone. A wish: whether it was granted does not matter.
void PinThisThread(int core);

// Where one thread may run, changed on its owner's behalf.
class ThreadCores {
 public:
  // Lets the thread run wherever it might, but not on `core`, unless that leaves none. It is not
  // given cores that somebody else took from it, or from the process, as far as the thread's mask
  // and that of the process's main thread tell. A wish as well.
  void KeepOff(std::thread& thread, int core);

 private:
#if defined(__linux__) && !defined(__ANDROID__)
  bool MayGiveBack(const cpu_set_t& now) const;

  cpu_set_t ours_{};  // the mask that we gave it last
  int taken_ = -1;    // the core that we took out of it for that
#endif
};

// What debuggers and `top -H` call the calling thread; on Linux 15 bytes of it.
void NameThisThread(const char* name);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
