// SPDX-License-Identifier: Apache-2.0
//
// Where the threads of a team come from. The only file with OpenMP.

#include "engine/platform/thread_team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

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

// The threads of one call that OpenMP or the host provides: thread 0 runs the recipe, the others
// take tasks of its stages. On the caller's stack.
class CallThreads final : public StageThreads {
 public:
  // spin: whether each has a core of its own. Else the thread that is waited for needs the core.
  explicit CallThreads(bool spin) : spin_(spin) {}

  void RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                const void* task) override {
    board_.Open(count, order, threads, run, task);
    WakeSleepers();
    board_.Work(0);
    const auto all_done = [this] { return board_.AllDone(); };
    if (!spin_ || !SpinUntil(all_done, kStageSpin)) board_.SleepUntilAllDone();
  }

  // By thread 0, after its last stage: Help returns on all threads.
  void End() {
    ended_.store(true, std::memory_order_relaxed);  // ordered by the number's change
    board_.Renumber();
    WakeSleepers();
  }

  // By any other thread: takes tasks until the end. A thread that starts after it returns at once.
  void Help(int thread) {
    const FpEnvScope fp_env;
    for (;;) {
      const uint64_t number = board_.number();
      if (ended_.load(std::memory_order_relaxed)) return;
      board_.Work(thread);
      const auto news = [&] { return board_.number() != number; };
      if (spin_ && SpinUntil(news, kStageSpin)) continue;
      // Sequentially consistent with thread 0, which changes the number and then looks at
      // asleep_: one of the two sees the other.
      const uint32_t wakes = wakes_.load(std::memory_order_acquire);
      asleep_.fetch_add(1, std::memory_order_seq_cst);
      if (!news()) wakes_.wait(wakes, std::memory_order_acquire);
      asleep_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

 private:
  void WakeSleepers() {
    if (asleep_.load(std::memory_order_seq_cst) == 0) return;
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    wakes_.notify_all();
  }

  // 4 KiB of the caller's stack. More threads than that share ranges.
  std::array<StageBoard::Range, 32> ranges_;
  StageBoard board_{ranges_};
  const bool spin_;
  std::atomic<bool> ended_{false};
  // Two cache lines apart from what threads at work look at.
  alignas(128) std::atomic<int> asleep_{0};
  std::atomic<uint32_t> wakes_{0};
};

}  // namespace

struct RecipeRunner {
  RecipeFn fn;
  const void* recipe;
  CallGate* gate;    // null if the call runs to its end without a pause
  CallMeter* meter;  // null if nobody wants to know

  // As thread 0.
  void Run(StageThreads* stages, int threads) const {
    const FpEnvScope fp_env;
    Team team(stages, threads, gate, meter);
    fn(recipe, team);
  }
  void Run(CallThreads& call, int threads) const {
    Run(static_cast<StageThreads*>(&call), threads);
    call.End();
  }
};

namespace {

thread_local CallMeter* current_meter = nullptr;

// Whether `threads` threads have a core each. The cores are those of when the first executor was
// made: asking the system in each call would take longer than the call. Without affinity masks, as
// each thread has its own.
std::atomic<int> online_cores{0};
void NoteCores() {
  if (online_cores.load(std::memory_order_relaxed) != 0) return;
  online_cores.store(OnlineCores(), std::memory_order_relaxed);
}
bool HaveACoreEach(int threads) { return threads <= online_cores.load(std::memory_order_relaxed); }

#if defined(ENCORE_HAVE_OPENMP)
void RunOpenMP(int wanted, const RecipeRunner& recipe) {
  NoteOpenMPThreads();
  CallThreads call(wanted <= omp_get_num_procs() && HaveACoreEach(wanted));
#pragma omp parallel num_threads(wanted)
  if (omp_get_thread_num() == 0) {
    recipe.Run(call, omp_get_num_threads());
  } else {
    call.Help(omp_get_thread_num());
  }
}
#endif

// On the calling thread alone if the pool's threads are at work for another call like it.
void RunOnPool(const Executor& executor, int threads, const RecipeRunner& recipe) {
  WorkerThreads& workers = *static_cast<WorkerThreads*>(executor.pool());
  const bool background = IsBackground(executor);
  LentThreads* const lent = threads > 1 ? workers.Lend(threads, background) : nullptr;
  if (lent == nullptr) threads = 1;
  const UrgentCall urgent(background ? nullptr : &workers, threads);
  recipe.Run(lent, threads);
  if (lent != nullptr) lent->Return();
}

// One loop of the host. Its calls are numbered as they begin: the first runs the recipe, those
// beyond the threads do nothing. A host may run them one after another, as none waits for one that
// has not begun, and may leave some or all of them out.
struct HostCall {
  const RecipeRunner& recipe;
  int threads;
  CallThreads call;
  std::atomic<int> begun{0};

