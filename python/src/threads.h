// SPDX-License-Identifier: Apache-2.0
//
// The threads of a model: a pool that is made when it is first asked for, and forgotten in a child
// of fork(), which has none of its threads.

#ifndef ENCORE_PYTHON_SRC_THREADS_H_
#define ENCORE_PYTHON_SRC_THREADS_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "encore/cpu.h"
#include "encore/executor.h"
#include "encore/thread_pool.h"

namespace pyencore {

class Threads {
 public:
  // idle_spin: us, as ThreadPoolOptions has it.
  explicit Threads(int count, int idle_spin = 0)
      : count_(count), idle_spin_(idle_spin), state_(std::make_shared<State>()) {}

  int count() const { return count_ == 0 ? encore::UsableCores() : count_; }

  // Inline for one thread. Any number of threads may ask.
  encore::Result<encore::Executor> executor() const {
    if (count_ == 1) return encore::Executor();
    const std::lock_guard lock(state_->mutex);
    if (!state_->pool) {
      encore::Result<encore::ThreadPool> pool =
          encore::ThreadPool::Create({.threads = count_, .idle_spin = idle_spin_});
      if (!pool.ok()) return pool.status();
      state_->pool.emplace(*std::move(pool));
    }
    return state_->pool->executor();
  }

  // In the child, before it has a second thread. The state is a new one, as some thread of the
  // parent's may have held the mutex; the old one is left where it is.
  void ForgetAfterFork() {
    new std::shared_ptr<State>(std::move(state_));
    state_ = std::make_shared<State>();
  }

 private:
  struct State {
    std::mutex mutex;
    std::optional<encore::ThreadPool> pool;
  };
  int count_;
  std::chrono::microseconds idle_spin_;
  std::shared_ptr<State> state_;
};

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_THREADS_H_
