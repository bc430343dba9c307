// SPDX-License-Identifier: Apache-2.0
//
// What the caller of one method sees of it and how it ends early: cancel, deadline, background,
// progress and stats of Python, and signals such as Ctrl-C.

#ifndef ENCORE_PYTHON_SRC_WATCH_H_
#define ENCORE_PYTHON_SRC_WATCH_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "encore/call_stats.h"
#include "encore/executor.h"
#include "python/src/without_gil.h"

namespace pyencore {

namespace nb = nanobind;

// A flag that ends calls early: pyencore.Stop.
class Stop {
 public:
  void Set() { flag_.store(true, std::memory_order_relaxed); }
  void Clear() { flag_.store(false, std::memory_order_relaxed); }
  bool IsSet() const { return flag_.load(std::memory_order_relaxed); }
  const std::atomic<bool>* flag() const { return &flag_; }

 private:
  std::atomic<bool> flag_{false};
};

// Of one method, which may make several calls of encore, one after another.
class Watch {
 public:
  // cancel: a Stop, something with is_set(), or None. seconds: from now on. progress: called with
  // texts, all texts, tokens and all tokens, or None. stats: filled, or null. signals: whether the
  // method's thread is the one that Python's handlers run on.
  Watch(nb::object cancel, std::optional<double> seconds, bool background, nb::object progress,
        encore::CallStats* stats, bool signals);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // work() without the GIL, with the executor, stats and progress of `options`.
  template <typename Options, typename F>
  auto Run(Options* options, const F& work) {
    encore::CallStats found;
    if (stats_ != nullptr) options->stats = &found;
    options->executor = Limited(options->executor);
    const auto run = [&] {
      if (!Waits()) return WithoutGil(work);
      if (has_progress_) {
        options->progress = [this](const encore::CallProgress& progress) { Tell(progress); };
      }
      return RunBeside(work);
    };
    auto result = run();
    if (stats_ != nullptr) Add(found);
    if (has_progress_) GoOn();
    return result;
  }

 private:
  // Whether something has to be looked at while encore computes.
  bool Waits() const { return signals_ || has_progress_ || event_.is_valid(); }
  encore::Executor Limited(encore::Executor executor) const;
  void Tell(const encore::CallProgress& progress);
  void Add(const encore::CallStats& found);

  // On a thread of its own, while this one waits and looks.
  template <typename F>
  auto RunBeside(const F& work) {
    if (stop_ != nullptr && stop_->IsSet()) end_.store(true, std::memory_order_relaxed);
    Look();
    if (error_) std::rethrow_exception(error_);
    std::optional<decltype(work())> result;
    std::exception_ptr failure;
    is_done_ = false;
    std::thread thread;
    try {
      thread = std::thread([&] {
        try {
          result.emplace(work());
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        is_done_ = true;
        changed_.notify_one();
      });
    } catch (const std::system_error&) {
      return WithoutGil(work);  // the system makes no more threads: nothing is looked at meanwhile
    }
    while (!Wait()) Look();
    {
      const ReleasedGil released;
      thread.join();
    }
    Look();
    if (failure) std::rethrow_exception(failure);
    if (error_) std::rethrow_exception(error_);
    return *std::move(result);
  }
  bool Wait();  // for some ms at most; whether the call is done
  void Look();  // with the GIL
  void CallProgressFunction();
  void GoOn();  // to the method's next call

  nb::object cancel_;  // keeps stop_
  const Stop* stop_ = nullptr;
  nb::object event_;  // is_set of another object
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  const bool background_;
  nb::object progress_;
  const bool has_progress_;
  encore::CallStats* const stats_;
  const bool signals_;

  std::atomic<bool> end_{false};
  std::exception_ptr error_;     // why it is ended
  encore::CallProgress before_;  // of the method's calls before this one
  encore::CallProgress last_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::optional<encore::CallProgress> news_;
};

template <typename Options, typename F>
auto Watched(Watch* watch, Options* options, const F& work) {
  return watch == nullptr ? WithoutGil(work) : watch->Run(options, work);
}

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_WATCH_H_
