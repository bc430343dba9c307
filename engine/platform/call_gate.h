// SPDX-License-Identifier: Apache-2.0
//
// CallGate: whether one call goes on. It ends at its stop flag and deadline, and a background call
// gives way to urgent ones.

#ifndef ENCORE_ENGINE_PLATFORM_CALL_GATE_H_
#define ENCORE_ENGINE_PLATFORM_CALL_GATE_H_

#include <atomic>
#include <chrono>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

class WorkerThreads;

// Of one call with this executor: Executor::WithStop, WithDeadline and InBackground.
class ENCORE_API CallGate {
 public:
  explicit CallGate(const Executor& executor);
  // Whether it is ever shut.
  bool IsWanted() const {
    return executor_.stop() != nullptr || gives_way_ != nullptr ||
           executor_.deadline() != std::chrono::steady_clock::time_point::max();
  }
  // By thread `thread` of the call, before a task and between the parts of a long one: returns
  // after urgent calls that need its core; false if the call is to end.
  bool MayGoOn(int thread);
  // Once true, always: a task that it kept from running is missing, even if the caller takes the
  // flag back.
  bool IsStopped();
  Status status() const;

 private:
  const Executor& executor_;
  WorkerThreads* gives_way_ = nullptr;  // of a background call: the pool
  std::atomic<ErrorCode> why_{ErrorCode::kOk};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CALL_GATE_H_