  static void Begin(void* context, size_t /*i*/) {
    HostCall& self = *static_cast<HostCall*>(context);
    if (self.begun.load(std::memory_order_relaxed) >= self.threads) return;
    const int thread = self.begun.fetch_add(1, std::memory_order_relaxed);
    if (thread == 0) {
      self.recipe.Run(self.call, self.threads);
    } else if (thread < self.threads) {
      self.call.Help(thread);
    }
  }
};

void RunOnHost(const Executor& executor, int threads, const RecipeRunner& recipe) {
  HostCall call{recipe, threads, CallThreads(HaveACoreEach(threads))};
  executor.parallel_for()(executor.pool(), static_cast<size_t>(threads), HostCall::Begin, &call);
  if (call.begun.load(std::memory_order_relaxed) == 0) HostCall::Begin(&call, 0);
}

void RunOnThreads(const Executor& executor, int threads, const RecipeRunner& runner) {
  if (executor.kind() == Executor::Kind::kPool) return RunOnPool(executor, threads, runner);
  if (threads == 1) return runner.Run(nullptr, 1);
  switch (executor.kind()) {
    case Executor::Kind::kOpenMP:
#if defined(ENCORE_HAVE_OPENMP)
      // Inside a parallel region of the host its threads have the cores already. And in a process
      // forked from one with OpenMP's threads the runtime would wait for them.
      if (omp_get_level() == 0 && !OpenMPThreadsAreLost()) return RunOpenMP(threads, runner);
#endif
      break;
    case Executor::Kind::kHost:
      return RunOnHost(executor, threads, runner);
    case Executor::Kind::kPool:
    case Executor::Kind::kInline:
      break;
  }
  runner.Run(nullptr, 1);
}

}  // namespace

CallMeter* CallMeter::Exchange(CallMeter* meter) { return std::exchange(current_meter, meter); }
CallMeter* CallMeter::Current() { return current_meter; }

void Team::ForEachRange(size_t count, StageBoard::Order order, StageFn fn, const void* task) {
  const size_t threads = std::min(count, static_cast<size_t>(threads_));
  if (threads > 1) {
    const CallMeter::Stage measured(meter_);
    stages_->RunStage(count, order, static_cast<int>(threads), fn, task);
  } else if (count > 0) {
    fn(task, 0, count, 0);
  }
}

bool RunUnevenly(const Executor& executor) {
  return executor.kind() == Executor::Kind::kPool &&
         static_cast<const WorkerThreads*>(executor.pool())->RunUnevenly();
}

Status RunTeamErased(const Executor& executor, int threads, RecipeFn fn, const void* recipe) {
  threads = std::clamp(threads, 1, executor.threads());
  CallGate gate(executor);
  // Tasks may make calls of their own, on this thread too: they count as the task.
  CallMeter* const meter = CallMeter::Current();
  const CallMeter::Scope unmeasured(nullptr);
  RunOnThreads(executor, threads, {fn, recipe, gate.IsWanted() ? &gate : nullptr, meter});
  return gate.status();
}

}  // namespace internal

Status RunParallel(const Executor& executor, size_t count, void (*body)(void* context, size_t i),
                   void* context) {
  const auto threads = static_cast<int>(std::min(count, static_cast<size_t>(executor.threads())));
  return internal::RunTeam(executor, threads, [&](internal::Team& team) {
    team.ForEachInOrder(count, [&](size_t i, int /*thread*/) { body(context, i); });
  });
}

Executor Executor::OpenMP(int threads) {
  Executor executor;
  executor.kind_ = Kind::kOpenMP;
#if defined(ENCORE_HAVE_OPENMP)
  internal::NoteCores();
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
  internal::NoteCores();
  executor.kind_ = Kind::kHost;
  executor.threads_ = std::max(threads, 1);
  executor.parallel_for_ = parallel_for;
  executor.pool_ = pool;
  return executor;
}

}  // namespace encore
