// SPDX-License-Identifier: Apache-2.0
//
// Tests of Executor and of engine/platform/thread_team: each task once, threads exclusive, stages
// in order, the caller's floating-point state, and no thread at work after a call.

#include "engine/platform/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <ios>
#include <string>
#include <thread>
#include <vector>

#include "encore/cpu.h"
#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "reference/caller_modes.h"
#include "reference/host_pool.h"
#include "tests/support/cpu_time.h"
#include "tests/support/results.h"

#if defined(__ELF__)
// OpenMP's own, null where this build has none.
extern "C" void omp_set_max_active_levels(int levels) __attribute__((weak));
#endif

namespace encore {
namespace {

using internal::RunTeam;
using internal::Team;

// Whether OpenMP executors really have threads in this build.
bool HaveOpenMP() { return Executor::OpenMP(2).threads() == 2; }

// A host without threads, which runs its loops backwards.
struct BackwardsHost {
  template <typename F>
  void parallel_for(size_t count, F body) {
    while (count > 0) body(--count);
  }
};

// Calls run(executor) for every kind and for threads 1, 2, 3 and 7.
template <typename F>
void ForEachExecutor(const F& run) {
  {
    SCOPED_TRACE("inline");
    run(Executor::Inline());
  }
  for (const int threads : {1, 2, 3, 7}) {
    {
      SCOPED_TRACE("OpenMP " + std::to_string(threads));
      run(Executor::OpenMP(threads));
    }
    {
      SCOPED_TRACE("host pool " + std::to_string(threads));
      HostPool pool(threads);
      run(Executor::HostPool(threads, pool));
    }
    {
      SCOPED_TRACE("backwards host " + std::to_string(threads));
      BackwardsHost host;
      run(Executor::HostPool(threads, host));
    }
    for (const int idle_spin : {0, 100}) {
      SCOPED_TRACE("pool " + std::to_string(threads) + ", idle spin " + std::to_string(idle_spin));
      const ThreadPool pool = Taken(ThreadPool::Create(
          {.threads = threads, .idle_spin = std::chrono::microseconds(idle_spin)}));
      run(pool.executor());
    }
  }
}

TEST(ExecutorTest, DefaultIsInline) {
  EXPECT_EQ(Executor().kind(), Executor::Kind::kInline);
  EXPECT_EQ(Executor().threads(), 1);
}

TEST(ExecutorTest, OpenMPTakesTheUsableCoresByDefault) {
  EXPECT_EQ(Executor::OpenMP().kind(), Executor::Kind::kOpenMP);
  EXPECT_EQ(Executor::OpenMP().threads(), HaveOpenMP() ? UsableCores() : 1);
  EXPECT_EQ(Executor::OpenMP(-3).threads(), Executor::OpenMP().threads());
}

TEST(ExecutorTest, AbsurdThreadCountsAreCut) {
  EXPECT_LE(Executor::OpenMP(1000000000).threads(), 1024);
  BackwardsHost host;
  EXPECT_EQ(Executor::HostPool(-1, host).threads(), 1);
  EXPECT_EQ(Executor::Host(4, nullptr, nullptr).kind(), Executor::Kind::kInline);
}

TEST(ThreadTeamTest, RunsEachIndexOnce) {
  ForEachExecutor([](const Executor& executor) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
      std::vector<std::atomic<int>> runs(count + 1);
      std::atomic<int> bad_threads = 0;
      EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                    team.ForEach(count, [&](size_t i, int thread) {
                      runs[std::min(i, count)]++;
                      if (thread < 0 || thread >= team.threads() || thread >= executor.threads())
                        bad_threads++;
                    });
                  }).ok());
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(runs[i], 1) << "index " << i << " of " << count;
      EXPECT_EQ(runs[count], 0) << "an index beyond the count " << count;
      EXPECT_EQ(bad_threads, 0);
    }
  });
}

