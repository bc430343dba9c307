// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: threads that the caller makes, owns and lends to encore's calls.

#ifndef ENCORE_THREAD_POOL_H_
#define ENCORE_THREAD_POOL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

struct ThreadPoolOptions {
  // Threads of a call, the calling thread included; 0 means UsableCores() of cpu.h.
  int threads = 0;
  // How long an idle thread looks for the next call before it sleeps. 0, the default: it sleeps at
  // once, and nothing spins between calls. Waking it takes 3 to 50 us; the caller works meanwhile.
  // More than 0 is for bursts of short calls on cores that nobody else uses. Threads beyond
  // UsableCores() never spin: under a cgroup's quota they would burn the time of the others.
  std::chrono::microseconds idle_spin{0};
  // What debuggers and `top -H` call the pool's threads (on Linux, and the first 15 bytes of it);
  // empty: the name of the thread that made them.
  std::string name = {};
  // The core of each thread but the caller's, [threads - 1], on which alone it then runs, unless
  // the program takes that core away meanwhile (Linux). Empty: wherever the thread that made them
  // might, but see keep_off_caller. CoreDomains() of cpu.h lists cores by NUMA node and L3 cache.
  std::vector<int> cores = {};
  // On Linux, the threads of a pool of up to eight, if there are cores for all, stay off the core
  // of the thread that called last: the system might wake them there although another core is idle.
  // They are not given cores that the program took from them or from the whole process, as far as
  // their masks and that of the main thread tell. false leaves their masks alone.
  bool keep_off_caller = true;
  // Called by each of the pool's threads, 1 .. threads - 1, before it does anything else, e.g. to
  // set a priority or to tell a profiler. Must not throw, and may still run when Create() returns.
  std::function<void(int thread)> on_start = {};
};

// A pool belongs to the process that made it. A child made by fork() has none of its threads: calls
// with the pool's executor run on the calling thread there (with the same bits), the pool may be
// destroyed, and the child may make a pool of its own.
//
// It has threads - 1 threads, which sleep until a call needs them; the calling thread is the last
// one. Every call of the library with this pool's executor uses them. While they work for one
// caller, a call from another thread runs on that thread alone (with the same bits), unless one of
// the two is in the background (Executor::InBackground). Thread-safe.
// The destructor waits for the threads to end; no call may be using them then.
class ENCORE_API ThreadPool {
 public:
  // kInvalidArgument if `threads` is negative or above kMaxThreads, idle_spin negative or above one
  // second, or `cores` of another length or with a core that the calling thread may not use;
  // kOutOfMemory, or kUnsupported if the system makes no more threads or does not pin them.
  static Result<ThreadPool> Create(const ThreadPoolOptions& options = {});
  static constexpr int kMaxThreads = 1024;

  ThreadPool(ThreadPool&&) noexcept;
  ThreadPool& operator=(ThreadPool&&) noexcept;
  ~ThreadPool();

  // Valid as long as the pool lives, also after it was moved.
  Executor executor() const&;
  Executor executor() const&& = delete;
  int threads() const;

 private:
  ENCORE_LOCAL explicit ThreadPool(std::unique_ptr<internal::WorkerThreads> workers);
  std::unique_ptr<internal::WorkerThreads> workers_;
};

}  // namespace encore

#endif  // ENCORE_THREAD_POOL_H_
