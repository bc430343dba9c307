// SPDX-License-Identifier: Apache-2.0
//
// Whether a pool's threads are of unequal speed, from the times of its stages: one that lost its
// core, or a part of it, is waited for.

#ifndef ENCORE_ENGINE_PLATFORM_UNEVEN_STAGES_H_
#define ENCORE_ENGINE_PLATFORM_UNEVEN_STAGES_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

#include "engine/platform/spin.h"

namespace encore::inline v0_1::internal {

// Timestamps of one stage. woke_at and idle_at are left over from an earlier stage if they precede
// begin.
struct StageTimes {
  using Time = std::chrono::steady_clock::time_point;
  Time begin;
  Time woke_at;  // the last worker that had been asleep found the stage
  Time idle_at;  // a worker that had run a task found no other
  Time done;     // the caller found no other
  Time end;      // all tasks were done
};

// The last 64 stages. Only the pool's caller calls Note; any thread may call AreSome.
class UnevenStages {
 public:
  void Note(const StageTimes& stage) {
    const uint64_t before = waits_.load(std::memory_order_relaxed);
    waits_.store(before << 1 | uint64_t{HasMuchWaiting(stage)}, std::memory_order_relaxed);
  }
  // One stage with much waiting may be chance.
  bool AreSome() const { return std::popcount(waits_.load(std::memory_order_relaxed)) >= 2; }

 private:
  // Whether a thread waited through a quarter of the stage. Wake-up latency does not count as
  // waiting.
  static bool HasMuchWaiting(const StageTimes& stage) {
    using Duration = StageTimes::Time::duration;
    const Duration late = std::max(stage.woke_at - stage.begin, Duration::zero());
    const Duration of_caller = stage.end - stage.done - late;
    const Duration of_worker =
        stage.idle_at >= stage.begin ? stage.end - stage.idle_at : Duration::zero();
    const Duration waited = std::max(of_caller, of_worker);
    return waited > kStageSpin && 4 * waited > stage.end - stage.begin;
  }

  std::atomic<uint64_t> waits_{0};  // bit i: whether there was much waiting i stages ago
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_UNEVEN_STAGES_H_
