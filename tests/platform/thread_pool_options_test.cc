// SPDX-License-Identifier: Apache-2.0
//
// What ThreadPoolOptions say of the pool's own threads: names, a hook at their start, the cores
// they run on; and that no call gives a thread cores that the program took from it.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "encore/executor.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/support/results.h"

#if defined(__linux__) && !defined(__ANDROID__)
#include <pthread.h>
#include <sched.h>
#endif

namespace encore {
namespace {

// What each thread says of itself when it starts.
class Roll {
 public:
  struct Entry {
    int thread = 0;
    std::thread::id id = {};
    std::string name = {};
    std::vector<int> cores = {};
#if defined(__linux__) && !defined(__ANDROID__)
    pthread_t handle = {};
#endif
  };

  void Add(int thread) {
    Entry entry{.thread = thread, .id = std::this_thread::get_id()};
#if defined(__linux__) && !defined(__ANDROID__)
    entry.handle = pthread_self();
    char name[16] = {};
    if (pthread_getname_np(entry.handle, name, sizeof(name)) == 0) entry.name = name;
    entry.cores = CoresOf(entry.handle);
#endif
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.push_back(entry);
    more_.notify_all();
  }

  // In the order of their numbers, once there are so many; fewer after ten seconds.
  std::vector<Entry> Wait(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    more_.wait_for(lock, std::chrono::seconds(10), [&] { return entries_.size() >= count; });
    std::vector<Entry> found = entries_;
    std::sort(found.begin(), found.end(),
              [](const Entry& a, const Entry& b) { return a.thread < b.thread; });
    return found;
  }

#if defined(__linux__) && !defined(__ANDROID__)
  static std::vector<int> CoresOf(pthread_t thread) {
    cpu_set_t set;
    std::vector<int> cores;
    if (pthread_getaffinity_np(thread, sizeof(set), &set) != 0) return cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
    }
    return cores;
  }

  static void SetCores(pthread_t thread, const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
    ASSERT_EQ(pthread_setaffinity_np(thread, sizeof(set), &set), 0);
  }
#endif

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Entry> entries_;
};

// A call that wants all of the pool's threads.
void Call(const ThreadPool& pool) {
  EXPECT_TRUE(RunParallel(pool.executor(), 64, [](size_t) {}).ok());
}

TEST(ThreadPoolOptionsTest, TheHookRunsOnceOnEachThread) {
  Roll roll;
  ThreadPool pool =
      Taken(ThreadPool::Create({.threads = 3, .on_start = [&](int thread) { roll.Add(thread); }}));
  Call(pool);
  ASSERT_EQ(roll.Wait(2).size(), 2u);
  for (int i = 0; i < 100; ++i) Call(pool);
  { const ThreadPool ended = std::move(pool); }
  const std::vector<Roll::Entry> entries = roll.Wait(2);
  ASSERT_EQ(entries.size(), 2u) << "never again";
  EXPECT_EQ(entries[0].thread, 1);
  EXPECT_EQ(entries[1].thread, 2);
  EXPECT_NE(entries[0].id, entries[1].id);
  EXPECT_NE(entries[0].id, std::this_thread::get_id());
}

TEST(ThreadPoolOptionsTest, CoresAreChecked) {
  for (const std::vector<int>& cores : {std::vector<int>{0}, {0, 0, 0}, {0, -1}, {0, 1 << 20}}) {
    EXPECT_TRUE(FailsWith(ThreadPool::Create({.threads = 3, .cores = cores}), {"cores"}, kAnyCode));
  }
  EXPECT_EQ(ThreadPool::Create({.threads = 3, .cores = {0}}).status().message(),
            "cores has 1 entries; wanted 2, one for each thread of 3 but the caller's");
}

#if defined(__linux__) && !defined(__ANDROID__)

TEST(ThreadPoolOptionsTest, ThreadsHaveTheName) {
  Roll roll;
  const ThreadPool pool = Taken(ThreadPool::Create(
      {.threads = 2, .name = "a name of more than 15", .on_start = [&](int t) { roll.Add(t); }}));
  const std::vector<Roll::Entry> entries = roll.Wait(1);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "a name of more ");
}

