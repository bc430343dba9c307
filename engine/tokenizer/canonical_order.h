// SPDX-License-Identifier: Apache-2.0
//
// Canonical ordering of the combining marks of decomposed text (The Unicode Standard, section
// 3.11).

#ifndef ENCORE_ENGINE_TOKENIZER_CANONICAL_ORDER_H_
#define ENCORE_ENGINE_TOKENIZER_CANONICAL_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// A combining mark on its way to its place.
struct Mark {
  char32_t c;
  unsigned rank;
  int change;    // see Written in aligned_writer.h; 0: the first part of the character it came from
  size_t place;  // among the marks of its run
  ByteRange origin = {};
};

inline void PutInOrder(std::vector<Mark>* marks) {
  std::sort(marks->begin(), marks->end(), [](const Mark& a, const Mark& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
  });
}

// A run of marks between two starters. Its memory is reused. Adding throws std::bad_alloc.
class MarkRun {
 public:
  // What unicode_forms.cc works with: marks to be sorted, and those that compose with nothing.
  std::vector<Mark> marks;
  std::vector<Mark> blocked;

  size_t memory_bytes() const { return MemoryBytes(marks, blocked, origins_); }

  // A mark of this rank (not 0). `first`: it is the first part of the character that it came from,
  // which lies at `origin`.
  void Add(char32_t c, unsigned rank, bool first, ByteRange origin) {
    marks.push_back({c, rank, first ? 0 : 1, marks.size(), origin});
  }
  // Where the character before the run came from.
  void SetBefore(ByteRange origin) { before_ = origin; }

  // Calls put(mark, origin) for each mark in canonical order, and forgets them. Origins stay in
  // the order in which they were: `tokenizers` aligns what it writes with what it reads, one after
  // another, and a part of a character that is not the first with what was read last.
  template <typename Put>
  void Flush(const Put& put) {
    if (marks.empty()) return;
    origins_.clear();
    for (const Mark& mark : marks) {
      if (mark.change == 0) origins_.push_back(mark.origin);
    }
    PutInOrder(&marks);
    ByteRange origin = before_;
    size_t read = 0;
    for (const Mark& mark : marks) {
      if (mark.change == 0) origin = origins_[read++];
      put(mark.c, origin);
    }
    marks.clear();
  }

 private:
  std::vector<ByteRange> origins_;
  ByteRange before_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_CANONICAL_ORDER_H_
