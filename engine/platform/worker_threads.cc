// SPDX-License-Identifier: Apache-2.0
//
// How the workers of worker_threads.h sleep, wake and come back.

#include "engine/platform/worker_threads.h"

#include <new>
#include <thread>

#include "engine/platform/spin.h"

namespace encore::internal {
namespace {

// How long the caller looks for the last worker to come back before it sleeps: they all leave a
// barrier together. Waking up through the kernel costs 5-50 us.
constexpr std::chrono::microseconds kReturnSpin{50};

}  // namespace

WorkerThreads::WorkerThreads(int threads, std::chrono::microseconds idle_spin)
    : idle_spin_(idle_spin) {
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
    // Nothing may join or detach threads that are not there, nor destroy what stands for one that
    // is neither joined nor detached: it makes room for what stands for none.
    for (auto& worker : workers_) ::new (static_cast<void*>(&worker->thread)) std::thread();
    return;
  }
  stop_.store(true, std::memory_order_relaxed);  // ordered by the wake
  for (const auto& worker : workers_) {
    StoreAndWake(worker->calls, worker->calls.load(std::memory_order_relaxed) + 1);
  }
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

bool WorkerThreads::Run(int threads, RunFn run, void* context) {
  if (!AreInThisProcess()) return false;
  if (busy_.exchange(true, std::memory_order_acquire)) return false;
  threads_ = threads;
  run_ = run;
  context_ = context;
  running_.store(threads - 1, std::memory_order_relaxed);
  KeepOffTheCaller(threads);
  WakeChildren(0);
  run(context, 0);
  const auto all_back = [this] { return running_.load(std::memory_order_acquire) == 0; };
  if (!HaveACoreEach(threads) || !SpinUntil(all_back, kReturnSpin)) {
    for (int left; (left = running_.load(std::memory_order_acquire)) != 0;) {
      running_.wait(left, std::memory_order_acquire);
    }
  }
  busy_.store(false, std::memory_order_release);
  return true;
}

void WorkerThreads::Loop(int thread) {
  Worker& self = *workers_[static_cast<size_t>(thread - 1)];
  for (uint32_t seen = 0;; ++seen) {
    const auto called = [&] { return self.calls.load(std::memory_order_acquire) != seen; };
    if (idle_spin_.count() == 0 || !SpinUntil(called, idle_spin_)) {
      self.calls.wait(seen, std::memory_order_acquire);
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    WakeChildren(thread);
    run_(context_, thread);
    running_.fetch_sub(1, std::memory_order_seq_cst);  // see StoreAndWake
    running_.notify_all();
  }
}

void WorkerThreads::KeepOffTheCaller(int threads) {
  if (workers_.size() > kFewWorkers || workers_.size() >= cores_.count()) return;
  const int core = CurrentCore();
  if (core == avoided_core_ && threads <= avoiding_threads_) return;
  avoided_core_ = core;
  avoiding_threads_ = threads;
  for (int thread = 1; thread < threads; ++thread) {
    cores_.KeepOff(workers_[static_cast<size_t>(thread - 1)]->thread, core);
  }
}

void WorkerThreads::Wake(int thread) {
  std::atomic<uint32_t>& calls = workers_[static_cast<size_t>(thread - 1)]->calls;
  StoreAndWake(calls, calls.load(std::memory_order_relaxed) + 1);
}

void WorkerThreads::WakeChildren(int thread) {
  for (int child = 2 * thread + 1; child <= 2 * thread + 2 && child < threads_; ++child)
    Wake(child);
}

}  // namespace encore::internal