TEST(ThreadPoolOptionsTest, ThreadsRunOnTheirCores) {
  const std::vector<int> cores = Roll::CoresOf(pthread_self());
  ASSERT_FALSE(cores.empty());
  const std::vector<int> wanted = {cores.back(), cores.front()};
  Roll roll;
  const ThreadPool pool = Taken(ThreadPool::Create(
      {.threads = 3, .cores = wanted, .on_start = [&](int thread) { roll.Add(thread); }}));
  const std::vector<Roll::Entry> entries = roll.Wait(2);
  ASSERT_EQ(entries.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(entries[i].cores, std::vector<int>{wanted[i]});
    Call(pool);
    EXPECT_EQ(Roll::CoresOf(entries[i].handle), std::vector<int>{wanted[i]}) << "after a call";
  }
}

// A pool of two, whose worker's mask calls may change, on a machine of two cores or more.
class ThreadMasksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cores_.size() < 2) GTEST_SKIP() << "one core only";
  }
  void TearDown() override { Roll::SetCores(pthread_self(), cores_); }

  void MakePool(bool keep_off_caller) {
    pool_.reset();
    roll_ = std::make_unique<Roll>();
    ThreadPool made = Taken(
        ThreadPool::Create({.threads = 2,
                            .keep_off_caller = keep_off_caller,
                            .on_start = [roll = roll_.get()](int thread) { roll->Add(thread); }}));
    pool_ = std::make_unique<ThreadPool>(std::move(made));
    const std::vector<Roll::Entry> entries = roll_->Wait(1);
    ASSERT_EQ(entries.size(), 1u);
    worker_ = entries[0].handle;
    EXPECT_EQ(WorkersCores(), cores_);
  }
  void Calls() {
    for (int i = 0; i < 10; ++i) Call(*pool_);
  }
  // The caller may run anywhere, and begins there.
  void CallsFrom(int core) {
    Roll::SetCores(pthread_self(), {core});
    Roll::SetCores(pthread_self(), cores_);
    Calls();
  }
  std::vector<int> WorkersCores() const { return Roll::CoresOf(worker_); }

  const std::vector<int> cores_ = Roll::CoresOf(pthread_self());
  pthread_t worker_ = {};

 private:
  std::unique_ptr<Roll> roll_;
  std::unique_ptr<ThreadPool> pool_;
};

TEST_F(ThreadMasksTest, StayAsTheyAreWhereAskedFor) {
  MakePool(false);
  CallsFrom(cores_[0]);
  CallsFrom(cores_[1]);
  EXPECT_EQ(WorkersCores(), cores_);
}

TEST_F(ThreadMasksTest, LeaveOutTheCallersCoreAlone) {
  MakePool(true);
  for (const int core : {cores_[0], cores_[1]}) {
    CallsFrom(core);
    EXPECT_EQ(WorkersCores().size(), cores_.size() - 1);
  }
}

// A thread a core, each pinned there, share the pool.
TEST_F(ThreadMasksTest, LeaveOutTheCoreOfEachPinnedCaller) {
  MakePool(true);
  for (const int core : {cores_[0], cores_[1], cores_[0]}) {
    std::thread([&] {
      Roll::SetCores(pthread_self(), {core});
      Calls();
    }).join();
    std::vector<int> others = cores_;
    others.erase(std::find(others.begin(), others.end(), core));
    EXPECT_EQ(WorkersCores(), others) << "called from core " << core;
  }
}

TEST_F(ThreadMasksTest, AreNotWidenedWhereTheProgramNarrowedThem) {
  MakePool(true);
  CallsFrom(cores_[0]);
  const std::vector<int> ours = WorkersCores();
  const auto found = std::find_if(cores_.begin(), cores_.end(), [&](int core) {
    return std::find(ours.begin(), ours.end(), core) == ours.end();
  });
  ASSERT_NE(found, cores_.end()) << "the worker may run on all cores";
  const int left_out = *found;
  Roll::SetCores(worker_, {left_out});
  for (const int core : {cores_[0], cores_[1], cores_[0]}) {
    CallsFrom(core);
    EXPECT_EQ(WorkersCores(), std::vector<int>{left_out}) << "called from core " << core;
  }
}

TEST_F(ThreadMasksTest, AreNotWidenedWhereTheWholeProcessWasNarrowed) {
  for (const int core : {cores_[0], cores_[1]}) {
    MakePool(true);
    CallsFrom(cores_[0]);
    // As `taskset --all-tasks --pid` does.
    Roll::SetCores(worker_, {core});
    Roll::SetCores(pthread_self(), {core});
    Calls();
    EXPECT_EQ(WorkersCores(), std::vector<int>{core});
    Roll::SetCores(pthread_self(), cores_);
  }
}

#endif  // defined(__linux__) && !defined(__ANDROID__)

}  // namespace
}  // namespace encore
