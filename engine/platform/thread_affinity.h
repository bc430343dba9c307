// SPDX-License-Identifier: Apache-2.0
//
// Which cores threads run on, and what they are called (Linux and Windows; elsewhere nothing
// happens).

#ifndef ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
#define ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_

#include <thread>

#include "engine/platform/core_mask.h"

namespace encore::inline v0_1::internal {

// The core that the calling thread is on, or -1 if the system does not say. Takes some 20 ns.
int CurrentCore();

// Lets the calling thread run on that core alone. A wish: whether it was granted does not matter.
void PinThisThread(int core);

// On Windows with more than 64 cores, which are groups, a new thread may run on the group of the
// one that made it alone. Lets thread `number` of a pool run on another where that has its cores'
// number of threads. A thread that was kept off some of its group's cores stays there.
void SpreadThisThread(int number);

// Where one thread may run, changed on its owner's behalf.
class ThreadCores {
 public:
  // Removes `core` from the cores that the thread may run on, unless it is the last one. Never adds
  // a core that somebody else removed from the thread or the process, as far as the thread's mask
  // and the main thread's show. Errors are ignored.
  void KeepOff(std::thread& thread, int core);

 private:
  bool MayGiveBack(const CoreMask& now) const;

  CoreMask ours_;   // the mask that we gave it last
  int taken_ = -1;  // the core that we took out of it for that
};

// What debuggers and `top -H` call the calling thread; on Linux 15 bytes of it.
void NameThisThread(const char* name);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_THREAD_AFFINITY_H_
