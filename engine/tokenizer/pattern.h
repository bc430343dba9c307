// SPDX-License-Identifier: Apache-2.0
//
// What Split and Replace look for: a literal string, or one of the regular expressions that
// published files use, each by a function of its own.

#ifndef ENCORE_ENGINE_TOKENIZER_PATTERN_H_
#define ENCORE_ENGINE_TOKENIZER_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// Immutable.
class Pattern {
 public:
  // As Next.
  using Search = bool (*)(const char* at, const char* end, std::string_view* match);

  // Matches this string, which is not empty.
  static Pattern Literal(std::string text);
  // By a regular expression's exact text; nothing for one that encore does not support.
  static std::optional<Pattern> Regex(std::string_view regex);
  // GPT-2's, which ByteLevel has inside.
  static Pattern Gpt2();
  // One character of punctuation, as BERT has it.
  static Pattern Punctuation();

  // The first match from `at` on, in valid text that ends at `end`; false if there is none.
  // Matches are never empty.
  bool Next(const char* at, const char* end, std::string_view* match) const;
  // No match has fewer bytes.
  size_t min_match_bytes() const { return search_ == nullptr ? literal_.size() : 1; }

 private:
  Pattern(std::string literal, Search search) : literal_(std::move(literal)), search_(search) {}

  std::string literal_;
  Search search_ = nullptr;  // null: literal_
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PATTERN_H_
