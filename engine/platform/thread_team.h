// SPDX-License-Identifier: Apache-2.0
//
// Team and RunTeam: the threads of one call, whichever executor gives them. Nothing here allocates.

#ifndef ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_
#define ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_

#include <cstddef>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"
#include "engine/platform/call_gate.h"
#include "engine/platform/call_meter.h"
#include "engine/platform/stage_board.h"

namespace encore::inline v0_1::internal {

// The threads of one call, passed to a recipe by RunTeam.
class Team {
 public:
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // How many threads this call really has: at least 1 and at most the executor's threads().
  int threads() const { return threads_; }

  // A stage of tasks of about equal cost. Calls task(size_t i, int thread) once for each i in [0,
  // count), 0 <= thread < min(threads(), count), whichever executor it is. At most one task at a
  // time has a given thread, so scratch indexed by thread is safe. Which thread gets which task is
  // not defined, and not the same from run to run: no result may depend on it. Returns when all are
  // done; what they wrote is then visible to all threads. Tasks that have not begun when the call
  // is to end are left out.
  template <typename F>
  void ForEach(size_t count, const F& task) {
    RunTasks(count, StageBoard::Order::kOwnRanges, task);
  }

  // The same for tasks of unequal cost, the most expensive first: whoever is free takes the next.
  template <typename F>
  void ForEachInOrder(size_t count, const F& task) {
    RunTasks(count, StageBoard::Order::kRising, task);
  }

  // Whether tasks are left out from here on, so that a recipe may end.
  bool IsStopped() const { return gate_ != nullptr && gate_->IsStopped(); }

  // Whether the call may be asked to stop or to give way. Long tasks then have parts, and ask
  // MayGoOn before each: if it is false, the task returns, whatever is missing.
  bool HasGate() const { return gate_ != nullptr; }
  bool MayGoOn(int thread) const { return gate_ == nullptr || gate_->MayGoOn(thread); }

 private:
  template <typename F>
  void RunTasks(size_t count, StageBoard::Order order, const F& task) {
    if (gate_ == nullptr && meter_ == nullptr) {
      ForEachRange(count, order, &RunRange<F>, &task);
    } else {
      const Watched<F> watched{&task, gate_, meter_};
      ForEachRange(count, order, &RunWatched<F>, &watched);
    }
  }
  template <typename F>
  static void RunRange(const void* f, size_t begin, size_t end, int thread) {
    for (size_t i = begin; i < end; ++i) (*static_cast<const F*>(f))(i, thread);
  }
  template <typename F>
  struct Watched {
    const F* task;
    CallGate* gate;
    CallMeter* meter;
  };
  template <typename F>
  static void RunWatched(const void* f, size_t begin, size_t end, int thread) {
    const auto& watched = *static_cast<const Watched<F>*>(f);
    const CallMeter::Tasks measured(watched.meter, thread);
    if (watched.gate == nullptr) return RunRange<F>(watched.task, begin, end, thread);
    for (size_t i = begin; i < end && watched.gate->MayGoOn(thread); ++i) {
      RunRange<F>(watched.task, i, i + 1, thread);
    }
  }
  friend struct RecipeRunner;

  Team(StageThreads* stages, int threads, CallGate* gate, CallMeter* meter)
      : stages_(stages), threads_(threads), gate_(gate), meter_(meter) {}
  ENCORE_API void ForEachRange(size_t count, StageBoard::Order order, StageFn fn, const void* task);

  StageThreads* stages_;  // null if there is one thread
  int threads_;
  CallGate* gate_;    // null if the call runs to its end without a pause
  CallMeter* meter_;  // null if nobody wants to know
};

// Whether threads of the executor waited for each other for long lately, because one lost its core.
// Only of pools; false of the others.
bool RunUnevenly(const Executor& executor);

using RecipeFn = void (*)(const void* recipe, Team& team);
ENCORE_API Status RunTeamErased(const Executor& executor, int threads, RecipeFn fn,
                                const void* recipe);

// Runs recipe(Team&) on one thread, with `threads` of the executor's threads or fewer to share its
// stages, and returns when no thread of this call runs a task of it any more. The stages of a
// recipe come one after another:
//   RunTeam(executor, [&](Team& team) {
//     team.ForEach(rows, [&](size_t row, int thread) { ... });
//     team.ForEach(columns, [&](size_t column, int thread) { ... });
//   });
// One pool, one parallel region or one parallel_for serves the whole call. The recipe runs on the
// calling thread, or on the first one that a host's parallel_for starts. Recipe and tasks must not
// throw. All arithmetic runs under the default floating-point modes (fp_env.h); the caller's are
// left as found. kCancelled or kDeadlineExceeded: some tasks were left out.
template <typename F>
Status RunTeam(const Executor& executor, int threads, const F& recipe) {
  return RunTeamErased(
      executor, threads, [](const void* f, Team& team) { (*static_cast<const F*>(f))(team); },
      &recipe);
}
// With all of the executor's threads.
template <typename F>
Status RunTeam(const Executor& executor, const F& recipe) {
  return RunTeam(executor, executor.threads(), recipe);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_
