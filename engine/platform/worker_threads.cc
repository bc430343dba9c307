// SPDX-License-Identifier: Apache-2.0
//
// How the workers of worker_threads.h sleep and wake.

#include "engine/platform/worker_threads.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "encore/cpu.h"
#include "engine/platform/call_gate.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/spin.h"

namespace encore::inline v0_1::internal {
namespace {

thread_local int urgent_depth = 0;  // urgent calls that this thread is in or works for

}  // namespace

UrgentCall::UrgentCall(WorkerThreads* workers, int cores) : workers_(workers), cores_(cores) {
  if (workers_ == nullptr) return;
  ++urgent_depth;
  workers_->urgent_cores_.fetch_add(cores_, std::memory_order_relaxed);
}

UrgentCall::~UrgentCall() {
  if (workers_ == nullptr) return;
  --urgent_depth;
  workers_->GiveBackCores(cores_);
}

bool IsBackground(const Executor& executor) {
  return executor.background() && executor.kind() == Executor::Kind::kPool && urgent_depth == 0 &&
         static_cast<const WorkerThreads*>(executor.pool())->AreInThisProcess();
}

WorkerThreads::WorkerThreads(ThreadPoolOptions options)
    : urgent_(*this, static_cast<size_t>(options.threads)),
      background_(*this, static_cast<size_t>(options.threads)),
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
  urgent_.board_.Renumber();
  for (const auto& worker : workers_) StoreAndWake(worker->asleep, uint32_t{0});
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

LentThreads* WorkerThreads::Lend(int threads, bool background) {
  if (!AreInThisProcess()) return nullptr;
  LentThreads& lent = background ? background_ : urgent_;
  if (lent.busy_.exchange(true, std::memory_order_acquire)) return nullptr;
  KeepOffTheCaller(threads, background);
  lent.woken_ = 1;
  return &lent;
}

void LentThreads::Return() {
  board_.Close();
  busy_.store(false, std::memory_order_release);
}

void LentThreads::RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                           const void* task) {
  workers_.RunStage(*this, count, order, threads, run, task);
}

