// SPDX-License-Identifier: Apache-2.0
//
// CallStop: whether one call is to end before its work is done.

#ifndef ENCORE_ENGINE_PLATFORM_CALL_STOP_H_
#define ENCORE_ENGINE_PLATFORM_CALL_STOP_H_

#include <atomic>
#include <chrono>

#include "encore/executor.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Of one call with this executor: Executor::WithStop and WithDeadline.
class CallStop {
 public:
  explicit CallStop(const Executor& executor) : executor_(executor) {}
  // Whether it ever may.
  bool IsWanted() const {
    return executor_.stop() != nullptr ||
           executor_.deadline() != std::chrono::steady_clock::time_point::max();
  }
  // By any thread, before a task. Once true, always: a task that it kept from running is missing,
  // even if the caller takes the flag back.
  bool Look();
  Status status() const;

 private:
  const Executor& executor_;
  std::atomic<ErrorCode> why_{ErrorCode::kOk};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CALL_STOP_H_
