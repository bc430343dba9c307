// SPDX-License-Identifier: Apache-2.0
//
// The merges of byte-pair encoding: which two tokens become which, and in what order. A hash table
// with open addressing.

#ifndef ENCORE_ENGINE_TOKENIZER_MERGE_TABLE_H_
#define ENCORE_ENGINE_TOKENIZER_MERGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace encore::inline v0_1::internal {

// Immutable once filled.
class MergeTable {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  MergeTable() : MergeTable(0) {}
  // For so many merges, below kNone. Throws std::bad_alloc.
  explicit MergeTable(size_t count) {
    size_t size = 16;
    while (size < count * 2) size *= 2;
    shift_ = 64;
    for (size_t i = size; i > 1; i /= 2) --shift_;
    slots_.resize(size);
    results_.reserve(count);
  }

  // Ranks count from 0. False if the pair is there already.
  bool Add(uint32_t left, uint32_t right, uint32_t result) {
    Slot& slot = slots_[Find(left, right)];
    if (slot.rank != kNone) return false;
    slot = {left, right, static_cast<uint32_t>(results_.size())};
    results_.push_back(result);
    return true;
  }
  // kNone: they do not merge.
  uint32_t Rank(uint32_t left, uint32_t right) const { return slots_[Find(left, right)].rank; }
  uint32_t Result(uint32_t rank) const { return results_[rank]; }

 private:
  struct Slot {
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t rank = kNone;
  };

  size_t Find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    // Fibonacci hashing: 2^64 / golden ratio.
    size_t place = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[place].rank != kNone &&
           (slots_[place].left != left || slots_[place].right != right)) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them full
  unsigned shift_ = 0;
  std::vector<uint32_t> results_;  // by rank
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_MERGE_TABLE_H_
