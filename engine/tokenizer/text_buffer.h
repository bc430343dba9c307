// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer's text: bytes and, if asked for, each byte's offsets in the original text.

#ifndef ENCORE_ENGINE_TOKENIZER_TEXT_BUFFER_H_
#define ENCORE_ENGINE_TOKENIZER_TEXT_BUFFER_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {

// What these vectors and strings hold, used or not.
template <typename... Containers>
size_t MemoryBytes(const Containers&... containers) {
  return (size_t{0} + ... + (containers.capacity() * sizeof(*containers.data())));
}

// Bytes [begin, end) of some text.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// Valid UTF-8 of somebody else.
struct TextView {
  const char* data = nullptr;
  size_t size = 0;
  // The offsets of each byte's character in the original text; null if not asked for.
  const ByteRange* origin = nullptr;

  TextView Part(Span span) const {
    return {data + span.begin, span.end - span.begin,
            origin == nullptr ? nullptr : origin + span.begin};
  }
  std::string_view text() const { return {data, size}; }
  // The part of the original text that a span with at least one byte came from; {0, 0} if nobody
  // asks.
  ByteRange Origin(Span span) const {
    if (origin == nullptr) return {};
    return {origin[span.begin].begin, origin[span.end - 1].end};
  }
};

// Text that grows; keeps its memory when cleared. Throws std::bad_alloc.
class TextBuffer {
 public:
  void Clear(bool with_origins) {
    size_ = 0;
    with_origins_ = with_origins;
    origins_.clear();
  }
  size_t memory_bytes() const { return capacity_ + MemoryBytes(origins_); }
  bool with_origins() const { return with_origins_; }
  size_t size() const { return size_; }
  TextView view() const { return {bytes_.get(), size_, with_origins_ ? origins_.data() : nullptr}; }

  // Makes room for so many bytes more. What is written there counts once it is Extended by it.
  char* Room(size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return bytes_.get() + size_;
  }
  // Bytes with the same offsets.
  void PutBytes(std::string_view bytes, ByteRange origin) {
    if (bytes.empty()) return;
    std::memcpy(Room(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
    if (with_origins_) origins_.insert(origins_.end(), bytes.size(), origin);
  }
  // Another text as it is.
  void PutPart(TextView part) {
    if (part.size == 0) return;
    std::memcpy(Room(part.size), part.data, part.size);
    size_ += part.size;
    if (with_origins_) origins_.insert(origins_.end(), part.origin, part.origin + part.size);
  }
  // Without origins only.
  void ExtendTo(const char* end) { size_ = static_cast<size_t>(end - bytes_.get()); }
  void Put(char32_t c, ByteRange origin) {
    char* const end = PutCodePoint(c, Room(4));
    const size_t size = static_cast<size_t>(end - bytes_.get());
    if (with_origins_) origins_.insert(origins_.end(), size - size_, origin);
    size_ = size;
  }

 private:
  void Grow(size_t bytes) {
    const size_t capacity = capacity_ * 2 + bytes + 64;
    std::unique_ptr<char[]> larger(new char[capacity]);
    if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool with_origins_ = false;
  std::vector<ByteRange> origins_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TEXT_BUFFER_H_
