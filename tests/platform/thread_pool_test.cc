// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: what Create takes and refuses, calls from many threads at once and inside each other,
// thousands of short calls in which no worker may sleep through its wake-up, workers that are held
// up, and that workers sleep between calls.

#include "encore/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/cpu.h"
#include "encore/executor.h"
#include "engine/platform/thread_team.h"
#include "gtest/gtest.h"
#include "reference/host_pool.h"
#include "tests/support/cpu_time.h"
#include "tests/support/results.h"
#include "tests/support/sanitizers.h"
#include "tests/support/watchdog.h"

#if defined(__unix__)
#include <pthread.h>
#include <signal.h>
#endif

namespace encore {
namespace {

using internal::RunTeam;
using internal::Team;
using std::chrono::microseconds;

// No test may hang: each takes seconds at most.
class ThreadPoolTest : public testing::Test {
 private:
  const Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name(),
                           std::chrono::seconds(120)};
};

ThreadPool MakePool(int threads, microseconds idle_spin = microseconds(0)) {
  Result<ThreadPool> pool = ThreadPool::Create({.threads = threads, .idle_spin = idle_spin});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return *std::move(pool);
}

// A call of two stages, whose tasks count themselves. Returns how many threads it had.
int CountedCall(const Executor& executor, int threads, std::atomic<int>* tasks) {
  std::atomic<int> had = 0;
  EXPECT_TRUE(RunTeam(executor, threads, [&](Team& team) {
                team.ForEach(5,
                             [&](size_t, int) { tasks->fetch_add(1, std::memory_order_relaxed); });
                team.ForEach(2, [&](size_t, int) {
                  tasks->fetch_add(1, std::memory_order_relaxed);
                  had.store(team.threads(), std::memory_order_relaxed);
                });
              }).ok());
  return had;
}
constexpr int kTasksOfACall = 7;

TEST_F(ThreadPoolTest, CreateNamesWhatIsWrong) {
  const auto refused = [](const ThreadPoolOptions& options, const std::string& words) {
    EXPECT_TRUE(FailsWith(ThreadPool::Create(options), {words}));
  };
  refused({.threads = -1}, "threads is -1; wanted 0 to 1024");
  refused({.threads = ThreadPool::kMaxThreads + 1}, "threads is 1025");
  refused({.threads = 2, .idle_spin = microseconds(-1)}, "idle_spin is -1 us; wanted 0 to 1000000");
  refused({.threads = 2, .idle_spin = microseconds(1000001)}, "idle_spin is 1000001 us");
  refused({.threads = 2, .idle_spin = microseconds::max()}, "idle_spin");
  EXPECT_TRUE(ThreadPool::Create({.threads = 2, .idle_spin = microseconds(1000000)}).ok());
}

TEST_F(ThreadPoolTest, HasTheThreadsAskedFor) {
  const ThreadPool usable = Taken(ThreadPool::Create());
  EXPECT_EQ(usable.threads(), std::min(UsableCores(), ThreadPool::kMaxThreads));
  for (const int threads : {1, 2, 3, 7, 40}) {
    const ThreadPool pool = MakePool(threads);
    EXPECT_EQ(pool.threads(), threads);
    EXPECT_EQ(pool.executor().kind(), Executor::Kind::kPool);
    EXPECT_EQ(pool.executor().threads(), threads);
    std::atomic<int> tasks = 0;
    EXPECT_EQ(CountedCall(pool.executor(), threads, &tasks), threads);
    EXPECT_EQ(tasks, kTasksOfACall);
  }
}

TEST_F(ThreadPoolTest, EveryNumberIsAThreadOfItsOwn) {
  ThreadPool pool = MakePool(4);
  std::vector<std::thread::id> ids(4);
  std::atomic<int> there = 0;
  EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                team.ForEach(4, [&](size_t, int thread) {
                  ids[static_cast<size_t>(thread)] = std::this_thread::get_id();
                  ++there;
                  while (there < 4)
                    std::this_thread::yield();  // until all four have a task at the same time
                });
              }).ok());
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 4u);
}

