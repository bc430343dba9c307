// SPDX-License-Identifier: Apache-2.0
//
// How forks are seen: a handler that the system calls in the child.

#include "engine/platform/fork.h"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace encore::inline v0_1::internal {
namespace {

std::atomic<uint32_t> process_number{0};
std::atomic<bool> openmp_has_threads{false};
std::atomic<bool> openmp_lost_threads{false};

#if defined(__unix__) || defined(__APPLE__)
void InChild() {
  process_number.fetch_add(1, std::memory_order_relaxed);
  if (openmp_has_threads.load(std::memory_order_relaxed)) {
    openmp_lost_threads.store(true, std::memory_order_relaxed);
  }
}
#endif

#if defined(__unix__) || defined(__APPLE__)
// When the library is loaded, not at a first call, in the middle of which another thread may fork.
// Where the system has no memory left for it, forks go unseen.
[[maybe_unused]] const int watching = pthread_atfork(nullptr, nullptr, InChild);
#endif

}  // namespace

uint32_t ProcessNumber() { return process_number.load(std::memory_order_relaxed); }

void NoteOpenMPThreads() { openmp_has_threads.store(true, std::memory_order_relaxed); }

bool OpenMPThreadsAreLost() { return openmp_lost_threads.load(std::memory_order_relaxed); }

}  // namespace encore::internal
