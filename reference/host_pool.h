// SPDX-License-Identifier: Apache-2.0
//
// HostPool: a small thread pool such as a program that embeds encore may have, to try
// Executor::HostPool with. Its threads sleep between loops.

#ifndef ENCORE_REFERENCE_HOST_POOL_H_
#define ENCORE_REFERENCE_HOST_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace encore {

class HostPool {
 public:
  // The caller of parallel_for works too, so threads - 1 are started.
  explicit HostPool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { WorkerLoop(); });
  }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Calls body(i) once for each i in [0, count); one caller at a time, others wait for their turn.
  template <typename F>
  void parallel_for(size_t count, F body) {
    std::lock_guard<std::mutex> turn(turn_);
    std::unique_lock<std::mutex> lock(mutex_);
    body_ = body;
    count_ = count;
    next_ = 0;
    unfinished_ = count;
    ++loops_;
    wake_.notify_all();
    Work(lock);
    done_.wait(lock, [this] { return unfinished_ == 0; });
    body_ = nullptr;
  }

  // How many loops ran so far.
  size_t loops() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return loops_;
  }

 private:
  // Takes indices one by one; the lock is held except while a body runs.
  void Work(std::unique_lock<std::mutex>& lock) {
    while (next_ < count_) {
      const size_t i = next_++;
      lock.unlock();
      body_(i);
      lock.lock();
      if (--unfinished_ == 0) done_.notify_all();
    }
  }
  void WorkerLoop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || next_ < count_; });
      if (stop_) return;
      Work(lock);
    }
  }

  std::mutex turn_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::function<void(size_t)> body_;
  size_t count_ = 0;
  size_t next_ = 0;
  size_t unfinished_ = 0;
  size_t loops_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace encore

#endif  // ENCORE_REFERENCE_HOST_POOL_H_
