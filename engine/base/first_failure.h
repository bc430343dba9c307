// SPDX-License-Identifier: Apache-2.0
//
// One Status for tasks on several threads:
//
//   FirstFailure failure;
//   RunParallel(executor, tasks, [&](size_t i) { failure.Keep(Task(i)); });
//   return failure.status();

#ifndef ENCORE_ENGINE_BASE_FIRST_FAILURE_H_
#define ENCORE_ENGINE_BASE_FIRST_FAILURE_H_

#include <atomic>
#include <utility>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

class FirstFailure {
 public:
  // Any thread. The first failure stays, whichever task's it is.
  void Keep(Status status) {
    if (status.ok() || taken_.exchange(true)) return;
    status_ = std::move(status);
  }
  // After all tasks have returned.
  const Status& status() const { return status_; }

 private:
  std::atomic<bool> taken_ = false;
  Status status_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_FIRST_FAILURE_H_
