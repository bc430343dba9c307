// SPDX-License-Identifier: Apache-2.0
//
// How the workers of worker_threads.h sleep and wake.

#include "engine/platform/worker_threads.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "encore/cpu.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/spin.h"

namespace encore::inline v0_1::internal {
WorkerThreads::WorkerThreads(ThreadPoolOptions options)
    : ranges_(std::make_unique<StageBoard::Range[]>(static_cast<size_t>(options.threads))),
      board_({ranges_.get(), static_cast<size_t>(options.threads)}),
      options_(std::move(options)),
      cores_for_them_(UsableCores()) {
  const int threads = options_.threads;
  try {
    for (int thread = 1; thread < threads; ++thread) workers_.push_back(std::make_unique<Worker>());
    for (int thread = 1; thread < threads; ++thread) {
      workers_[static_cast<size_t>(thread - 1)]->thread =
          std::thread([this, thread] { Loop(thread); });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

WorkerThreads::~WorkerThreads() { Stop(); }

void WorkerThreads::Stop() {
  if (!AreInThisProcess()) {
    // These threads do not exist here, so they can neither be joined nor detached, and destroying a
    // joinable std::thread ends the process. Each is overwritten with an empty one.
    for (auto& worker : workers_) ::new (static_cast<void*>(&worker->thread)) std::thread();
    return;
  }
  stop_.store(true, std::memory_order_relaxed);  // ordered by the number's change
  board_.Renumber();
  for (const auto& worker : workers_) StoreAndWake(worker->asleep, uint32_t{0});
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

bool WorkerThreads::Lend(int threads) {
  if (!AreInThisProcess()) return false;
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  KeepOffTheCaller(threads);
  woken_ = 1;
  return true;
}

void WorkerThreads::Return() {
  board_.Close();
  busy_.store(false, std::memory_order_release);
}

void WorkerThreads::RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                             const void* task) {
  const bool spin = HaveACoreEach(threads);
  // With more threads than cores, wake the surplus once per call: if such a thread sleeps again,
  // there was no work left.
  const int to_wake = spin || threads > woken_ ? threads : std::min(threads, cores_for_them_);
  if (to_wake_.load(std::memory_order_relaxed) != to_wake) {
    to_wake_.store(to_wake, std::memory_order_relaxed);
  }
  woken_ = std::max(woken_, threads);
  StageTimes times;
  times.begin = Clock::now();
  board_.Open(count, order, threads, run, task);
  WakeChildren(0);
  board_.Work(0);
  times.done = Clock::now();
  const auto all_done = [this] { return board_.AllDone(); };
  if (!spin || !SpinUntil(all_done, kStageSpin)) board_.SleepUntilAllDone();
  if (!spin) return;
  times.woke_at = woke_at_.load(std::memory_order_relaxed);
  times.idle_at = idle_at_.load(std::memory_order_relaxed);
  times.end = Clock::now();
  uneven_stages_.Note(times);
}

std::chrono::microseconds WorkerThreads::SpinOf(int thread, bool in_a_call) const {
  if (!HaveACoreEach(thread + 1)) return std::chrono::microseconds(0);
  return in_a_call ? kStageSpin : options_.idle_spin;
}

void WorkerThreads::Loop(int thread) {
  const auto index = static_cast<size_t>(thread - 1);
  Worker& self = *workers_[index];
  if (!options_.cores.empty()) PinThisThread(options_.cores[index]);
  if (!options_.name.empty()) NameThisThread(options_.name.c_str());
  if (options_.on_start) options_.on_start(thread);
  bool slept = false;
  for (;;) {
    const uint64_t number = board_.number();
    if (stop_.load(std::memory_order_relaxed)) return;
    const bool in_a_call = StageBoard::IsOpen(number);
    bool worked = false;
    if (in_a_call) {
      if (slept) woke_at_.store(Clock::now(), std::memory_order_relaxed);
      WakeChildren(thread);
      const FpEnvScope fp_env;
      worked = board_.Work(thread);
      slept = false;
    }
    const std::chrono::microseconds spin = SpinOf(thread, in_a_call);
    const auto news = [&] { return board_.number() != number; };
    if (spin.count() > 0 && SpinUntil(news, spin)) continue;
    if (worked && spin.count() > 0) idle_at_.store(Clock::now() - spin, std::memory_order_relaxed);
    // Sequentially consistent with who opens a stage and then looks at `asleep`: one of the two
    // sees the other.
    self.asleep.store(1, std::memory_order_seq_cst);
    if (news()) {
      self.asleep.store(0, std::memory_order_relaxed);
      continue;
    }
    self.asleep.wait(1, std::memory_order_acquire);
    slept = true;
  }
}

void WorkerThreads::KeepOffTheCaller(int threads) {
  if (!options_.keep_off_caller || !options_.cores.empty()) return;
  if (workers_.size() > kFewWorkers || workers_.size() >= cores_.count()) return;
  const int core = CurrentCore();
  if (core == avoided_core_ && threads <= avoiding_threads_) return;
  avoided_core_ = core;
  avoiding_threads_ = threads;
  for (int thread = 1; thread < threads; ++thread) {
    Worker& worker = *workers_[static_cast<size_t>(thread - 1)];
    worker.cores.KeepOff(worker.thread, core);
  }
}

void WorkerThreads::WakeChildren(int thread) {
  const int end = to_wake_.load(std::memory_order_relaxed);
  for (int child = 2 * thread + 1; child <= 2 * thread + 2 && child < end; ++child) {
    std::atomic<uint32_t>& asleep = workers_[static_cast<size_t>(child - 1)]->asleep;
    if (asleep.load(std::memory_order_seq_cst) != 0) StoreAndWake(asleep, uint32_t{0});
  }
}

}  // namespace encore::internal
