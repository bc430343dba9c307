// SPDX-License-Identifier: Apache-2.0
//
// WorkerThreads: threads that sleep until they are given one function to run together. Not here:
// how work is shared among them (thread_team.h), the public ThreadPool (thread_pool.cc).

#ifndef ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
#define ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/platform/fork.h"
#include "engine/platform/thread_affinity.h"

namespace encore::internal {

class WorkerThreads {
 public:
  // Makes threads - 1 threads. Throws std::bad_alloc or std::system_error, and leaves none behind.
  WorkerThreads(int threads, std::chrono::microseconds idle_spin);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  // Whether so many threads have a core each, as far as was known when the threads were made: else
  // one that waits should leave its core to the others at once.
  bool HaveACoreEach(int threads) const {
    return cores_.count() == 0 || static_cast<size_t>(threads) <= cores_.count();
  }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls run(context, thread) for thread = 0 .. threads - 1 at the same time, 0 on the calling
  // thread, and returns true when all have returned; 1 <= threads <= threads(). False at once, with
  // nothing run, if the threads are at work for somebody else, or if fork() left them behind in
  // another process. Allocates nothing.
  using RunFn = void (*)(void* context, int thread);
  bool Run(int threads, RunFn run, void* context);

 private:
  // Two cache lines apart: x86 prefetches pairs.
  struct alignas(128) Worker {
    std::atomic<uint32_t> calls{0};  // how many it has been woken for
    std::thread thread;
  };

  bool AreInThisProcess() const { return process_ == ProcessNumber(); }
  void Stop();
  void Loop(int thread);
  void Wake(int thread);
  // Threads wake each other in a tree: thread i those of 2 i + 1 and 2 i + 2.
  void WakeChildren(int thread);

  std::vector<std::unique_ptr<Worker>> workers_;  // thread i + 1
  const std::chrono::microseconds idle_spin_;
  const uint32_t process_ = ProcessNumber();
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  // The system may wake a thread on the core of the one that wakes it, though another is idle, and
  // the two then wait for each other. So workers keep off the core that the caller was on last.
  // Not where there are many: then the chance is small, and moving all would take long. Nor where
  // they would be too many for the cores left.
  static constexpr size_t kFewWorkers = 7;
  void KeepOffTheCaller(int threads);
  const AllowedCores cores_;
  int avoided_core_ = -1;
  int avoiding_threads_ = 0;  // how many of them do

  // Of the call at hand; written before the workers wake.
  int threads_ = 0;
  RunFn run_ = nullptr;
  void* context_ = nullptr;
  alignas(128) std::atomic<int> running_{0};  // workers that have not returned
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
