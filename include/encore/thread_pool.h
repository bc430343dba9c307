// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: threads that the caller makes, owns and lends to encore's calls. Not here: the other
// sources of threads (executor.h).

#ifndef ENCORE_THREAD_POOL_H_
#define ENCORE_THREAD_POOL_H_

#include <chrono>
#include <memory>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"

namespace encore {

struct ThreadPoolOptions {
  // Threads of a call, the calling thread included; 0 means UsableCores() of cpu.h.
  int threads = 0;
  // How long an idle thread looks for the next call before it sleeps. 0, the default: it sleeps at
  // once, and nothing spins between calls. Waking it takes 3 to 50 us; the caller works meanwhile.
  // More than 0 is for bursts of short calls on cores that nobody else uses.
  std::chrono::microseconds idle_spin{0};
};

// A pool belongs to the process that made it. A child made by fork() has none of its threads: calls
// with the pool's executor run on the calling thread there (with the same bits), the pool may be
// destroyed, and the child may make a pool of its own. On Linux, the threads of a pool of up to
// eight threads, if there are cores for all, stay off the core of the thread that called last: the
// system might wake them there although another core is idle.
//
// It has threads - 1 threads, which sleep until a call needs them; the calling thread is the last
// one. Every call of the library with this pool's executor uses them. While they work for one
// caller, a call from another thread runs on that thread alone (with the same bits). Thread-safe.
// The destructor waits for the threads to end; no call may be using them then.
class ENCORE_API ThreadPool {
 public:
  // kInvalidArgument if `threads` is negative or above kMaxThreads, or idle_spin negative or above
  // one second; kOutOfMemory, or kUnsupported if the system makes no more threads.
  static Result<ThreadPool> Create(const ThreadPoolOptions& options = {});
  static constexpr int kMaxThreads = 1024;

  ThreadPool(ThreadPool&&) noexcept;
  ThreadPool& operator=(ThreadPool&&) noexcept;
  ~ThreadPool();

  // Valid as long as the pool lives, also after it was moved.
  Executor executor() const;
  int threads() const;

 private:
  struct Impl;
  explicit ThreadPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_THREAD_POOL_H_
