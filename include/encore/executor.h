// SPDX-License-Identifier: Apache-2.0
//
// Where threads come from: none (inline), a ThreadPool of the caller's, OpenMP, or the host's own
// parallel_for. The choice never changes a bit of any result.

#ifndef ENCORE_EXECUTOR_H_
#define ENCORE_EXECUTOR_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <type_traits>

#include "encore/export.h"
#include "encore/language.h"  // IWYU pragma: keep
#include "encore/status.h"

namespace encore::inline v0_1 {

namespace internal {
class WorkerThreads;
}

// A host's parallel loop: calls body(context, i) exactly once for every i in [0, count), on any
// threads and in any order (one after another is fine), and returns when all calls have returned.
// `pool` is the host's own. A call of encore's library makes one such loop. Whichever call of body
// begins first leads the work, the others take tasks of it until it ends; one that begins late or
// never leaves its part to the others. None may run on after the loop has returned. A loop keeps
// its threads for the whole call: a body of RunParallel must not start another one on the same
// pool, unless whoever starts a loop works on it too. It may throw, once none of its calls runs any
// more. std::bad_alloc and std::length_error then make the library's call return kOutOfMemory, and
// anything else passes through it to its caller. What outputs hold is undefined then; encoders,
// workspaces and the executor may be used again. `body` never throws.
using ParallelFor = void (*)(void* pool, size_t count, void (*body)(void* context, size_t i),
                             void* context);

// A small value, cheap to copy; holds no thread. Thread-safe to share as const.
class ENCORE_API Executor {
 public:
  enum class Kind { kInline, kOpenMP, kHost, kPool };

  // All work on the calling thread.
  Executor() = default;
  static Executor Inline() { return Executor(); }

  // OpenMP with this many threads; 0 means UsableCores() of cpu.h (the affinity mask and the
  // cgroup's CPU quota). One parallel region a call, which ends when all its threads have arrived.
  // In a library built without OpenMP, or inside a host's own parallel region, the work runs on the
  // calling thread.
  // Between calls the runtime decides how its threads wait: OMP_WAIT_POLICY, GOMP_SPINCOUNT,
  // KMP_BLOCKTIME. By default GCC's threads spin for some 8 ms after a call and LLVM's for 200 ms.
  // A program whose cores have other work sets OMP_WAIT_POLICY=passive, or takes a ThreadPool,
  // whose threads sleep between calls.
  // The runtime allocates memory when it starts threads, and ends the process where the system
  // makes no more of them; ThreadPool::Create reports that instead. In a child made by fork() after
  // such a call the work runs on the calling thread, as the runtime would wait for threads that are
  // not there; after OpenMP regions of the host's own before the fork, the runtime may hang as it
  // always does.
  static Executor OpenMP(int threads = 0);

  // The host's own pool: `threads` calls of body a loop, at least 1; usually the pool's threads.
  static Executor Host(int threads, ParallelFor parallel_for, void* pool);

  // The same from any object with `parallel_for(size_t count, F body)`, F callable as body(size_t).
  // `pool` must outlive the executor.
  template <typename Pool>
  static Executor HostPool(int threads, Pool& pool) {
    return Host(
        threads,
        [](void* p, size_t count, void (*body)(void*, size_t), void* context) {
          static_cast<Pool*>(p)->parallel_for(count, [=](size_t i) { body(context, i); });
        },
        &pool);
  }

  // The threads of a ThreadPool (thread_pool.h); ThreadPool::executor() calls this. A call waits
  // for tasks that its threads have begun, never for a thread without one.
  static Executor Workers(internal::WorkerThreads* workers, int threads) {
    Executor executor;
    executor.kind_ = Kind::kPool;
    executor.threads_ = threads;
    executor.pool_ = workers;
    return executor;
  }

  // At most so many of the same threads, itself among them where a pool counts its callers. Of two
  // callers of a pool of eight each may take half, and the pool knows of both:
  //   model.Encode(texts, {.executor = pool.executor().WithAtMost(4)});
  Executor WithAtMost(int threads) const {
    Executor executor = *this;
    executor.threads_ = threads < 1 ? 1 : threads < threads_ ? threads : threads_;
    return executor;
  }

  // The same threads for calls that end early: once *stop is true with kCancelled, after the
  // deadline with kDeadlineExceeded. Every thread looks before each task, and between the products
  // of a long one, so a call returns when those at hand are done, mostly within 1 ms. What
  // outputs hold is undefined then; all else may be used again. `stop` may be set by any thread and
  // is never written by encore; it must outlive the calls. Opening a model is not stopped.
  //   std::atomic<bool> stop = false;
  //   model.Encode(texts, {.executor = pool.executor().WithStop(&stop)});
  Executor WithStop(const std::atomic<bool>* stop) const {
    Executor executor = *this;
    executor.stop_ = stop;
    return executor;
  }
  Executor WithDeadline(std::chrono::steady_clock::time_point deadline) const {
    Executor executor = *this;
    executor.deadline_ = deadline;
    return executor;
  }
  Executor WithoutStop() const {
    return WithStop(nullptr).WithDeadline(std::chrono::steady_clock::time_point::max());
  }
  const std::atomic<bool>* stop() const { return stop_; }                       // null: none
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }  // max(): none

  // The same threads for calls that can wait, e.g. indexing beside queries on one ThreadPool:
  //   model.Encode(documents, {.executor = pool.executor().InBackground()});  // on one thread
  //   model.Encode({query}, {.executor = pool.executor()});  // on another
  // A background call that is alone uses all of the pool's threads. While a call without this mark
  // runs, threads that it wants leave the background one within some 0.1 ms, and the caller of the
  // background call sleeps if no core is left for it; it goes on once the urgent calls are done, or
  // a little every 0.1 s. Only calls of one ThreadPool know of each other: with other executors the
  // mark changes nothing. It changes no thread's priority in the system.
  Executor InBackground() const {
    Executor executor = *this;
    executor.background_ = true;
    return executor;
  }
  bool background() const { return background_; }

  Kind kind() const { return kind_; }
  // How many pieces of work may run at once; at least 1. Workspace sizes depend on it.
  int threads() const { return threads_; }
  ParallelFor parallel_for() const { return parallel_for_; }
  void* pool() const { return pool_; }

 private:
  Kind kind_ = Kind::kInline;
  int threads_ = 1;
  ParallelFor parallel_for_ = nullptr;
  void* pool_ = nullptr;
  const std::atomic<bool>* stop_ = nullptr;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  bool background_ = false;
};

// Calls body(context, i) exactly once for every i in [0, count) on the executor's threads, in any
// order, under the default floating-point modes; returns when all calls have returned. body must
// not throw. What encore's own text functions use, for a host's work beside it. kCancelled or
// kDeadlineExceeded: some calls were left out.
ENCORE_API Status RunParallel(const Executor& executor, size_t count,
                              void (*body)(void* context, size_t i), void* context);

// The same for any callable body(size_t i).
template <typename F>
Status RunParallel(const Executor& executor, size_t count, F&& body) {
  return RunParallel(
      executor, count,
      [](void* context, size_t i) { (*static_cast<std::remove_reference_t<F>*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace encore

#endif  // ENCORE_EXECUTOR_H_
