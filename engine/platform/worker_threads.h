// SPDX-License-Identifier: Apache-2.0
//
// WorkerThreads: the threads of a ThreadPool, which sleep until a caller has stages of tasks to
// share with them. They serve one urgent and one background caller at a time, the urgent one first.

#ifndef ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
#define ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "engine/platform/fork.h"
#include "engine/platform/stage_board.h"
#include "engine/platform/thread_affinity.h"
#include "engine/platform/uneven_stages.h"

namespace encore::inline v0_1::internal {

class CallGate;
class WorkerThreads;

// A pool's threads as one caller has them.
class LentThreads final : public StageThreads {
 public:
  LentThreads(WorkerThreads& workers, size_t threads)
      : workers_(workers),
        ranges_(std::make_unique<StageBoard::Range[]>(threads)),
        board_({ranges_.get(), threads}) {}

  // By the caller they are lent to, as thread 0.
  void RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                const void* task) override;
  void Return();

 private:
  friend class WorkerThreads;

  WorkerThreads& workers_;
  const std::unique_ptr<StageBoard::Range[]> ranges_;  // one a thread
  StageBoard board_;
  std::atomic<bool> busy_{false};
  // The current stage wakes threads below this. Written only when it changes: its cache line is
  // read by all.
  std::atomic<int> to_wake_{0};
  alignas(128) int woken_ = 1;  // the caller's own: up to which thread, in the call at hand
};

class WorkerThreads {
 public:
  // Makes options.threads - 1 threads, at least none, as the options say, which ThreadPool has
  // checked. Throws std::bad_alloc or std::system_error, and leaves none behind.
  explicit WorkerThreads(ThreadPoolOptions options);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Lends the threads to the calling thread, for stages of up to `threads` threads with itself;
  // 1 <= threads <= threads(). Null, and nothing is lent, if another caller of that kind has them,
  // or if fork() left them behind in another process. Else it wants a Return().
  LentThreads* Lend(int threads, bool background);

  // Whether urgent calls are at work. In a process forked from theirs nobody may ask.
  bool HasUrgentCalls() const { return urgent_cores_.load(std::memory_order_relaxed) != 0; }
  // By thread `thread` of a background call, wherever its work may be interrupted. A worker takes
  // tasks of the urgent call. Whoever is left without a core then sleeps until there is one or the
  // call is to end, but no longer than kLongestWait.
  void GiveWay(int thread, CallGate& gate);
  bool AreInThisProcess() const { return process_ == ProcessNumber(); }

  // Whether threads waited for each other through much of some stages lately. Tasks should be small
  // then. By any thread.
  bool RunUnevenly() const { return uneven_stages_.AreSome(); }

  // How long a thread that finds nothing to do looks for it before it sleeps, within a call and
  // between calls. 0 if the threads up to this one have no core each by UsableCores(), which counts
  // the affinity mask and the cgroup's quota, when the threads were made: spinning would take the
  // core, or the quota's time, from the others.
  std::chrono::microseconds SpinOf(int thread, bool in_a_call) const;

 private:
  using Clock = std::chrono::steady_clock;

  // Two cache lines apart: x86 prefetches pairs.
  struct alignas(128) Worker {
    std::atomic<uint32_t> asleep{0};  // 1 if it is, or is about to be; who wakes it sets 0
    std::thread thread;
    ThreadCores cores;
  };

  friend class LentThreads;
  friend class UrgentCall;

  bool HaveACoreEach(int threads) const { return threads <= cores_for_them_; }
  void Stop();
  void Loop(int thread);
  void RunStage(LentThreads& lent, size_t count, StageBoard::Order order, int threads, StageFn run,
                const void* task);
  // By a worker: takes tasks of the urgent call until it is over, or has had none for a while.
  // Returns the number of the last stage that it saw. From within a background task it does not
  // wait for the next stage of a call that does not want this thread.
  uint64_t ServeUrgent(int thread, bool slept, bool in_background);
  bool WorkOn(LentThreads& lent, int thread);
  // At an urgent call's end: workers that had no core come to the background call.
  void GiveBackCores(int cores);
  // Threads wake each other in a tree: thread i those of 2 i + 1 and 2 i + 2, where they sleep.
  void WakeChildren(LentThreads& lent, int thread);

  // Whether a thread of a background call has a core beside the urgent ones, which have the first:
  // of those left its caller has one, and a worker that serves them uses theirs.
  bool HasACore(int thread) const {
    const int urgent = urgent_cores_.load(std::memory_order_seq_cst);
    if (urgent == 0) return true;
    if (thread == 0) return urgent < cores_for_them_;
    return thread < (thread < urgent ? cores_for_them_ : cores_for_them_ - 1);
  }
  // Urgent calls may wait for something that a background call's thread holds.
  static constexpr std::chrono::milliseconds kLongestWait{100};
  static constexpr std::chrono::microseconds kWaitStep{100};

  LentThreads urgent_;
  LentThreads background_;
  std::atomic<int> urgent_cores_{0};              // that urgent calls want
  std::vector<std::unique_ptr<Worker>> workers_;  // thread i + 1
  const ThreadPoolOptions options_;
  const uint32_t process_ = ProcessNumber();
  std::atomic<bool> stop_{false};

  // Of urgent calls. See StageTimes. A worker sets idle_at_ when it has spun in vain, which may be
  // after the stage.
  std::atomic<Clock::time_point> woke_at_{};
  std::atomic<Clock::time_point> idle_at_{};

  // The system may wake a thread on the core of the one that wakes it, though another is idle, and
  // the two then wait for each other. So workers keep off the core that the caller was on last.
  // Not where there are many: then the chance is small, and moving all would take long. Nor where
  // they would be too many for the cores left.
  static constexpr size_t kFewWorkers = 7;
  // A background caller has no say after an urgent one, whose place is the better known.
  void KeepOffTheCaller(int threads, bool background);
  const CoreMask cores_ = CoreMask::OfThisThread();
  const int cores_for_them_;  // what affinity and quota leave

  // One caller's at a time.
  alignas(128) std::atomic<bool> moving_{false};
  int avoided_core_ = -1;
  int avoiding_threads_ = 0;   // how many of them do
  bool avoid_urgent_ = false;  // an urgent caller, since the last background call
  // The urgent caller's own.
  alignas(128) UnevenStages uneven_stages_;
};

// On the stack of an urgent call's caller; with null, which does nothing, of a background one's.
class UrgentCall {
 public:
  UrgentCall(WorkerThreads* workers, int cores);
  ~UrgentCall();
  UrgentCall(const UrgentCall&) = delete;
  UrgentCall& operator=(const UrgentCall&) = delete;

 private:
  WorkerThreads* const workers_;
  const int cores_;
};

// Whether calls of this thread with the executor give way to others: its mark counts on a pool of
// this process, and not inside an urgent call, which would wait for itself.
bool IsBackground(const Executor& executor);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
