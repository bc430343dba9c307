// SPDX-License-Identifier: Apache-2.0
//
// StageBoard: the stage that a call is at, from which any of its threads may take tasks. A stage is
// over when its tasks are done, whoever did them: a late thread finds the tasks taken, or the next
// stage. Nobody waits for a thread that has no task.

#ifndef ENCORE_ENGINE_PLATFORM_STAGE_BOARD_H_
#define ENCORE_ENGINE_PLATFORM_STAGE_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace encore::inline v0_1::internal {

// Tasks [begin, end) of a stage, called as run(task, begin, end, thread). They must not throw.
using StageFn = void (*)(const void* task, size_t begin, size_t end, int thread);

class StageBoard {
 public:
  // The units of a range that nobody has taken, and the number of their stage. Two cache lines
  // apart: x86 prefetches pairs.
  struct alignas(128) Range {
    std::atomic<uint64_t> left{0};
  };
  static constexpr size_t kMaxRanges = 2048;

  // With at least one range and at most kMaxRanges, which outlive it. With one for each thread no
  // two threads begin at the same one.
  explicit StageBoard(std::span<Range> ranges) : ranges_(ranges) {}

  enum class Order {
    // A thread begins with a range of its own, the same in every stage of that size, whose rows are
    // in its cache. Then it helps with the others'.
    kOwnRanges,
    // Tasks are taken one by one with rising index.
    kRising,
  };

  // By thread 0, one stage after another: puts tasks [0, count) on the board, for at most
  // `threads` threads. run and task must stay valid until all are done, no longer.
  void Open(size_t count, Order order, int threads, StageFn run, const void* task);
  // Takes the stage off, if there is one, once AllDone().
  void Close() {
    if (IsOpen(number())) stage_.number.fetch_add(1, std::memory_order_seq_cst);
  }

  // Changes the number without a stage, for threads that look at it.
  void Renumber() { stage_.number.fetch_add(2, std::memory_order_seq_cst); }

  // By any thread, each with a number of its own: runs tasks until none is left
  // to take. Threads with numbers from the stage's threads on take nothing. The stage may be open,
  // over, or another than a moment ago. Returns whether it ran a task.
  bool Work(int thread);

  // By thread 0, after Work: whether all tasks of the open stage have been run; what they wrote
  // is visible then. And: sleeps until they have.
  bool AllDone() const { return done_.load(std::memory_order_acquire) == done_at_end_; }
  void SleepUntilAllDone();

  // Changes with every Open, to an odd number, and with every Close, to an even one.
  uint64_t number() const { return stage_.number.load(std::memory_order_seq_cst); }
  static constexpr bool IsOpen(uint64_t number) { return number % 2 == 1; }

 private:
  // What one stage is. Atomic because a late thread may read it while the next is written: what it
  // reads is then a mixture, by which it takes nothing (stage_board.cc says why). All in one cache
  // line, which is what another core waits for.
  struct alignas(128) Stage {
    std::atomic<uint64_t> number{0};  // written last
    std::atomic<size_t> count{0};
    std::atomic<StageFn> run{nullptr};
    std::atomic<const void*> task{nullptr};
    std::atomic<int> threads{0};
    std::atomic<Order> order{Order::kOwnRanges};
  };
  struct Units {
    uint32_t begin;
    uint32_t end;
  };
  // Which end of a range a thread takes from, and how much.
  enum class Piece { kOne, kFromTheFront, kFromTheBack };
  // Takes some units of a range of stage `number`, whose word may be `word`; false if none is left
  // or the stage is another.
  static bool Take(Range& range, uint64_t word, uint64_t number, Piece piece, Units* units);

  const std::span<Range> ranges_;
  uint32_t done_at_end_ = 0;  // thread 0's own: done_ when the open stage is over
  Stage stage_;
  // Units that threads other than 0 have done, of all stages. One word for all would be sent to
  // and fro with every piece, and would have to be cleared.
  alignas(128) std::atomic<uint32_t> done_{0};
};

// The threads of one call, as its thread 0 sees them.
class StageThreads {
 public:
  // By thread 0: calls run(task, begin, end, thread) so that each of [0, count) is in one call's
  // [begin, end), on any of the first `threads` threads, of which there are 2 .. count; returns
  // when all is done. Allocates nothing.
  virtual void RunStage(size_t count, StageBoard::Order order, int threads, StageFn run,
                        const void* task) = 0;

 protected:
  ~StageThreads() = default;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_STAGE_BOARD_H_
