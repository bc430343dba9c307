// SPDX-License-Identifier: Apache-2.0
//
// CallMeter: which threads took part in a call, and how long its first one waited for the others.

#ifndef ENCORE_ENGINE_PLATFORM_CALL_METER_H_
#define ENCORE_ENGINE_PLATFORM_CALL_METER_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "encore/export.h"

namespace encore::inline v0_1::internal {

class CallMeter {
 public:
  using Clock = std::chrono::steady_clock;

  CallMeter() = default;
  CallMeter(const CallMeter&) = delete;
  CallMeter& operator=(const CallMeter&) = delete;

  // While it lives, what its thread starts on any executor is measured there, or not at all.
  class Scope {
   public:
    explicit Scope(CallMeter* meter) : before_(Exchange(meter)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { Exchange(before_); }

   private:
    CallMeter* const before_;
  };
  // Of the calling thread: null where nothing is measured.
  static CallMeter* Current();

  // Around a stage, by thread 0: what of it is not in that thread's own tasks is waiting.
  class Stage {
   public:
    explicit Stage(CallMeter* meter) : meter_(meter) {
      if (meter_ == nullptr) return;
      meter_->own_ = Clock::duration::zero();
      begin_ = Clock::now();
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    ~Stage() {
      if (meter_ != nullptr) meter_->waiting_ += Clock::now() - begin_ - meter_->own_;
    }

   private:
    CallMeter* const meter_;
    Clock::time_point begin_;
  };
  // Around tasks, by the thread of this number.
  class Tasks {
   public:
    Tasks(CallMeter* meter, int thread) : meter_(meter), is_first_(thread == 0) {
      if (meter_ == nullptr) return;
      if (is_first_) {
        begin_ = Clock::now();
      } else {
        meter_->NoteHelper(static_cast<size_t>(thread));
      }
    }
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;
    ~Tasks() {
      if (meter_ != nullptr && is_first_) meter_->own_ += Clock::now() - begin_;
    }

   private:
    CallMeter* const meter_;
    const bool is_first_;
    Clock::time_point begin_;
  };

  // Between stages, by the thread that made the call.
  Clock::duration waiting() const { return waiting_; }
  size_t helpers() const {
    int count = 0;
    for (const std::atomic<uint64_t>& word : helped_) {
      count += std::popcount(word.load(std::memory_order_relaxed));
    }
    return static_cast<size_t>(count);
  }

 private:
  // Exported for encore::text, which sets it: a shared engine has the only one of it.
  ENCORE_API static CallMeter* Exchange(CallMeter* meter);

  // Of numbers from kMostThreads on one bit.
  static constexpr size_t kMostThreads = 1024;
  void NoteHelper(size_t thread) {
    const size_t known = std::min(thread, kMostThreads - 1);
    std::atomic<uint64_t>& word = helped_[known / 64];
    const uint64_t bit = uint64_t{1} << (known % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) {
      word.fetch_or(bit, std::memory_order_relaxed);
    }
  }

  // Thread 0's own.
  Clock::duration own_{0};  // in tasks of the stage at hand
  Clock::duration waiting_{0};
  std::array<std::atomic<uint64_t>, kMostThreads / 64> helped_ = {};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CALL_METER_H_
