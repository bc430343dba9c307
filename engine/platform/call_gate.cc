// SPDX-License-Identifier: Apache-2.0
//
// The flag, the clock and the pool.

#include "engine/platform/call_gate.h"

#include "engine/platform/worker_threads.h"

namespace encore::inline v0_1::internal {

CallGate::CallGate(const Executor& executor) : executor_(executor) {
  if (IsBackground(executor)) gives_way_ = static_cast<WorkerThreads*>(executor.pool());
}

bool CallGate::MayGoOn(int thread) {
  if (gives_way_ != nullptr && gives_way_->HasUrgentCalls()) gives_way_->GiveWay(thread, *this);
  return !IsStopped();
}

bool CallGate::IsStopped() {
  if (why_.load(std::memory_order_relaxed) != ErrorCode::kOk) return true;
  ErrorCode why = ErrorCode::kOk;
  const std::atomic<bool>* const stop = executor_.stop();
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
    why = ErrorCode::kCancelled;
  } else if (executor_.deadline() != std::chrono::steady_clock::time_point::max() &&
             std::chrono::steady_clock::now() >= executor_.deadline()) {
    why = ErrorCode::kDeadlineExceeded;
  } else {
    return false;
  }
  ErrorCode none = ErrorCode::kOk;
  why_.compare_exchange_strong(none, why, std::memory_order_relaxed);
  return true;
}

Status CallGate::status() const {
  switch (why_.load(std::memory_order_relaxed)) {
    case ErrorCode::kOk:
      return {};
    case ErrorCode::kCancelled:
      return Status(ErrorCode::kCancelled, "the call was cancelled: its stop flag is set");
    default:
      return Status(ErrorCode::kDeadlineExceeded, "the call was not done at its deadline");
  }
}

}  // namespace encore::internal
