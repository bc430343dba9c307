// SPDX-License-Identifier: Apache-2.0
//
// Watchdog: ends the test program if something hangs, and says what. It is about hangs alone: its
// time should be many times what the slowest machine needs.

#ifndef ENCORE_TESTS_SUPPORT_WATCHDOG_H_
#define ENCORE_TESTS_SUPPORT_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace encore {

class Watchdog {
 public:
  Watchdog(const char* what, std::chrono::seconds time)
      : thread_([this, what, time] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (done_.wait_for(lock, time, [this] { return over_; })) return;
          std::fprintf(stderr, "%s: hangs\n", what);
          std::fflush(stderr);
          std::abort();
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    done_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;  // last, so that it finds the others made
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_WATCHDOG_H_
