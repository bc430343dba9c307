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

// A mark on its way through NFC, NFKC or NFKD (unicode_forms.cc).
struct MarkOfForm {
  char32_t c;
  int change;  // see Written in aligned_writer.h
  unsigned rank;
  size_t place;  // among the marks of its run
};

// A run of marks between two starters. Its memory is reused. Adding throws std::bad_alloc.
class MarkRun {
 public:
  // What unicode_forms.cc works with: marks to be sorted, and those that compose with nothing.
  std::vector<MarkOfForm> run_of_form;
  std::vector<MarkOfForm> blocked_of_form;

  bool empty() const { return marks_.empty(); }
  size_t memory_bytes() const {
    return MemoryBytes(run_of_form, blocked_of_form, marks_, origins_);
  }

  // A mark of this rank (not 0). `first`: it is the first part of the character that it came from,
  // which lies at `origin`.
  void Add(char32_t c, unsigned rank, bool first, ByteRange origin) {
    marks_.push_back({c, rank, first, marks_.size(), origin});
  }
  // Where the character before the run came from.
  void SetBefore(ByteRange origin) { before_ = origin; }

  // Calls put(mark, origin) for each mark in canonical order, and forgets them. Origins stay in
  // the order in which they were: `tokenizers` aligns what it writes with what it reads, one after
  // another, and a part of a character that is not the first with what was read last.
  template <typename Put>
  void Flush(const Put& put) {
    if (marks_.empty()) return;
    origins_.clear();
    for (const Mark& mark : marks_) {
      if (mark.first) origins_.push_back(mark.origin);
    }
    std::sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
    });
    ByteRange origin = before_;
    size_t read = 0;
    for (const Mark& mark : marks_) {
      if (mark.first) origin = origins_[read++];
      put(mark.c, origin);
    }
    marks_.clear();
  }

 private:
  struct Mark {
    char32_t c;
    unsigned rank;
    bool first;
    size_t place;
    ByteRange origin;
  };
  std::vector<Mark> marks_;
  std::vector<ByteRange> origins_;
  ByteRange before_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_CANONICAL_ORDER_H_
