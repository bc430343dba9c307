// SPDX-License-Identifier: Apache-2.0
//
// A thread for what takes long, so that what is short does not wait for it.

#ifndef ENCORE_TOOLS_SERVE_LANE_H_
#define ENCORE_TOOLS_SERVE_LANE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "tools/serve/memory.h"

namespace encore::serve {

class Lane {
 public:
  Lane() : thread_([this] { Run(); }) {}
  // Does what is left.
  ~Lane() {
    Post(nullptr);
    thread_.join();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // `task` must not throw.
  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  void Run() {
    const MemoryScope scope(NoMemory::kWait);
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (!task) return;
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_LANE_H_