// So scratch for as many as there are tasks is enough. Who leaves a stage last is often the first
// at the next one.
TEST(ThreadTeamTest, NoThreadBeyondTheTasksIsGivenOne) {
  ForEachExecutor([](const Executor& executor) {
    std::atomic<int> beyond = 0;
    EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                  for (size_t stage = 0; stage < 300; ++stage) {
                    const size_t count = 1 + stage % 3;
                    const auto task = [&](size_t /*i*/, int thread) {
                      if (static_cast<size_t>(thread) >= count) beyond++;
                    };
                    team.ForEach(count, task);
                    team.ForEachInOrder(count, task);
                  }
                }).ok());
    EXPECT_EQ(beyond, 0);
  });
}

TEST(ThreadTeamTest, TeamHasTheThreadsAskedFor) {
  ForEachExecutor([](const Executor& executor) {
    std::atomic<int> threads = 0;
    EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                  team.ForEach(1, [&](size_t, int) { threads = team.threads(); });
                }).ok());
    EXPECT_EQ(threads, executor.threads());
  });
}

TEST(ThreadTeamTest, OneTaskAtATimeHasAThread) {
  ForEachExecutor([](const Executor& executor) {
    std::vector<std::atomic<int>> busy(static_cast<size_t>(executor.threads()));
    std::atomic<int> clashes = 0;
    EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                  for (int stage = 0; stage < 3; ++stage) {
                    team.ForEach(200, [&](size_t, int thread) {
                      if (busy[static_cast<size_t>(thread)].exchange(1) != 0) clashes++;
                      std::this_thread::yield();
                      busy[static_cast<size_t>(thread)] = 0;
                    });
                  }
                }).ok());
    EXPECT_EQ(clashes, 0);
  });
}

TEST(ThreadTeamTest, AStageSeesWhatTheOneBeforeWrote) {
  ForEachExecutor([](const Executor& executor) {
    constexpr size_t kCount = 257;
    constexpr int kStages = 200;
    std::vector<int> a(kCount,
                       0);  // plain ints: only the team's own synchronisation orders the accesses
    std::vector<int> b(kCount, 0);
    EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                  for (int stage = 0; stage < kStages; ++stage) {
                    team.ForEach(kCount, [&](size_t i, int) { b[i] = a[(i + 101) % kCount] + 1; });
                    team.ForEach(kCount, [&](size_t i, int) {
                      a[i] = b[(i + 156) % kCount];
                    });  // 101 + 156 = 257
                  }
                }).ok());
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(a[i], kStages) << "element " << i;
  });
}

TEST(ThreadTeamTest, ATeamInsideAParallelRegionRunsOnTheCaller) {
#if defined(__ELF__)
  if (omp_set_max_active_levels != nullptr)
    omp_set_max_active_levels(2);  // else OpenMP alone would see to it
#endif
  const Executor executor = Executor::OpenMP(3);
  std::atomic<int> tasks = 0;
  std::atomic<int> strangers = 0;
  EXPECT_TRUE(RunTeam(executor, [&](Team& outer) {
                outer.ForEach(9, [&](size_t, int) {
                  const std::thread::id self = std::this_thread::get_id();
                  EXPECT_TRUE(RunTeam(Executor::OpenMP(3), [&](Team& inner) {
                                inner.ForEach(10, [&](size_t, int) {
                                  tasks++;
                                  if (std::this_thread::get_id() != self) strangers++;
                                });
                              }).ok());
                });
              }).ok());
#if defined(__ELF__)
  if (omp_set_max_active_levels != nullptr) omp_set_max_active_levels(1);
#endif
  EXPECT_EQ(tasks, 90);
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadTeamTest, SeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> tasks = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int call = 0; call < 20; ++call) {
        EXPECT_TRUE(RunTeam(Executor::OpenMP(2), [&](Team& team) {
                      team.ForEach(11, [&](size_t, int) { tasks++; });
                      team.ForEach(2, [&](size_t, int) { tasks++; });
                    }).ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(tasks, 4 * 20 * 13);
}

TEST(ThreadTeamTest, MoreThreadsThanCoresDoNotCollapse) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> tasks = 0;
  EXPECT_TRUE(RunTeam(Executor::OpenMP(4 * UsableCores() + 3), [&](Team& team) {
                for (int stage = 0; stage < 500; ++stage)
                  team.ForEach(20, [&](size_t, int) { tasks++; });
              }).ok());
  EXPECT_EQ(tasks, 500 * 20);
  // Waiting by spinning alone would hand over the cores at the end of time slices only, several
  // milliseconds each: half a minute. This is about a hang, not about speed.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(ThreadTeamTest, AHostGetsOneLoopACall) {
  HostPool pool(2);
  const Executor executor = Executor::HostPool(2, pool);
  EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                for (const size_t count : {5, 1, 0, 2}) team.ForEach(count, [](size_t, int) {});
              }).ok());
  EXPECT_EQ(pool.loops(), 1u);
  EXPECT_TRUE(RunTeam(executor, 1, [&](Team& team) { team.ForEach(5, [](size_t, int) {}); }).ok());
  EXPECT_TRUE(RunParallel(executor, 1, [](size_t) {}).ok());
  EXPECT_EQ(pool.loops(), 1u) << "one thread needs no loop";
}