void WorkerThreads::RunStage(LentThreads& lent, size_t count, StageBoard::Order order, int threads,
                             StageFn run, const void* task) {
  const bool spin = HaveACoreEach(threads);
  // With more threads than cores, wake the surplus once per call: if such a thread sleeps again,
  // there was no work left.
  const int to_wake = spin || threads > lent.woken_ ? threads : std::min(threads, cores_for_them_);
  if (lent.to_wake_.load(std::memory_order_relaxed) != to_wake) {
    lent.to_wake_.store(to_wake, std::memory_order_relaxed);
  }
  lent.woken_ = std::max(lent.woken_, threads);
  StageTimes times;
  times.begin = Clock::now();
  lent.board_.Open(count, order, threads, run, task);
  WakeChildren(lent, 0);
  lent.board_.Work(0);
  times.done = Clock::now();
  const auto all_done = [&] { return lent.board_.AllDone(); };
  if (!spin || !SpinUntil(all_done, kStageSpin)) lent.board_.SleepUntilAllDone();
  if (!spin || &lent == &background_) return;
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
  if (options_.cores.empty()) {
    SpreadThisThread(thread);
  } else {
    PinThisThread(options_.cores[index]);
  }
  if (!options_.name.empty()) NameThisThread(options_.name.c_str());
  if (options_.on_start) options_.on_start(thread);
  bool slept = false;
  for (;;) {
    const uint64_t background = background_.board_.number();
    const uint64_t urgent = ServeUrgent(thread, slept, /*in_background=*/false);
    if (stop_.load(std::memory_order_relaxed)) return;
    slept = false;
    const bool in_background = StageBoard::IsOpen(background);
    const bool left_out = in_background && !HasACore(thread);
    if (in_background && !left_out) WorkOn(background_, thread);
    const auto news = [&] {
      return urgent_.board_.number() != urgent || background_.board_.number() != background ||
             (left_out && HasACore(thread));
    };
    // ServeUrgent has looked for the next stage of an urgent call.
    const bool spin = in_background || !StageBoard::IsOpen(urgent);
    const std::chrono::microseconds time = SpinOf(thread, in_background);
    if (spin && time.count() > 0 && SpinUntil(news, time)) continue;
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

uint64_t WorkerThreads::ServeUrgent(int thread, bool slept, bool in_background) {
  for (;;) {
    const uint64_t number = urgent_.board_.number();
    if (!StageBoard::IsOpen(number)) return number;
    if (slept) woke_at_.store(Clock::now(), std::memory_order_relaxed);
    slept = false;
    const bool worked = WorkOn(urgent_, thread);
    if (in_background && thread >= urgent_.to_wake_.load(std::memory_order_relaxed)) return number;
    const std::chrono::microseconds spin = SpinOf(thread, /*in_a_call=*/true);
    if (spin.count() == 0) return number;
    if (SpinUntil([&] { return urgent_.board_.number() != number; }, spin)) continue;
    if (worked) idle_at_.store(Clock::now() - spin, std::memory_order_relaxed);
    return number;
  }
}

bool WorkerThreads::WorkOn(LentThreads& lent, int thread) {
  WakeChildren(lent, thread);
  const FpEnvScope fp_env;
  const int depth = &lent == &urgent_ ? 1 : 0;
  urgent_depth += depth;
  const bool worked = lent.board_.Work(thread);
  urgent_depth -= depth;
  return worked;
}

void WorkerThreads::GiveBackCores(int cores) {
  // Sequentially consistent with workers that were left without a core and are about to sleep.
  urgent_cores_.fetch_sub(cores, std::memory_order_seq_cst);
  if (StageBoard::IsOpen(background_.board_.number())) WakeChildren(background_, 0);
}

void WorkerThreads::GiveWay(int thread, CallGate& gate) {
  const Clock::time_point end = Clock::now() + kLongestWait;
  for (;;) {
    if (thread > 0) ServeUrgent(thread, /*slept=*/false, /*in_background=*/true);
    if (HasACore(thread) || gate.IsStopped() || Clock::now() >= end) return;
    std::this_thread::sleep_for(kWaitStep);
  }
}

void WorkerThreads::KeepOffTheCaller(int threads, bool background) {
  if (!options_.keep_off_caller || !options_.cores.empty()) return;
  if (workers_.size() > kFewWorkers || workers_.size() >= cores_.count()) return;
  if (moving_.exchange(true, std::memory_order_acquire)) return;
  const int core = CurrentCore();
  const bool stay = background && std::exchange(avoid_urgent_, false);
  if (!background) avoid_urgent_ = true;
  if (!stay && (core != avoided_core_ || threads > avoiding_threads_)) {
    avoided_core_ = core;
    avoiding_threads_ = threads;
    for (int thread = 1; thread < threads; ++thread) {
      Worker& worker = *workers_[static_cast<size_t>(thread - 1)];
      worker.cores.KeepOff(worker.thread, core);
    }
  }
  moving_.store(false, std::memory_order_release);
}

void WorkerThreads::WakeChildren(LentThreads& lent, int thread) {
  const bool background = &lent == &background_;
  const int end = lent.to_wake_.load(std::memory_order_relaxed);
  for (int child = 2 * thread + 1; child <= 2 * thread + 2 && child < end; ++child) {
    std::atomic<uint32_t>& asleep = workers_[static_cast<size_t>(child - 1)]->asleep;
    if (asleep.load(std::memory_order_seq_cst) != 0) {
      if (!background || HasACore(child)) StoreAndWake(asleep, uint32_t{0});
    } else if (background ? HasUrgentCalls() : StageBoard::IsOpen(background_.board_.number())) {
      WakeChildren(lent, child);  // it may be at work for the other call for long
    }
  }
}

}  // namespace encore::internal
