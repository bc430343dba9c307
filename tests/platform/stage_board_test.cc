// SPDX-License-Identifier: Apache-2.0
//
// StageBoard: each task once whoever comes when, task objects that are gone right after their
// stage, and who takes what.

#include "engine/platform/stage_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/sanitizers.h"
#include "tests/support/watchdog.h"

namespace encore {
namespace {

using internal::StageBoard;
using Order = StageBoard::Order;

// A board and its ranges.
template <size_t ranges>
struct Board : private std::array<StageBoard::Range, ranges>, StageBoard {
  Board() : StageBoard(static_cast<std::array<Range, ranges>&>(*this)) {}
};

class StageBoardTest : public testing::Test {
 private:
  const Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name(),
                           std::chrono::seconds(120)};
};

// A stage's task object: counts how often each task ran, and strangers, who should not be there.
// Memory of those whose stage is over stays, so that these are seen.
struct Counted {
  void Begin(size_t count, int of) {
    runs.assign(count, 0);
    threads = of;
    alive = kAlive;
  }
  void End() { alive = 0; }
  static constexpr uint32_t kAlive = 0xA11FE;

  static void Run(const void* task, size_t begin, size_t end, int thread) {
    Counted& self = *static_cast<Counted*>(const_cast<void*>(task));
    if (self.alive != kAlive || thread >= self.threads || end > self.runs.size()) {
      strangers++;
      return;
    }
    for (size_t i = begin; i < end; ++i) self.runs[i]++;
    if (thread != 0) helped.fetch_add(1, std::memory_order_relaxed);
  }

