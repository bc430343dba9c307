// SPDX-License-Identifier: Apache-2.0
//
// How tasks are taken, and why a late thread takes none that it should not:
// - A unit is taken by changing a word that holds its stage's number, and a stage is over only when
//   every unit was taken and is done. So whoever has a unit reads a task object that is still
//   there, and when a stage is over all its words are empty.
// - A thread that reads parts of a new description holds the number of a stage that is over. It
//   finds words that are empty, or of another number.

#include "engine/platform/stage_board.h"

#include <algorithm>

namespace encore::inline v0_1::internal {
namespace {

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
constexpr std::memory_order kAcquire = std::memory_order_acquire;
constexpr std::memory_order kRelease = std::memory_order_release;

// A word: 40 bits of the stage's number, then the first unit and the one after the last. A thread
// would have to be late by exactly 2^39 stages, days of them, to take an old number for a new one.
constexpr int kUnitBits = 12;
constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;
constexpr size_t kMaxUnits = kUnitMask;
constexpr int kNumberBits = 64 - 2 * kUnitBits;
static_assert(StageBoard::kMaxRanges <= kMaxUnits, "each range may have a unit");

constexpr uint64_t WordOf(uint64_t number, uint64_t begin, uint64_t end) {
  return number << 2 * kUnitBits | begin << kUnitBits | end;
}
constexpr bool IsOf(uint64_t word, uint64_t number) {
  return word >> 2 * kUnitBits == (number & ((uint64_t{1} << kNumberBits) - 1));
}

// A stage's tasks in units of equal size, and the ranges that these are cut into.
struct Layout {
  Layout(size_t count, size_t own_ranges, StageBoard::Order order)
      : unit(count <= kMaxUnits ? 1 : count / kMaxUnits + 1),
        units(unit == 1 ? count : (count - 1) / unit + 1),
        ranges(order == StageBoard::Order::kRising ? 1 : std::min(units, own_ranges)) {}
  // What range r's word holds before anybody takes of it.
  uint64_t FirstWord(uint64_t number, size_t r) const {
    return WordOf(number, units * r / ranges, units * (r + 1) / ranges);
  }
  size_t unit;
  size_t units;
  size_t ranges;
};

}  // namespace

void StageBoard::Open(size_t count, Order order, int threads, StageFn run, const void* task) {
  const uint64_t before = stage_.number.load(kRelaxed);
  const uint64_t number = before + (IsOpen(before) ? 2 : 1);
  const Layout layout(count, std::min(static_cast<size_t>(threads), ranges_.size()), order);
  done_at_end_ = done_.load(kRelaxed) + static_cast<uint32_t>(layout.units);
  // Each a release: whoever reads it finds the words of the stage before empty.
  for (size_t r = 0; r < layout.ranges; ++r) {
    ranges_[r].left.store(layout.FirstWord(number, r), kRelease);
  }
  stage_.count.store(count, kRelease);
  stage_.run.store(run, kRelease);
  stage_.task.store(task, kRelease);
  stage_.threads.store(threads, kRelease);
  stage_.order.store(order, kRelease);
  // Sequentially consistent with the look at sleeping threads that follows.
  stage_.number.store(number, std::memory_order_seq_cst);
}

bool StageBoard::Take(Range& range, uint64_t word, uint64_t number, Piece piece, Units* units) {
  for (;;) {
    const auto begin = static_cast<uint32_t>(word >> kUnitBits & kUnitMask);
    const auto end = static_cast<uint32_t>(word & kUnitMask);
    if (!IsOf(word, number) || begin == end) return false;
    // A quarter of what is left: few pieces, and small ones at the end.
    const uint32_t size = piece == Piece::kOne ? 1 : (end - begin + 3) / 4;
    const bool back = piece == Piece::kFromTheBack;
    *units = back ? Units{end - size, end} : Units{begin, begin + size};
    const uint64_t left =
        back ? WordOf(number, begin, end - size) : WordOf(number, begin + size, end);
    if (range.left.compare_exchange_weak(word, left, std::memory_order_acq_rel, kAcquire)) {
      return true;
    }
  }
}

bool StageBoard::Work(int thread) {
  const uint64_t number = stage_.number.load(kAcquire);
  if (!IsOpen(number)) return false;
  const size_t count = stage_.count.load(kAcquire);
  const StageFn run = stage_.run.load(kAcquire);
  const void* const task = stage_.task.load(kAcquire);
  const int threads = stage_.threads.load(kAcquire);
  const Order order = stage_.order.load(kAcquire);
  if (thread >= threads) return false;
  const Layout layout(count, std::min(static_cast<size_t>(threads), ranges_.size()), order);
  bool worked = false;
  for (size_t i = 0; i < layout.ranges; ++i) {
    // Its own first, then those of the threads after it. What it takes from these comes last there,
    // so that they keep what they had in the stage before.
    const size_t r = (static_cast<size_t>(thread) + i) % layout.ranges;
    Range& range = ranges_[r];
    const Piece piece = order == Order::kRising ? Piece::kOne
                        : i == 0                ? Piece::kFromTheFront
                                                : Piece::kFromTheBack;
    Units units{};
    uint32_t done = 0;
    // Guess that our range is still full, so that the first compare-exchange needs no load of its
    // cache line before.
    uint64_t word = i == 0 ? layout.FirstWord(number, r) : range.left.load(kAcquire);
    for (; Take(range, word, number, piece, &units); word = range.left.load(kAcquire)) {
      run(task, units.begin * layout.unit, std::min(units.end * layout.unit, count), thread);
      done += units.end - units.begin;
    }
    if (done == 0) continue;
    worked = true;
    if (thread == 0) {
      done_at_end_ -= done;
    } else {
      done_.fetch_add(done, std::memory_order_seq_cst);
    }
  }
  // Thread 0 may wait for others too: it looks again then.
  if (worked && thread != 0) done_.notify_one();
  return worked;
}

void StageBoard::SleepUntilAllDone() {
  for (uint32_t done; (done = done_.load(kAcquire)) != done_at_end_;) done_.wait(done, kAcquire);
}

}  // namespace encore::internal
