// SPDX-License-Identifier: Apache-2.0
//
// Splits text into words, one table look-up a character.

#include "engine/tokenizer/pre_tokenizer.h"

#include <array>

#include "engine/tokenizer/unicode.h"

namespace encore::internal {
namespace {

// What a step does with a character: it goes on the word before it if that is of the same kind,
// except kAlone, which is a word by itself, and kRemoved.
enum class CharKind : uint8_t { kRemoved, kAlone, kFirst, kSecond };

CharKind KindOf(PreTokenizerStep step, uint16_t properties) {
  if ((properties & kWhite) != 0) return CharKind::kRemoved;
  switch (step) {
    case PreTokenizerStep::kWhitespaceSplit:
      return CharKind::kFirst;
    case PreTokenizerStep::kBert:
      return (properties & kPunctuation) != 0 ? CharKind::kAlone : CharKind::kFirst;
    case PreTokenizerStep::kWhitespace:
      return (properties & kWordChar) != 0 ? CharKind::kFirst : CharKind::kSecond;
  }
  return CharKind::kFirst;
}

using AsciiKinds = std::array<CharKind, 128>;

const AsciiKinds& AsciiKindsOf(PreTokenizerStep step) {
  const auto make = [](PreTokenizerStep of) {
    AsciiKinds kinds;
    for (char32_t c = 0; c < kinds.size(); ++c) kinds[c] = KindOf(of, Unicode::Get().Properties(c));
    return kinds;
  };
  static const std::array<AsciiKinds, 3> kinds = {make(PreTokenizerStep::kWhitespaceSplit),
                                                  make(PreTokenizerStep::kBert),
                                                  make(PreTokenizerStep::kWhitespace)};
  return kinds[static_cast<size_t>(step)];
}

// Appends the words of a part of the text.
void SplitPart(PreTokenizerStep step, const char* text, Span part, std::vector<Span>* words) {
  const AsciiKinds& ascii = AsciiKindsOf(step);
  const Unicode& unicode = Unicode::Get();
  const char* const end = text + part.end;
  const char* at = text + part.begin;
  const auto place = [text](const char* p) { return static_cast<size_t>(p - text); };
  // The kind of the character at `at`, which moves behind it.
  const auto next = [&] {
    if (IsAscii(*at)) return ascii[static_cast<size_t>(*at++)];
    return KindOf(step, unicode.Properties(NextCodePoint(at)));
  };
  while (at < end) {
    const size_t begin = place(at);
    const CharKind kind = next();
    if (kind == CharKind::kRemoved) continue;
    while (at < end && kind != CharKind::kAlone) {
      const char* const before = at;
      if (next() == kind) continue;
      at = before;
      break;
    }
    words->push_back({begin, place(at)});
  }
}

}  // namespace

const std::vector<Span>& PreTokenizer::Split(TextView text, Scratch* scratch) const {
  std::vector<Span>* words = &scratch->words[0];
  words->clear();
  if (text.size != 0) words->push_back({0, text.size});
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::vector<Span>* const finer = &scratch->words[(i + 1) % 2];
    finer->clear();
    for (const Span& word : *words) SplitPart(steps_[i], text.data, word, finer);
    words = finer;
  }
  return *words;
}

}  // namespace encore::internal
