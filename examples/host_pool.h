// SPDX-License-Identifier: Apache-2.0
//
// A small thread pool, in place of the one that your program has already. All that encore asks of
// it is the member function parallel_for(count, body).

#ifndef ENCORE_EXAMPLES_HOST_POOL_H_
#define ENCORE_EXAMPLES_HOST_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class HostPool {
 public:
  // `threads` counts the thread that calls parallel_for.
  explicit HostPool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~HostPool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) once for each i below count and returns when all calls have returned. One caller
  // at a time.
  void parallel_for(size_t count, const std::function<void(size_t)>& body) {
    std::unique_lock lock(mutex_);
    body_ = &body;
    count_ = count;
    next_ = 0;
    wake_.notify_all();
    RunTasks(lock);
    done_.wait(lock, [this] { return running_ == 0; });
    body_ = nullptr;
  }

 private:
  // Takes tasks until none is left. The lock is held between tasks.
  void RunTasks(std::unique_lock<std::mutex>& lock) {
    while (body_ != nullptr && next_ < count_) {
      const size_t i = next_++;
      ++running_;
      lock.unlock();
      (*body_)(i);
      lock.lock();
      if (--running_ == 0 && next_ == count_) done_.notify_one();
    }
  }

  void Work() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      RunTasks(lock);
      wake_.wait(lock, [this] { return stop_ || (body_ != nullptr && next_ < count_); });
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(size_t)>* body_ = nullptr;
  size_t count_ = 0, next_ = 0, running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

#endif  // ENCORE_EXAMPLES_HOST_POOL_H_
