// SPDX-License-Identifier: Apache-2.0
//
// Team and RunTeam: the threads of one call, whichever executor gives them, and the sharing of a
// stage's tasks among them. No OpenMP in this header, and nothing here allocates.

#ifndef ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_
#define ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_

#include <cstddef>

#include "encore/executor.h"
#include "engine/platform/stage_board.h"

namespace encore::inline v0_1::internal {

struct TeamState;  // what the threads of a team share; thread_team.cc

// One call's worth of threads, handed to a recipe by RunTeam.
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
  // done; what they wrote is then visible to all threads.
  template <typename F>
  void ForEach(size_t count, const F& task) {
    ForEachRange(count, StageBoard::Order::kOwnRanges, &RunRange<F>, &task);
  }

  // The same for tasks of unequal cost, the most expensive first: whoever is free takes the next.
  template <typename F>
  void ForEachInOrder(size_t count, const F& task) {
    ForEachRange(count, StageBoard::Order::kRising, &RunRange<F>, &task);
  }

 private:
  template <typename F>
  static void RunRange(const void* f, size_t begin, size_t end, int thread) {
    for (size_t i = begin; i < end; ++i) (*static_cast<const F*>(f))(i, thread);
  }
  friend struct TeamState;

  Team(TeamState* state, int thread, int threads)
      : state_(state), thread_(thread), threads_(threads) {}
  void ForEachRange(size_t count, StageBoard::Order order, StageFn fn, const void* task);

  TeamState* state_;
  int thread_;  // of the thread that runs this copy of the recipe
  int threads_;
};

// Whether threads of the executor waited for each other for long lately, because one lost its core.
// Only of pools; false of the others.
bool RunUnevenly(const Executor& executor);

using RecipeFn = void (*)(const void* recipe, Team& team);
void RunTeamErased(const Executor& executor, int threads, RecipeFn fn, const void* recipe);

// Runs recipe(Team&) with `threads` of the executor's threads, or fewer, and returns when all is
// done and no thread of this call runs a task of it any more. A recipe is ordinary code around
// calls of ForEach, and the stages come one after another:
//   RunTeam(executor, [&](Team& team) {
//     team.ForEach(rows, [&](size_t row, int thread) { ... });
//     team.ForEach(columns, [&](size_t column, int thread) { ... });
//   });
// With OpenMP EVERY thread runs the recipe (its ForEach calls are where the threads meet), so the
// recipe must take the same path on each and must write only to its own locals outside of ForEach;
// with the others only the caller does. Tasks must not throw. All arithmetic runs under the default
// floating-point modes (fp_env.h); the caller's are left as found.
template <typename F>
void RunTeam(const Executor& executor, int threads, const F& recipe) {
  RunTeamErased(
      executor, threads, [](const void* f, Team& team) { (*static_cast<const F*>(f))(team); },
      &recipe);
}
// With all of them.
template <typename F>
void RunTeam(const Executor& executor, const F& recipe) {
  RunTeam(executor, executor.threads(), recipe);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_THREAD_TEAM_H_
