// SPDX-License-Identifier: Apache-2.0
//
// Executor::InBackground: urgent calls get the threads of a pool at once, background calls go on
// with what is left, end when they are stopped, and compute the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "engine/platform/thread_team.h"
#include "reference/encoder_model.h"
#include "tests/support/executors.h"
#include "tests/support/watchdog.h"

namespace encore {
namespace {

using Clock = std::chrono::steady_clock;
using internal::RunTeam;
using internal::Team;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kPatience{10};

class BackgroundTest : public testing::Test {
 private:
  const Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name(),
                           std::chrono::seconds(120)};
};

ThreadPool PoolOf(int threads) {
  Result<ThreadPool> pool = ThreadPool::Create({.threads = threads});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return *std::move(pool);
}

// True once so many threads are in it at the same time, false if they do not come.
bool Meet(std::atomic<int>* there, int threads) {
  ++*there;
  const Clock::time_point end = Clock::now() + kPatience;
  while (*there < threads && Clock::now() < end) std::this_thread::yield();
  return *there >= threads;
}

// A call on all threads, each of which has a task at the same time.
bool UsesAllThreads(const Executor& executor) {
  std::atomic<int> there = 0;
  std::atomic<bool> met = true;
  const Status status = RunTeam(executor, [&](Team& team) {
    if (team.threads() < executor.threads()) met = false;
    team.ForEach(static_cast<size_t>(team.threads()), [&](size_t, int) {
      if (!Meet(&there, team.threads())) met = false;
    });
  });
  return status.ok() && met;
}

// A call on all threads of the pool, of which one calls f and the others wait for it.
template <typename F>
void HoldAllThreads(const ThreadPool& pool, const F& f) {
  std::atomic<int> there = 0;
  std::atomic<bool> over = false;
  const auto body = [&](size_t i) {
    EXPECT_TRUE(Meet(&there, pool.threads()));
    if (i != 0) return over.wait(false);
    f();
    over = true;
    over.notify_all();
  };
  EXPECT_TRUE(RunParallel(pool.executor(), static_cast<size_t>(pool.threads()), body).ok());
}

// A background call of short tasks without end, until it is destroyed.
class Indexing {
 public:
  explicit Indexing(const Executor& executor)
      : thread_([this, executor = executor.InBackground().WithStop(&stop_)] {
          while (!stop_) {
            (void)RunParallel(executor, 10000, [&](size_t) {
              std::this_thread::sleep_for(std::chrono::microseconds(200));
              ++done_;
            });
          }
          ended_ = true;
        }) {
    while (done_ == 0) std::this_thread::yield();
  }
  ~Indexing() {
    stop_ = true;
    thread_.join();
  }
  Indexing(const Indexing&) = delete;
  Indexing& operator=(const Indexing&) = delete;

  int done() const { return done_; }
  void Stop() { stop_ = true; }
  bool ended() const { return ended_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> done_{0};
  std::thread thread_;
};

TEST_F(BackgroundTest, TheMarkIsKept) {
  const ThreadPool pool = PoolOf(2);
  EXPECT_FALSE(pool.executor().background());
  const Executor executor = pool.executor().InBackground();
  EXPECT_TRUE(executor.background());
  EXPECT_TRUE(executor.WithoutStop().background());
  EXPECT_EQ(executor.threads(), 2);
  EXPECT_EQ(executor.kind(), Executor::Kind::kPool);
}

TEST_F(BackgroundTest, AloneItUsesAllThreads) {
  for (const int threads : {1, 2, 4, 9}) {
    const ThreadPool pool = PoolOf(threads);
    EXPECT_TRUE(UsesAllThreads(pool.executor().InBackground())) << threads;
  }
}

TEST_F(BackgroundTest, AnUrgentCallGetsAllThreads) {
  for (const int threads : {2, 3, 7}) {
    const ThreadPool pool = PoolOf(threads);
    const Indexing indexing(pool.executor());
    for (int call = 0; call < 20; ++call) {
      ASSERT_TRUE(UsesAllThreads(pool.executor())) << threads;
    }
  }
}

// A stage that began when there was no core for all of them.
TEST_F(BackgroundTest, AllThreadsComeOnceAnUrgentCallIsOver) {
  const ThreadPool pool = PoolOf(std::max(2, UsableCores()));
  for (int call = 0; call < 20; ++call) {
    std::atomic<bool> begun = false;
    std::thread urgent([&, call] {
      EXPECT_TRUE(RunParallel(pool.executor(), 1, [&](size_t) {
                    begun = true;
                    std::this_thread::sleep_for(std::chrono::microseconds(call % 5 * 1000));
                  }).ok());
    });
    while (!begun) std::this_thread::yield();
    EXPECT_TRUE(UsesAllThreads(pool.executor().InBackground())) << call;
    urgent.join();
  }
}

// Workers leave a task in the middle, and come back to it.
TEST_F(BackgroundTest, ALongTaskIsLeftBetweenItsParts) {
  const ThreadPool pool = PoolOf(3);
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  std::atomic<bool> answered = false;
  std::thread background([&] {
    EXPECT_TRUE(RunTeam(pool.executor().InBackground(), [&](Team& team) {
                  EXPECT_TRUE(team.HasGate());
                  team.ForEach(3, [&](size_t, int thread) {
                    ++begun;
                    while (!answered && team.MayGoOn(thread)) std::this_thread::yield();
                    ++ended;
                  });
                }).ok());
  });
  while (begun < 3) std::this_thread::yield();
  EXPECT_TRUE(UsesAllThreads(pool.executor()));
  EXPECT_EQ(ended, 0);
  answered = true;
  background.join();
  EXPECT_EQ(ended, 3);
}

// As many urgent threads as cores leave none to the background call, whose caller sleeps then.
TEST_F(BackgroundTest, NothingBeginsWhileAnUrgentCallHasTheCores) {
  const ThreadPool pool = PoolOf(std::max(2, UsableCores()));
  const Indexing indexing(pool.executor());
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 20) << "background tasks began beside urgent ones";
    int begun = 0;
    Clock::duration time{};
    HoldAllThreads(pool, [&] {
      const Clock::time_point begin = Clock::now();
      std::this_thread::sleep_for(milliseconds(20));  // for the task at hand
      const int before = indexing.done();
      std::this_thread::sleep_for(milliseconds(30));
      begun = indexing.done() - before;
      time = Clock::now() - begin;
    });
    if (begun == 0 && time < milliseconds(90)) break;
  }
  const int before = indexing.done();
  const Clock::time_point end = Clock::now() + kPatience;
  while (indexing.done() < before + 100 && Clock::now() < end) std::this_thread::yield();
  EXPECT_GE(indexing.done(), before + 100) << "it goes on afterwards";
}