TEST_F(ThreadPoolTest, MovesWithItsThreads) {
  ThreadPool pool = MakePool(3);
  const Executor executor = pool.executor();
  ThreadPool moved = std::move(pool);
  EXPECT_EQ(moved.threads(), 3);
  EXPECT_EQ(moved.executor().pool(), executor.pool());
  std::atomic<int> tasks = 0;
  EXPECT_EQ(CountedCall(executor, 3, &tasks), 3);
  // What was moved from is a pool of the caller alone.
  EXPECT_EQ(pool.threads(), 1);  // NOLINT(bugprone-use-after-move): its state is promised
  EXPECT_EQ(pool.executor().kind(), Executor::Kind::kInline);
  pool = MakePool(2);
  EXPECT_EQ(CountedCall(pool.executor(), 2, &tasks), 2);
  pool = std::move(moved);  // ends the two's thread
  EXPECT_EQ(pool.threads(), 3);
  EXPECT_EQ(CountedCall(executor, 3, &tasks), 3);
  EXPECT_EQ(tasks, 3 * kTasksOfACall);
}

TEST_F(ThreadPoolTest, ACallMeanwhileRunsOnItsCaller) {
  const ThreadPool pool = MakePool(3);
  std::atomic<bool> busy = false;
  std::atomic<bool> release = false;
  std::thread first([&] {
    EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                  team.ForEach(1, [&](size_t, int) {
                    busy = true;
                    while (!release) std::this_thread::yield();
                  });
                }).ok());
  });
  while (!busy) std::this_thread::yield();
  std::atomic<int> tasks = 0;
  std::atomic<int> strangers = 0;
  const std::thread::id self = std::this_thread::get_id();
  EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                EXPECT_EQ(team.threads(), 1);
                team.ForEach(100, [&](size_t, int) {
                  ++tasks;
                  if (std::this_thread::get_id() != self) ++strangers;
                });
              }).ok());
  EXPECT_EQ(tasks, 100);
  EXPECT_EQ(strangers, 0);
  release = true;
  first.join();
  EXPECT_EQ(CountedCall(pool.executor(), 3, &tasks), 3) << "the threads are free again";
}

TEST_F(ThreadPoolTest, SeveralCallersAtOnce) {
  constexpr int kCallers = 4;
  const int calls = kSanitized ? 300 : 2000;
  for (const int threads : {2, 3, UsableCores() + 3}) {
    const ThreadPool pool = MakePool(threads, microseconds(threads == 3 ? 50 : 0));
    std::atomic<int> tasks = 0;
    std::atomic<int> wrong_counts = 0;
    std::vector<std::thread> callers;
    for (int c = 0; c < kCallers; ++c) {
      callers.emplace_back([&] {
        for (int call = 0; call < calls; ++call) {
          const int used = CountedCall(pool.executor(), threads, &tasks);
          if (used != 1 && used != threads) ++wrong_counts;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(tasks, kCallers * calls * kTasksOfACall);
    EXPECT_EQ(wrong_counts, 0);
  }
}

// Calls that come while workers are about to sleep, asleep, or still on their way back: one that
// missed its wake-up would hang them all.
TEST_F(ThreadPoolTest, ThousandsOfShortCalls) {
  for (const int idle_us : {0, 5, 1000}) {
    for (const int threads : {2, 3, 2 * UsableCores() + 3}) {
      // With more threads than cores a call takes time slices.
      const int calls = (threads <= UsableCores() ? 10000 : 500) / (kSanitized ? 5 : 1);
      const ThreadPool pool = MakePool(threads, microseconds(idle_us));
      std::atomic<int> tasks = 0;
      for (int call = 0; call < calls; ++call) {
        // Now and then only some of the threads are called; the others must not notice.
        const int used = call % 3 == 0 ? 1 + call % threads : threads;
        ASSERT_EQ(CountedCall(pool.executor(), used, &tasks), used);
        // Pauses of 0 to some 20 us, which meet the others in every state.
        const auto until = std::chrono::steady_clock::now() + microseconds(call * 7 % 23);
        while (call % 4 != 0 && std::chrono::steady_clock::now() < until) {
        }
      }
      EXPECT_EQ(tasks % kTasksOfACall, 0);
    }
  }
}

TEST_F(ThreadPoolTest, PoolsComeAndGo) {
  std::atomic<int> tasks = 0;
  for (int i = 0; i < (kSanitized ? 50 : 300); ++i) {
    const ThreadPool pool = MakePool(2 + i % 4, microseconds(i % 2 * 100));
    for (int call = 0; call < i % 3; ++call) CountedCall(pool.executor(), pool.threads(), &tasks);
  }
  EXPECT_EQ(tasks % kTasksOfACall, 0);
}

TEST_F(ThreadPoolTest, CallsInsideOfTasks) {
  const ThreadPool pool = MakePool(3);
  const ThreadPool other = MakePool(2);
  HostPool host(3);
  std::atomic<int> tasks = 0;
  for (int round = 0; round < 100; ++round) {
    // In a task of a host's threads, all of which want the pool.
    EXPECT_TRUE(RunTeam(Executor::HostPool(3, host), [&](Team& team) {
                  team.ForEach(6, [&](size_t, int) { CountedCall(pool.executor(), 3, &tasks); });
                }).ok());
    // In a task of the pool's own, which are all taken.
    EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                  team.ForEach(6, [&](size_t, int) {
                    EXPECT_EQ(CountedCall(pool.executor(), 3, &tasks), 1);
                    CountedCall(other.executor(), 2, &tasks);
                  });
                }).ok());
  }
  EXPECT_EQ(tasks, 100 * (6 + 12) * kTasksOfACall);
}

#if defined(__unix__)
// Threads that a signal holds up until this object goes.
class HeldUp {
 public:
  HeldUp() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      ++held;
      const timespec millisecond{0, 1000000};
      while (!release) nanosleep(&millisecond, nullptr);
      --held;
    };
    release = false;
    sigaction(SIGUSR1, &action, &before_);
  }
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;
  ~HeldUp() {
    release = true;
    while (held != 0) std::this_thread::yield();
    sigaction(SIGUSR1, &before_, nullptr);
  }
  static void HoldUp(pthread_t thread) {
    const int before = held;
    pthread_kill(thread, SIGUSR1);
    while (held == before) std::this_thread::yield();
  }

 private:
  static inline std::atomic<int> held = 0;
  static inline std::atomic<bool> release = false;
  struct sigaction before_ {};
};

