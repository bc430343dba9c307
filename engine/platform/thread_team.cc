// SPDX-License-Identifier: Apache-2.0
//
// The four ways to run a team, the barrier between stages, and how a stage's tasks are shared. The
// only file with OpenMP.

#include "engine/platform/thread_team.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#if defined(ENCORE_HAVE_OPENMP)
#include <omp.h>
#endif

#include "encore/cpu.h"
#include "engine/platform/cpu_info.h"
#include "engine/platform/fork.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/spin.h"
#include "engine/platform/worker_threads.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Cache lines apart, so that waiting on one word does not slow writes to another. Two lines: x86
// prefetches pairs.
constexpr size_t kApart = 128;

// Who does which task of a stage. Each thread first does a block of its own, the same one in every
// stage of that size, which keeps it on the rows that are in its cache; the last quarter is taken
// in small pieces by whoever is free, which evens out unequal tasks and threads that lost their
// core. Tasks of next to no arithmetic show what that costs, on 2 threads in us a stage, fixed
// blocks / this / one by one from a counter: 64 tasks of 16 KiB 9 / 14 / 28, 1024 of 1 KiB 8 / 13
// / 57.
class TaskShare {
 public:
  template <typename Run>  // Run(begin, end)
  void Work(size_t count, size_t thread, size_t threads, StageBoard::Order order, const Run& run) {
    if (order == StageBoard::Order::kRising) {
      for (;;) {
        const size_t i = next_.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        run(i, i + 1);
      }
    }
    const size_t even = count / threads;
    const size_t own = even - (even + 2) / 4;  // 1, 1, 2, 3 of 1, 2, 3, 4
    if (own > 0) run(thread * own, (thread + 1) * own);
    const size_t end = count;
    const size_t begin = own * threads;
    const size_t piece = std::max<size_t>((end - begin) / (threads * 8), 1);
    for (;;) {
      const size_t first = begin + next_.fetch_add(piece, std::memory_order_relaxed);
      if (first >= end) return;
      run(first, std::min(first + piece, end));
    }
  }
  // By one thread, while no thread is in Work; the barrier orders it.
  void Reset() { next_.store(0, std::memory_order_relaxed); }

 private:
  alignas(kApart) std::atomic<size_t> next_{0};
};

// Where all threads of a stage meet. The last one to come opens the door for all by changing
// phase_, so it is at once ready for the next stage.
class Barrier {
 public:
  // Calls on_last() on the last thread to come, before any thread leaves.
  template <typename OnLast>
  void Wait(int threads, bool spin, const OnLast& on_last) {
    // It cannot change before this thread arrives.
    const uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived_.store(0, std::memory_order_relaxed);
      on_last();
      StoreAndWake(phase_, phase + 1);
      return;
    }
    const auto open = [&] { return phase_.load(std::memory_order_acquire) != phase; };
    if (spin && SpinUntil(open, kStageSpin)) return;
    phase_.wait(phase, std::memory_order_acquire);
  }

 private:
  alignas(kApart) std::atomic<int> arrived_{0};
  alignas(kApart) std::atomic<uint32_t> phase_{0};
};

}  // namespace

struct TeamState {
  explicit TeamState(const Executor& e) : executor(&e) {}

  const Executor* executor;
  bool spin =
      true;  // false if there are more threads than cores: the one waited for needs the core
  TaskShare share;
  Barrier barrier;

  // Runs the recipe as one thread of the team.
  void RunThread(RecipeFn fn, const void* recipe, int thread, int threads) {
    FpEnvScope fp_env;
    Team team(this, thread, threads);
    fn(recipe, team);
  }
};

namespace {

#if defined(ENCORE_HAVE_OPENMP)
// The cgroup's quota when the first of these executors was made: reading it in each call would take
// longer than the call. 0: not read yet.
std::atomic<int> quota{0};
void NoteQuota() {
  if (quota.load(std::memory_order_relaxed) == 0) {
    quota.store(CoresOfQuota(), std::memory_order_relaxed);
  }
}

void RunOpenMP(const Executor& executor, int wanted, RecipeFn fn, const void* recipe) {
  NoteOpenMPThreads();
  TeamState state(executor);
  state.spin = wanted <= std::min(omp_get_num_procs(), quota.load(std::memory_order_relaxed));
#pragma omp parallel num_threads(wanted)
  state.RunThread(fn, recipe, omp_get_thread_num(), omp_get_num_threads());
}
#endif

// Only the caller runs the recipe; workers take tasks of its stages.
bool RunOnPool(const Executor& executor, int threads, RecipeFn fn, const void* recipe) {
  WorkerThreads& workers = *static_cast<WorkerThreads*>(executor.pool());
  if (!workers.Lend(threads)) return false;
  TeamState state(executor);
  state.RunThread(fn, recipe, 0, threads);
  workers.Return();
  return true;
}

// A stage on the host's threads. A thread waits for no other, so a host may run them one after
// another. Calls of the host are numbered as they come: one too many finds no number left, and what
// the one that it left out should have done is still there for the caller.
struct HostStage {
  size_t count;
  size_t threads;
  StageBoard::Order order;
  StageFn fn;
  const void* task;
  TaskShare share;
  std::atomic<size_t> calls{0};