TEST(ThreadTeamTest, OneThreadRunsTheRecipe) {
  ForEachExecutor([](const Executor& executor) {
    std::atomic<int> runs = 0;
    std::atomic<int> others = 0;
    EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                  runs++;
                  const std::thread::id self = std::this_thread::get_id();
                  team.ForEach(100, [&](size_t, int thread) {
                    if ((thread == 0) != (std::this_thread::get_id() == self)) others++;
                  });
                }).ok());
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(others, 0) << "thread 0 runs the recipe";
  });
}

// Starts its second call when all tasks of the first stage are done, and its third after the call.
struct LateHost {
  std::atomic<bool> first_stage_done = false;
  template <typename F>
  void parallel_for(size_t /*count*/, F body) {
    std::thread late([this, body] {
      while (!first_stage_done) std::this_thread::yield();
      body(1);
    });
    body(0);
    late.join();
    body(2);
  }
};

TEST(ThreadTeamTest, AHostsThreadsThatAreLateAreNotWaitedFor) {
  LateHost host;
  std::vector<std::atomic<int>> runs(50);
  const auto task = [&](size_t i, int) { runs[i]++; };
  std::atomic<bool> helped = false;
  EXPECT_TRUE(RunTeam(Executor::HostPool(3, host), [&](Team& team) {
                team.ForEach(runs.size(), task);
                host.first_stage_done = true;
                // The one that is late has a share of later stages.
                while (!helped) {
                  team.ForEach(2, [&](size_t, int thread) {
                    if (thread != 0) helped = true;
                    std::this_thread::yield();
                  });
                }
                team.ForEachInOrder(runs.size(), task);
              }).ok());
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 2);
}

// More threads than a call's board has ranges.
TEST(ThreadTeamTest, SeventyThreadsOfAHost) {
  HostPool pool(70);
  std::vector<std::atomic<int>> runs(1000);
  EXPECT_TRUE(RunTeam(Executor::HostPool(70, pool), [&](Team& team) {
                EXPECT_EQ(team.threads(), 70);
                for (int stage = 0; stage < 20; ++stage) {
                  team.ForEach(runs.size(), [&](size_t i, int) { runs[i]++; });
                  team.ForEachInOrder(runs.size(), [&](size_t i, int) { runs[i]++; });
                }
              }).ok());
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 40);
}

// 0.5f + 0.75f ulp rounds to different floats in different modes, and the quotient is subnormal.
struct ModeProbe {
  float sum;
  float tiny;
  friend bool operator==(const ModeProbe&, const ModeProbe&) = default;
};
ModeProbe Probe() {
  volatile float one = 1.0f;
  volatile float less_than_half_ulp = 0x1p-25f;
  volatile float small = 0x1p-120f;
  volatile float large = 0x1p10f;
  return {one + less_than_half_ulp, small / large};
}

