// SPDX-License-Identifier: Apache-2.0
//
// WorkerThreads: the threads of a ThreadPool, which sleep until a caller has stages of tasks to
// share with them.

#ifndef ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
#define ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "encore/thread_pool.h"
#include "engine/platform/fork.h"
#include "engine/platform/stage_board.h"
#include "engine/platform/thread_affinity.h"
#include "engine/platform/uneven_stages.h"

namespace encore::inline v0_1::internal {

class WorkerThreads final : public StageThreads {
 public:
  // Makes options.threads - 1 threads, at least none, as the options say, which ThreadPool has
  // checked. Throws std::bad_alloc or std::system_error, and leaves none behind.
  explicit WorkerThreads(ThreadPoolOptions options);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Lends the threads to the calling thread, for stages of up to `threads` threads with itself;
  // 1 <= threads <= threads(). False, and nothing is lent, if another caller has them, or if fork()
  // left them behind in another process. Each true wants a Return().
  bool Lend(int threads);
  void Return();

  // By the caller they are lent to, as thread 0.
  void RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                const void* task) override;

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

  bool AreInThisProcess() const { return process_ == ProcessNumber(); }
  bool HaveACoreEach(int threads) const { return threads <= cores_for_them_; }
  void Stop();
  void Loop(int thread);
  // Threads wake each other in a tree: thread i those of 2 i + 1 and 2 i + 2, where they sleep.
  void WakeChildren(int thread);

  const std::unique_ptr<StageBoard::Range[]> ranges_;  // one a thread
  StageBoard board_;
  std::vector<std::unique_ptr<Worker>> workers_;  // thread i + 1
  const ThreadPoolOptions options_;
  const uint32_t process_ = ProcessNumber();
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  // The current stage wakes threads below this. Written only when it changes: its cache line is
  // read by all.
  std::atomic<int> to_wake_{0};

  // See StageTimes. A worker sets idle_at_ when it has spun in vain, which may be after the stage.
  std::atomic<Clock::time_point> woke_at_{};
  std::atomic<Clock::time_point> idle_at_{};

  // The system may wake a thread on the core of the one that wakes it, though another is idle, and
  // the two then wait for each other. So workers keep off the core that the caller was on last.
  // Not where there are many: then the chance is small, and moving all would take long. Nor where
  // they would be too many for the cores left.
  static constexpr size_t kFewWorkers = 7;
  void KeepOffTheCaller(int threads);
  const CoreMask cores_ = CoreMask::OfThisThread();
  const int cores_for_them_;  // what affinity and quota leave

  // The caller's own.
  alignas(128) int avoided_core_ = -1;
  int avoiding_threads_ = 0;  // how many of them do
  int woken_ = 1;             // up to which thread, in the call at hand
  UnevenStages uneven_stages_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_WORKER_THREADS_H_
