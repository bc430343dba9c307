// SPDX-License-Identifier: Apache-2.0
//
// A pool notices that its threads are of unequal speed, and forgets it again.

#include "engine/platform/uneven_stages.h"

#include <chrono>
#include <cstddef>
#include <thread>

#include "encore/cpu.h"
#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "engine/platform/thread_team.h"
#include "gtest/gtest.h"
#include "tests/support/results.h"

namespace encore {
namespace {

using internal::RunTeam;
using internal::RunUnevenly;
using internal::StageTimes;
using internal::Team;
using internal::UnevenStages;
using std::chrono::microseconds;

// Microseconds after some begin; a negative one is of an earlier stage.
struct Stage {
  int woke_at;
  int idle_at;
  int done;
  int end;
};
// After that stage twice.
bool AreUneven(const Stage& stage) {
  const StageTimes::Time begin{std::chrono::hours(1)};
  const StageTimes times{.begin = begin,
                         .woke_at = begin + microseconds(stage.woke_at),
                         .idle_at = begin + microseconds(stage.idle_at),
                         .done = begin + microseconds(stage.done),
                         .end = begin + microseconds(stage.end)};
  UnevenStages stages;
  EXPECT_FALSE(stages.AreSome());
  stages.Note(times);
  EXPECT_FALSE(stages.AreSome()) << "one may be chance";
  stages.Note(times);
  return stages.AreSome();
}

TEST(UnevenStages, WhoWaits) {
  // The caller, for the worker: long, short beside the stage, and for some microseconds.
  EXPECT_TRUE(AreUneven({.woke_at = -1, .idle_at = -1, .done = 100, .end = 200}));
  EXPECT_FALSE(AreUneven({.woke_at = -1, .idle_at = -1, .done = 300, .end = 380}));
  EXPECT_FALSE(AreUneven({.woke_at = -1, .idle_at = -1, .done = 10, .end = 50}));
  // The worker, for the caller.
  EXPECT_TRUE(AreUneven({.woke_at = -1, .idle_at = 100, .done = 200, .end = 200}));
  EXPECT_FALSE(AreUneven({.woke_at = -1, .idle_at = 180, .done = 200, .end = 200}));
}

TEST(UnevenStages, WakingUpIsNoSpeed) {
  // The caller waits as long as the worker took to wake up, and much longer.
  EXPECT_FALSE(AreUneven({.woke_at = 90, .idle_at = -1, .done = 100, .end = 200}));
  EXPECT_TRUE(AreUneven({.woke_at = 90, .idle_at = -1, .done = 100, .end = 400}));
  // In another stage.
  EXPECT_TRUE(AreUneven({.woke_at = -90, .idle_at = -1, .done = 100, .end = 200}));
}

TEST(UnevenStages, TheLast64Count) {
  const StageTimes::Time begin{std::chrono::hours(1)};
  const StageTimes even{.begin = begin, .woke_at = {}, .idle_at = {}, .done = begin, .end = begin};
  StageTimes uneven = even;
  uneven.end += microseconds(200);
  UnevenStages stages;
  stages.Note(uneven);
  for (int i = 0; i < 62; ++i) stages.Note(even);
  stages.Note(uneven);
  EXPECT_TRUE(stages.AreSome());
  stages.Note(even);
  EXPECT_FALSE(stages.AreSome());
}

// A busy machine may be in the way for a while: whether a pool says `wanted` after some of them.
template <typename Call>
bool SoonRunsUnevenly(const Executor& executor, bool wanted, const Call& call) {
  for (int tries = 0; tries < 100; ++tries) {
    EXPECT_TRUE(RunTeam(executor, call).ok());
    if (RunUnevenly(executor) == wanted) return true;
  }
  return false;
}

TEST(UnevenStages, PoolsNotice) {
  if (UsableCores() < 2) GTEST_SKIP() << "threads that share a core say nothing of speeds";
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const Executor executor = pool.executor();
  EXPECT_FALSE(RunUnevenly(executor)) << "before any call";
  for (const size_t slow : {size_t{0}, size_t{1}}) {
    EXPECT_TRUE(SoonRunsUnevenly(executor, true, [slow](Team& team) {
      for (int stage = 0; stage < 8; ++stage) {
        team.ForEach(2, [slow](size_t task, int /*thread*/) {
          std::this_thread::sleep_for(std::chrono::milliseconds(task == slow ? 5 : 1));
        });
      }
    })) << slow;
    EXPECT_TRUE(SoonRunsUnevenly(executor, false, [](Team& team) {
      for (int stage = 0; stage < 100; ++stage) team.ForEach(2, [](size_t, int) {});
    })) << slow;
  }
}

TEST(UnevenStages, OnlyPoolsKnow) {
  EXPECT_FALSE(RunUnevenly(Executor::Inline()));
  EXPECT_FALSE(RunUnevenly(Executor::OpenMP(2)));
}

}  // namespace
}  // namespace encore
