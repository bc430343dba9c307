// SPDX-License-Identifier: Apache-2.0
//
// The flag and the clock.

#include "engine/platform/call_stop.h"

namespace encore::inline v0_1::internal {

bool CallStop::Look() {
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

Status CallStop::status() const {
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
