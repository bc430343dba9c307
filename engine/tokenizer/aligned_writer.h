// SPDX-License-Identifier: Apache-2.0
//
// Writes normalized text and where it came from, by the rules with which `tokenizers` aligns what
// it writes with what it reads.

#ifndef ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_
#define ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_

#include <algorithm>

#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// A character that is written. Its change is 1 if it stands for no character of its own, 0 if it
// stands for the next one that was not read yet, -n if it stands for that and n more.
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
      // At the very start there is nothing that it could stand beside.
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

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_ALIGNED_WRITER_H_