  uint32_t alive = 0;
  std::vector<uint8_t> runs;  // plain: only the board orders what different threads do to one
  int threads = 0;
  static inline std::atomic<int> strangers = 0;
  static inline std::atomic<int> helped = 0;  // pieces that were not the caller's
};

TEST_F(StageBoardTest, EveryTaskOnceAndTheTaskObjectIsGoneAfterIt) {
  Counted::helped = 0;
  Counted::strangers = 0;
  // More threads than cores: they lose these at any place.
  constexpr int kThreads = 5;
  // Until helpers took so many, or there is no core for them.
  const int wanted = kSanitized ? 20000 : 400000;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  const size_t counts[] = {2, 3, 5, 1, 64, 7, 4096, 9, 2, 0};
  Counted tasks[3];
  Board<kThreads> board;
  std::atomic<bool> over = false;
  std::vector<std::thread> helpers;
  for (int thread = 1; thread < kThreads; ++thread) {
    helpers.emplace_back([&, thread] {
      for (uint32_t turn = 0; !over; ++turn) {
        board.Work(thread);
        if (turn % 64 == 0) std::this_thread::yield();
      }
    });
  }
  int bad = 0;
  for (int stage = 0; Counted::helped < wanted; ++stage) {
    if (stage % 16 == 0 && std::chrono::steady_clock::now() > deadline) break;
    const size_t count = counts[static_cast<size_t>(stage) % std::size(counts)];
    const int threads = 1 + stage % kThreads;
    Counted& task = tasks[static_cast<size_t>(stage) % std::size(tasks)];
    task.Begin(count, threads);
    board.Open(count, stage % 3 == 0 ? Order::kRising : Order::kOwnRanges, threads, Counted::Run,
               &task);
    board.Work(0);
    if (stage % 2 == 0) {
      board.SleepUntilAllDone();
    } else {
      while (!board.AllDone()) std::this_thread::yield();
    }
    bad += static_cast<int>(count) -
           static_cast<int>(std::count(task.runs.begin(), task.runs.end(), 1));
    task.End();
    if (stage % 7 == 0) board.Close();
  }
  over = true;
  for (std::thread& helper : helpers) helper.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(Counted::strangers, 0);
}

// The tasks that one thread takes, in its order. By one thread alone, as if all others were late.
std::vector<size_t> Taken(StageBoard& board, int thread, size_t count, Order order, int threads) {
  std::vector<size_t> taken;
  board.Open(
      count, order, threads,
      [](const void* task, size_t begin, size_t end, int /*thread*/) {
        auto& list = *static_cast<std::vector<size_t>*>(const_cast<void*>(task));
        for (size_t i = begin; i < end; ++i) list.push_back(i);
      },
      &taken);
  board.Work(thread);
  return taken;
}

TEST_F(StageBoardTest, ThreadsThatDoNotComeAreNotWaitedFor) {
  Board<4> board;
  for (const Order order : {Order::kOwnRanges, Order::kRising}) {
    for (const size_t count :
         {size_t{0}, size_t{1}, size_t{3}, size_t{4}, size_t{4095}, size_t{4096}, size_t{10000}}) {
      std::vector<size_t> taken = Taken(board, 0, count, order, 4);
      EXPECT_TRUE(board.AllDone());
      board.SleepUntilAllDone();
      if (order == Order::kOwnRanges) std::sort(taken.begin(), taken.end());
      std::vector<size_t> all(count);
      std::iota(all.begin(), all.end(), size_t{0});
      EXPECT_EQ(taken, all);
    }
  }
}

// Each thread has tasks of its own, the same ones in every stage of that size, which keeps it on
// the rows in its cache. It begins with them, and then does those of threads that do not come.
TEST_F(StageBoardTest, ItsOwnTasksFirstAndThenTheOthers) {
  constexpr size_t kThreads = 3;
  Board<kThreads> board;
  for (const size_t count : {size_t{3}, size_t{12}, size_t{300}}) {
    const auto own_of = [&](size_t thread) {
      const std::vector<size_t> taken =
          Taken(board, static_cast<int>(thread), count, Order::kOwnRanges, kThreads);
      EXPECT_EQ(std::set<size_t>(taken.begin(), taken.end()).size(), count) << "each once";
      EXPECT_EQ(taken.size(), count);
      return std::set<size_t>(taken.begin(),
                              taken.begin() + static_cast<ptrdiff_t>(count / kThreads));
    };
    std::set<size_t> all;
    for (size_t thread = 0; thread < kThreads; ++thread) {
      const std::set<size_t> own = own_of(thread);
      EXPECT_EQ(own, own_of(thread)) << "thread " << thread << " of " << count;
      all.insert(own.begin(), own.end());
    }
    EXPECT_EQ(all.size(), count) << "no task is two threads' own";
  }
  // One that has no task of its own.
  EXPECT_EQ(Taken(board, 2, 2, Order::kOwnRanges, kThreads).size(), 2u);
}

TEST_F(StageBoardTest, RisingTasksAreTakenFromTheFrontByEveryThread) {
  Board<3> board;
  for (const int thread : {0, 1, 2}) {
    EXPECT_EQ(Taken(board, thread, 6, Order::kRising, 3), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  }
}

TEST_F(StageBoardTest, ClosingWithoutAStageLeavesItClosed) {
  Board<2> board;
  board.Close();
  EXPECT_FALSE(StageBoard::IsOpen(board.number()));
  Counted task;
  task.Begin(3, 1);
  board.Open(3, Order::kRising, 1, Counted::Run, &task);
  EXPECT_TRUE(StageBoard::IsOpen(board.number()));
  board.Work(0);
  EXPECT_TRUE(board.AllDone());
  board.Close();
  board.Close();
  EXPECT_FALSE(StageBoard::IsOpen(board.number()));
}

TEST_F(StageBoardTest, WhoHasNoPartTakesNothing) {
  Board<4> board;
  EXPECT_TRUE(Taken(board, 3, 5, Order::kOwnRanges, 3).empty());
  EXPECT_FALSE(board.AllDone());
  EXPECT_EQ(Taken(board, 0, 5, Order::kOwnRanges, 3).size(), 5u);
  EXPECT_TRUE(StageBoard::IsOpen(board.number()));
  board.Close();
  EXPECT_FALSE(StageBoard::IsOpen(board.number()));
  board.Work(1);  // finds nothing
}

TEST_F(StageBoardTest, TheCallerSleepsWhileATaskIsAtWork) {
  Board<2> board;
  struct Task {
    std::atomic<bool> begun = false;
    int result = 0;
  };
  for (int round = 0; round < 20; ++round) {
    Task task;
    board.Open(
        1, Order::kOwnRanges, 2,
        [](const void* t, size_t, size_t, int) {
          Task& at = *static_cast<Task*>(const_cast<void*>(t));
          at.begun = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          at.result = 1;
        },
        &task);
    std::thread helper([&] { board.Work(1); });
    while (!task.begun) std::this_thread::yield();
    board.Work(0);  // nothing left
    board.SleepUntilAllDone();
    EXPECT_EQ(task.result, 1);
    helper.join();
  }
}

}  // namespace
}  // namespace encore