// Each call so many times, on a thread each: those that are left out 0, those that are repeated 2.
struct FaultyHost {
  std::vector<size_t> times;  // of call i, again and again
  template <typename F>
  void parallel_for(size_t count, F body) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) {
      for (size_t t = 0; t < times[i % times.size()]; ++t) threads.emplace_back(body, i);
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST(ThreadTeamTest, AHostMayLeaveCallsOutOrRepeatThem) {
  for (const std::vector<size_t>& times :
       {std::vector<size_t>{0}, {1, 0}, {0, 1}, {2}, {0, 3}, {1, 0, 0, 2}}) {
    FaultyHost host{times};
    for (const size_t count : {2, 7, 100}) {
      std::vector<std::atomic<int>> runs(count);
      std::vector<std::atomic<int>> at_work(4);
      std::atomic<bool> shared = false;
      const auto task = [&](size_t i, int thread) {
        if (at_work[static_cast<size_t>(thread)]++ != 0) shared = true;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        ++runs[i];
        --at_work[static_cast<size_t>(thread)];
      };
      EXPECT_TRUE(RunTeam(Executor::HostPool(4, host), [&](Team& team) {
                    team.ForEach(count, task);
                    team.ForEachInOrder(count, task);
                  }).ok());
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i], 2) << i << " of " << count;
      EXPECT_FALSE(shared) << "two tasks at a time had one thread's number";
    }
  }
}

TEST(ThreadTeamTest, TheCallersModesDoNotReachTheTasksAndAreLeftAsFound) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no modes to try on this machine";
  const ModeProbe expected{1.0f, 0x1p-130f};
  ASSERT_EQ(Probe(), expected);
  ForEachExecutor([&](const Executor& executor) {
    for (const uint64_t flags : {uint64_t{0}, reference::kDividedByZero}) {
      const uint64_t state = reference::kFlushAndRoundUp | flags;
      std::vector<ModeProbe> seen(64);
      reference::SetCallerState(state);
      const ModeProbe outside = Probe();
      reference::SetCallerState(state);  // without the flags that the probe raised
      EXPECT_TRUE(RunTeam(executor, [&](Team& team) {
                    team.ForEach(64, [&](size_t i, int) { seen[i] = Probe(); });
                  }).ok());
      const uint64_t after = reference::CallerState();
      reference::SetCallerState(reference::kDefaultModes);
      EXPECT_EQ((after ^ state) & reference::KeptState(executor), 0u)
          << std::hex << "found " << state << ", left " << after;
      EXPECT_EQ(outside.tiny, 0.0f);  // the test's own modes were in force
      EXPECT_GT(outside.sum, 1.0f);
      for (const ModeProbe& probe : seen) EXPECT_EQ(probe, expected);
    }
  });
}

#if defined(CLOCK_PROCESS_CPUTIME_ID)
TEST(ThreadTeamTest, NothingSpinsAfterACall) {
  for (const int threads : {2, 3, UsableCores(), UsableCores() + 1, UsableCores() / 2 + 1}) {
    // The least of several: a virtual machine's clock also counts what other machines take from a
    // running thread.
    double least = 1e9;
    const ThreadPool pool = Taken(ThreadPool::Create({.threads = threads}));
    for (int attempt = 0; attempt < 4; ++attempt) {
      std::atomic<int> tasks = 0;
      EXPECT_TRUE(RunTeam(pool.executor(), [&](Team& team) {
                    for (int stage = 0; stage < 10; ++stage)
                      team.ForEach(10, [&](size_t, int) { tasks++; });
                  }).ok());
      const double before = ProcessCpuMilliseconds();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      least = std::min(least, ProcessCpuMilliseconds() - before);
    }
    std::printf("CPU time in 100 ms after a call of %d threads: %.3f ms\n", threads, least);
    EXPECT_LT(least, 1.0);
  }
}
#endif

}  // namespace
}  // namespace encore
