// SPDX-License-Identifier: Apache-2.0
//
// CallWatch: CallStats and CallProgress of one call, for whoever wants them. Else no clock is read.

#ifndef ENCORE_ENGINE_TEXT_CALL_WATCH_H_
#define ENCORE_ENGINE_TEXT_CALL_WATCH_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "encore/call_stats.h"
#include "engine/platform/call_meter.h"

namespace encore::inline v0_1::internal {

class CallWatch {
 public:
  using Stage = int64_t CallStats::*;

  // Of a call with these options, which begins now, by tokenizing. They outlive it.
  template <typename Options>
  explicit CallWatch(const Options& options)
      : stats_(options.stats), progress_(options.progress ? &options.progress : nullptr) {
    if (stats_ == nullptr) return;
    *stats_ = {};
    since_ = CallMeter::Clock::now();
  }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  ~CallWatch() { Enter(stage_); }

  // From here on time counts for this stage.
  void Enter(Stage stage) {
    if (stats_ == nullptr) return;
    const CallMeter::Clock::time_point now = CallMeter::Clock::now();
    const CallMeter::Clock::duration waited = meter_.waiting() - waited_;
    stats_->*stage_ += Nanoseconds(now - since_ - waited);
    stats_->waiting += Nanoseconds(waited);
    stats_->helpers = meter_.helpers();
    since_ = now;
    waited_ += waited;
    stage_ = stage;
  }

  void Begin(size_t texts) { done_.all_texts = texts; }
  void AddTokenized(size_t tokens) { done_.all_tokens += tokens; }
  void AddDone(size_t texts, size_t tokens) {
    done_.texts += texts;
    done_.tokens += tokens;
    if (stats_ != nullptr) {
      stats_->texts = done_.texts;
      stats_->tokens = done_.tokens;
    }
    if (progress_ == nullptr) return;
    const CallMeter::Scope unmeasured(nullptr);
    (*progress_)(done_);
  }
  bool WantsBytes() const { return stats_ != nullptr; }
  void NoteBytes(size_t bytes) { stats_->scratch_bytes = bytes; }

 private:
  static int64_t Nanoseconds(CallMeter::Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }

  CallStats* const stats_;
  const std::function<void(const CallProgress&)>* const progress_;
  CallMeter meter_;
  const CallMeter::Scope scope_{stats_ != nullptr ? &meter_ : nullptr};
  Stage stage_ = &CallStats::tokenizing;
  CallMeter::Clock::time_point since_{};
  CallMeter::Clock::duration waited_{0};
  CallProgress done_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_CALL_WATCH_H_