TEST_F(BackgroundTest, AnUrgentCallMayWaitForABackgroundOne) {
  const ThreadPool pool = PoolOf(std::max(2, UsableCores()));
  const Indexing indexing(pool.executor());
  HoldAllThreads(pool, [&] {
    const int want = indexing.done() + 3;
    const Clock::time_point end = Clock::now() + kPatience;
    while (indexing.done() < want && Clock::now() < end) std::this_thread::yield();
    EXPECT_GE(indexing.done(), want);
  });
}

// Its thread would wait for itself.
TEST_F(BackgroundTest, InsideAnUrgentCallTheMarkDoesNotCount) {
  const ThreadPool pool = PoolOf(std::max(2, UsableCores()));
  std::atomic<int> ran = 0;
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(RunParallel(pool.executor(), 8, [&](size_t) {
                EXPECT_TRUE(
                    RunParallel(pool.executor().InBackground(), 50, [&](size_t) { ++ran; }).ok());
              }).ok());
  EXPECT_EQ(ran, 400);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3)) << "50 waits of 0.1 s";
}

TEST_F(BackgroundTest, AStopEndsACallThatGivesWay) {
  const ThreadPool pool = PoolOf(std::max(2, UsableCores()));
  int ended = 0;
  for (int attempt = 0; attempt < 20 && ended < 5; ++attempt) {
    Indexing indexing(pool.executor());
    // Without tasks for workers, each of which would end the one at hand first.
    EXPECT_TRUE(RunTeam(pool.executor(), [&](Team&) {
                  std::this_thread::sleep_for(milliseconds(10));
                  indexing.Stop();
                  std::this_thread::sleep_for(milliseconds(20));
                  ended += indexing.ended() ? 1 : 0;
                }).ok());
  }
  EXPECT_EQ(ended, 5) << "it ends before the urgent call does";
}

TEST_F(BackgroundTest, AnEncoderHasTheSameBitsBesideUrgentCalls) {
  constexpr size_t kTokens = 400;
  constexpr size_t kWidth = 64;
  const EncoderModel model(EncoderConfig::Uniform(kWidth, 3, {.num_heads = 4, .d_ff = 512}));
  const Encoder encoder = model.Make();
  const std::vector<float> x(kTokens * kWidth, 0.5f);
  // Plans by sequences, by rows and by columns.
  for (const std::vector<size_t>& starts :
       {std::vector<size_t>{0, 100, 200, 300, kTokens}, std::vector<size_t>{0, 20, kTokens},
        std::vector<size_t>{0, 24}}) {
    const Batch batch{.seq_starts = starts};
    const std::vector<float> rows(x.begin(),
                                  x.begin() + static_cast<ptrdiff_t>(starts.back() * kWidth));
    const std::vector<float> want = Forward(encoder, batch, rows);
    for (const auto& [name, executor] : Executors()) {
      SCOPED_TRACE(name);
      std::atomic<bool> stop = false;
      std::thread urgent([&, executor = executor] {
        if (executor.kind() != Executor::Kind::kPool) return;
        while (!stop) {
          (void)RunParallel(executor, 7, [](size_t) {});
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
      const Executor background = executor.InBackground();
      std::vector<float> y(rows.size());
      Result<Workspace> workspace = encoder.MakeWorkspace(batch, background);
      ASSERT_TRUE(workspace.ok()) << workspace.status();
      for (int i = 0; i < 3; ++i) {
        const Status status =
            encoder.Forward(batch, ConstView(rows.data(), {starts.back(), kWidth}),
                            MutableView(y.data(), {starts.back(), kWidth}), *workspace, background);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(y, want);
      }
      stop = true;
      urgent.join();
    }
  }
}

}  // namespace
}  // namespace encore