  static void RunThread(void* context, size_t /*i*/) {
    HostStage* stage = static_cast<HostStage*>(context);
    const size_t thread = stage->calls.fetch_add(1, std::memory_order_relaxed);
    if (thread < stage->threads) stage->RunShare(thread);
  }
  // By the caller, when all calls have returned.
  void RunRest() {
    for (size_t t = calls.load(std::memory_order_relaxed); t < threads; ++t) RunShare(t);
  }

 private:
  void RunShare(size_t thread) {
    FpEnvScope fp_env;
    share.Work(count, thread, threads, order,
               [&](size_t begin, size_t end) { fn(task, begin, end, static_cast<int>(thread)); });
  }
};

}  // namespace

void Team::ForEachRange(size_t count, StageBoard::Order order, StageFn fn, const void* task) {
  const Executor& executor = *state_->executor;
  const size_t threads = std::min(count, static_cast<size_t>(threads_));
  // With OpenMP all threads are here, and meet.
  if (threads_ == 1 || (threads <= 1 && executor.kind() != Executor::Kind::kOpenMP)) {
    if (count > 0) fn(task, 0, count, 0);
    return;
  }
  if (executor.kind() == Executor::Kind::kHost) {
    HostStage stage{count, threads, order, fn, task, {}};
    executor.parallel_for()(executor.pool(), threads, HostStage::RunThread, &stage);
    stage.RunRest();
    return;
  }
  if (executor.kind() == Executor::Kind::kPool) {
    static_cast<WorkerThreads*>(executor.pool())
        ->RunStage(count, order, static_cast<int>(threads), fn, task);
    return;
  }
  const size_t thread = static_cast<size_t>(thread_);
  if (thread < threads) {
    state_->share.Work(count, thread, threads, order,
                       [&](size_t begin, size_t end) { fn(task, begin, end, thread_); });
  }
  state_->barrier.Wait(threads_, state_->spin, [this] { state_->share.Reset(); });
}

bool RunUnevenly(const Executor& executor) {
  return executor.kind() == Executor::Kind::kPool &&
         static_cast<const WorkerThreads*>(executor.pool())->RunUnevenly();
}

void RunTeamErased(const Executor& executor, int threads, RecipeFn fn, const void* recipe) {
  threads = std::clamp(threads, 1, executor.threads());
#if defined(ENCORE_HAVE_OPENMP)
  // Inside a parallel region of the host its threads have the cores already.
  // And in a process forked from one with OpenMP's threads the runtime would wait for them.
  if (executor.kind() == Executor::Kind::kOpenMP && threads > 1 && omp_get_level() == 0 &&
      !OpenMPThreadsAreLost()) {
    RunOpenMP(executor, threads, fn, recipe);
    return;
  }
#endif
  // Where its threads are at work for somebody else, the caller's must do.
  if (executor.kind() == Executor::Kind::kPool && threads > 1 &&
      RunOnPool(executor, threads, fn, recipe)) {
    return;
  }
  const bool host = executor.kind() == Executor::Kind::kHost;
  TeamState state(executor);
  state.RunThread(fn, recipe, 0, host ? threads : 1);
}

}  // namespace internal

void RunParallel(const Executor& executor, size_t count, void (*body)(void* context, size_t i),
                 void* context) {
  internal::RunTeam(executor, [&](internal::Team& team) {
    team.ForEachInOrder(count, [&](size_t i, int /*thread*/) { body(context, i); });
  });
}

Executor Executor::OpenMP(int threads) {
  Executor executor;
  executor.kind_ = Kind::kOpenMP;
#if defined(ENCORE_HAVE_OPENMP)
  internal::NoteQuota();
  // The OpenMP runtimes end the process if a thread cannot be made, so absurd numbers must not
  // reach them.
  constexpr int kMaxThreads = 1024;
  executor.threads_ =
      std::min({threads > 0 ? threads : UsableCores(), kMaxThreads, omp_get_thread_limit()});
#else
  (void)threads;
#endif
  return executor;
}

Executor Executor::Host(int threads, ParallelFor parallel_for, void* pool) {
  Executor executor;
  if (parallel_for == nullptr) return executor;
  executor.kind_ = Kind::kHost;
  executor.threads_ = std::max(threads, 1);
  executor.parallel_for_ = parallel_for;
  executor.pool_ = pool;
  return executor;
}

}  // namespace encore
