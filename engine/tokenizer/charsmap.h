// SPDX-License-Identifier: Apache-2.0
//
// sentencepiece's map of characters: four bytes that say how long a double array is, the array
// (darts-clone's, of 32-bit units), and the replacements, each ending with a zero byte. All
// integers are little-endian.

#ifndef ENCORE_ENGINE_TOKENIZER_CHARSMAP_H_
#define ENCORE_ENGINE_TOKENIZER_CHARSMAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace encore::inline v0_1::internal {

// Immutable once read.
class Charsmap {
 public:
  // A string of the map, in bytes, and its replacement.
  struct Match {
    size_t size;
    std::string_view replacement;
  };

  // False, and the end of an error's sentence, for bytes that are no map.
  bool Read(std::string_view bytes, std::string* problem);

  // The replacement of the shortest string of the map that the text starts with, as in
  // `tokenizers`; and the longest one, as in sentencepiece.
  std::optional<std::string_view> Find(std::string_view text) const;
  std::optional<Match> Longest(std::string_view text) const;

  // The largest ratio of a replacement's bytes to its string's.
  double growth() const { return growth_; }

 private:
  // Calls body(size, replacement) for each string of the map that the text starts with, the
  // shortest first, until it returns false.
  template <typename Body>
  void ForEachPrefix(std::string_view text, const Body& body) const;
  std::string_view ReplacementAt(size_t begin) const;
  // Every step from the root stays in the array, and every value is a place where text starts.
  // Finds the growth on the way.
  bool CheckTrie();

  std::vector<uint32_t> units_;
  std::string replacements_;
  double growth_ = 1;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_CHARSMAP_H_
