// SPDX-License-Identifier: Apache-2.0
//
// The generated tables of Unicode (tests/make/unicode_tables.py), and how their numbers are read.
//
// A table is a row of numbers in LEB128 (seven bits a byte, the lowest first; the eighth bit says
// that more follow), and its bytes are base64.
// - Classes: how many classes there are; these; then runs from U+0000 on, each (code points - 1) *
//   classes + index of their class.
// - Mappings: runs of code points in ascending order. A run begins with 4 * (code points between it
//   and the run before) + kind. Kinds 0 and 1: a code point of one or two parts. 2: the number of
//   parts follows. 3: the number of code points behind the first follows; each has one part, which
//   is one more than that of its neighbour. The parts follow, each as its difference to the part in
//   the same place before it; 0, -1, 1, -2, 2 ... are written as 0, 1, 2, 3, 4 ...

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/base64.h"

namespace encore::inline v0_1::internal {

extern const std::string_view kUnicodeClasses;
extern const std::string_view kUnicodeDecompositions;
extern const std::string_view kUnicodeCompatibility;
extern const std::string_view kUnicodeLowercase;

// The numbers of a table, one after another. Throws std::bad_alloc.
class UnicodeNumbers {
 public:
  explicit UnicodeNumbers(std::string_view table) : bytes_(*FromBase64(table)) {}
  bool AtEnd() const { return at_ == bytes_.size(); }
  uint32_t Next() {
    uint32_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= (byte & 0x7Fu) << shift;
      if (byte < 0x80) return value;
    }
  }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

// Calls put(begin, end, class) for each run of code points of one class, one after another.
template <typename Put>
void ForEachUnicodeClass(std::string_view table, const Put& put) {
  UnicodeNumbers numbers(table);
  std::vector<uint32_t> classes(numbers.Next());
  for (uint32_t& one : classes) one = numbers.Next();
  for (char32_t begin = 0; !numbers.AtEnd();) {
    const uint32_t run = numbers.Next();
    const auto count = static_cast<uint32_t>(classes.size());
    const char32_t end = begin + 1 + run / count;
    put(begin, end, classes[run % count]);
    begin = end;
  }
}

// Calls put(c, parts) for each code point of a table of mappings; parts is a span of uint32_t.
template <typename Put>
void ForEachUnicodeMapping(std::string_view table, const Put& put) {
  UnicodeNumbers numbers(table);
  std::array<uint32_t, 32> parts = {};
  for (char32_t c = 0; !numbers.AtEnd();) {
    const uint32_t head = numbers.Next();
    const uint32_t kind = head % 4;
    c += head / 4;
    const uint32_t count = kind < 2 ? kind + 1 : kind == 2 ? numbers.Next() : 1;
    const uint32_t more = kind == 3 ? numbers.Next() : 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t coded = numbers.Next();
      parts[i] += coded % 2 == 0 ? coded / 2 : ~(coded / 2);
    }
    put(c++, std::span<const uint32_t>(parts).first(count));
    for (uint32_t i = 0; i < more; ++i) {
      ++parts[0];
      put(c++, std::span<const uint32_t>(parts).first(1));
    }
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_DATA_H_
