// SPDX-License-Identifier: Apache-2.0
//
// Writes normalized text with its alignment to the input, as `tokenizers` aligns; and puts
// combining marks of decomposed text in canonical order (The Unicode Standard, section 3.11).

#ifndef ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_
#define ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// A character to write. `change` as in tokenizers' NormalizedString: 1: inserted; 0: replaces the
// next input character; -n: replaces it and n more.
struct Written {
  char32_t c;
  int change;
};

class AlignedWriter {
 public:
  AlignedWriter(TextView from, TextBuffer* out) : from_(from), out_(out) {}

  // Throws std::bad_alloc.
  void Put(Written written) {
    if (from_.origin == nullptr) return out_->Put(written.c, {});
    if (written.change > 0) {
      const ByteRange before = at_ == 0 ? StartOfText() : from_.origin[at_ - 1];
      return out_->Put(written.c, before);
    }
    out_->Put(written.c, at_ < from_.size ? from_.origin[at_] : EndOfText());
    for (int read = written.change; read <= 0 && at_ < from_.size; ++read) {
      at_ += Utf8Length(from_.data[at_]);
    }
  }
  // The next `size` bytes as they are.
  void Copy(const char* bytes, size_t size) {
    if (from_.origin == nullptr) return out_->PutBytes({bytes, size}, {});
    const char* const end = bytes + size;
    while (bytes < end) Put({NextCodePoint(bytes), 0});
  }

 private:
  ByteRange StartOfText() const {
    return from_.size == 0 ? ByteRange() : ByteRange{from_.origin[0].begin, from_.origin[0].begin};
  }
  ByteRange EndOfText() const {
    return from_.size == 0 ? ByteRange() : from_.origin[from_.size - 1];
  }

  const TextView from_;
  TextBuffer* const out_;
  size_t at_ = 0;  // the first byte that was not read yet
};

// A combining mark on its way to its place.
struct Mark {
  char32_t c;
  unsigned rank;
  int change;    // as of Written; 0: the first part of the character it came from
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

#endif  // ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_