TEST_F(ThreadPoolTest, AWorkerThatIsHeldUpIsNotWaitedFor) {
  if (ENCORE_TEST_TSAN) GTEST_SKIP() << "it defers signals while a thread sleeps";
  constexpr int kThreads = 3;
  const ThreadPool pool = MakePool(kThreads);
  std::vector<pthread_t> ids(kThreads);
  // Until all have a task at the same time.
  const auto all_there = [&](Team& team) {
    std::atomic<int> there = 0;
    team.ForEach(kThreads, [&](size_t, int thread) {
      ids[static_cast<size_t>(thread)] = pthread_self();
      ++there;
      while (there < kThreads) std::this_thread::yield();
    });
  };
  std::atomic<int> tasks = 0;
  {
    const HeldUp held_up;
    // In the middle of a call one of them, then the other.
    EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                  all_there(team);
                  for (int thread = 1; thread < kThreads; ++thread) {
                    HeldUp::HoldUp(ids[static_cast<size_t>(thread)]);
                    for (int stage = 0; stage < 50; ++stage)
                      team.ForEach(20, [&](size_t, int) { tasks++; });
                  }
                }).ok());
    EXPECT_EQ(tasks, 2 * 50 * 20);
    tasks = 0;
    for (int call = 0; call < 50; ++call) CountedCall(pool.executor(), kThreads, &tasks);
    EXPECT_EQ(tasks, 50 * kTasksOfACall);
  }
  EXPECT_TRUE(RunTeam(pool.executor(), all_there).ok());  // they take part again
}
#endif

#if defined(CLOCK_PROCESS_CPUTIME_ID)
// CPU time of the process in ms, in 100 ms from `pause` after a call on: the least and the most of
// several tries. Other machines' share of a virtual one shows on running threads only.
struct CpuTime {
  double least = 1e9;
  double most = 0;
};
CpuTime CpuTimeAfterACall(const ThreadPool& pool, microseconds pause) {
  CpuTime time;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::atomic<int> tasks = 0;
    CountedCall(pool.executor(), pool.threads(), &tasks);
    std::this_thread::sleep_for(pause);
    const double before = ProcessCpuMilliseconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double used = ProcessCpuMilliseconds() - before;
    time = {std::min(time.least, used), std::max(time.most, used)};
  }
  return time;
}

TEST_F(ThreadPoolTest, NothingSpinsAfterACall) {
  for (const int threads : {2, 3, UsableCores(), 2 * UsableCores() + 1}) {
    const double time = CpuTimeAfterACall(MakePool(threads), microseconds(0)).least;
    std::printf("CPU time in 100 ms after a call on %d threads: %.3f ms\n", threads, time);
    EXPECT_LT(time, 1.0);
  }
}

TEST_F(ThreadPoolTest, IdleThreadsSpinAsLongAsAskedFor) {
  const ThreadPool pool = MakePool(2, std::chrono::milliseconds(50));
  EXPECT_GT(CpuTimeAfterACall(pool, microseconds(0)).most, 1.0);
  EXPECT_LT(CpuTimeAfterACall(pool, std::chrono::milliseconds(150)).least, 1.0);
}
#endif

}  // namespace
}  // namespace encore
