// SPDX-License-Identifier: Apache-2.0
//
// The published regular expressions as functions. Alternatives are tried in the order of the
// expression, and each takes what the greedy expression takes after backtracking.

#include "engine/tokenizer/pattern.h"

#include <cstring>

#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr uint32_t kWordLike = kLetter | kNumber | kSpace;  // what [^\s\p{L}\p{N}] is not

// The properties of the character at `at`, which moves behind it.
uint32_t Take(const char*& at) {
  if (IsAscii(*at)) return AsciiProperties(*at++);
  return PropertiesOf(NextCodePoint(at));
}

// The end of the run of characters that have one of these properties, or none of them.
const char* RunOf(uint32_t properties, const char* at, const char* end) {
  while (at < end) {
    const char* next = at;
    if ((Take(next) & properties) == 0) break;
    at = next;
  }
  return at;
}
const char* RunOfOthers(uint32_t properties, const char* at, const char* end) {
  while (at < end) {
    const char* next = at;
    if ((Take(next) & properties) != 0) break;
    at = next;
  }
  return at;
}

bool IsNewline(char c) { return c == '\r' || c == '\n'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// 's|'t|'re|'ve|'m|'ll|'d; null if there is none.
const char* Contraction(const char* at, const char* end) {
  if (*at != '\'' || end - at < 2) return nullptr;
  const char first = at[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return nullptr;
  const char second = at[2];
  const bool two =
      (second == 'e' && (first == 'r' || first == 'v')) || (first == 'l' && second == 'l');
  return two ? at + 3 : nullptr;
}

// The same with (?i:...): 's is also written with U+017F, the long s.
const char* ContractionAnyCase(const char* at, const char* end) {
  if (*at != '\'' || end - at < 2) return nullptr;
  const char letters[3] = {'\'', Lower(at[1]), end - at < 3 ? '\0' : Lower(at[2])};
  const char* const found = Contraction(letters, letters + (end - at < 3 ? 2 : 3));
  if (found != nullptr) return at + (found - letters);
  return std::string_view(at + 1, static_cast<size_t>(end - at) - 1).starts_with("\xC5\xBF")
             ? at + 3
             : nullptr;
}

// \s+(?!\S)|\s+ at white space whose run ends at `run_end`.
const char* Spaces(const char* at, const char* run_end, const char* end) {
  if (run_end == end) return end;
  const char* last = run_end;
  PreviousCodePoint(last);
  return last == at ? run_end : last;  // all but the last one, unless that is all
}

// GPT-2's:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
const char* MatchGpt2(const char* at, const char* end) {
  if (const char* const found = Contraction(at, end)) return found;
  const char* next = at + (*at == ' ' && at + 1 < end ? 1 : 0);
  const uint32_t properties = Take(next);
  if ((properties & kLetter) != 0) return RunOf(kLetter, next, end);
  if ((properties & kNumber) != 0) return RunOf(kNumber, next, end);
  if ((properties & kSpace) == 0) return RunOfOthers(kWordLike, next, end);
  return Spaces(at, RunOf(kSpace, at, end), end);
}

// What Llama 3 and Qwen share, with at most this many digits together:
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
//  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
const char* MatchLines(const char* at, const char* end, int digits) {
  if (const char* const found = ContractionAnyCase(at, end)) return found;
  const char* next = at;
  const uint32_t properties = Take(next);
  if ((properties & kLetter) != 0) return RunOf(kLetter, next, end);
  if ((properties & kNumber) != 0) {
    for (int i = 1; i < digits && next < end; ++i) {
      const char* behind = next;
      if ((Take(behind) & kNumber) == 0) break;
      next = behind;
    }
    return next;
  }
  if (!IsNewline(*at)) {
    const char* const letters = RunOf(kLetter, next, end);
    if (letters != next) return letters;
  }
  const bool is_space = (properties & kSpace) != 0;
  if (!is_space || *at == ' ') {
    const char* const others = RunOfOthers(kWordLike, next, end);
    if (!is_space || others != next) {
      const char* lines = others;
      while (lines < end && IsNewline(*lines)) ++lines;
      return lines;
    }
  }
  const char* const run_end = RunOf(kSpace, at, end);
  for (const char* last = run_end; last > at; --last) {
    if (IsNewline(last[-1])) return last;
  }
  return Spaces(at, run_end, end);
}
const char* MatchLlama3(const char* at, const char* end) { return MatchLines(at, end, 3); }
const char* MatchQwen2(const char* at, const char* end) { return MatchLines(at, end, 1); }

// CLIP's: 's|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
const char* MatchClip(const char* at, const char* end) {
  if (const char* const found = Contraction(at, end)) return found;
  const char* next = at;
  const uint32_t properties = Take(next);
  if ((properties & kLetter) != 0) return RunOf(kLetter, next, end);
  if ((properties & kNumber) != 0) return next;
  return (properties & kSpace) != 0 ? nullptr : RunOfOthers(kWordLike, next, end);
}

// The class's: <\|startoftext\|>|<\|endoftext\|>| and the above.
const char* MatchClipSpecial(const char* at, const char* end) {
  const std::string_view text(at, static_cast<size_t>(end - at));
  for (const std::string_view special : {"<|startoftext|>", "<|endoftext|>"}) {
    if (text.starts_with(special)) return at + special.size();
  }
  return MatchClip(at, end);
}

const char* MatchTwoSpaces(const char* at, const char* end) {
  const char* next = at;
  while (next < end && *next == ' ') ++next;
  return next - at < 2 ? nullptr : next;
}
const char* MatchAnySpaces(const char* at, const char* end) {
  const char* const next = RunOf(kSpace, at, end);
  return next == at ? nullptr : next;
}
const char* MatchSpacesOrLine(const char* at, const char* end) {
  const char* next = at;
  if ((Take(next) & kSpace) == 0) return nullptr;
  const char* const run_end = RunOf(kSpace, next, end);
  return run_end != next || IsNewline(*at) || *at == '\t' ? run_end : nullptr;
}
const char* MatchOneSpace(const char* at, const char*) {
  return (Take(at) & kSpace) != 0 ? at : nullptr;
}
const char* MatchNewline(const char* at, const char*) { return IsNewline(*at) ? at + 1 : nullptr; }
const char* MatchNumber(const char* at, const char*) {
  return (Take(at) & kNumber) != 0 ? at : nullptr;
}
const char* MatchThreeNumbers(const char* at, const char* end) {
  const char* done = nullptr;
  for (int i = 0; i < 3 && at < end && (Take(at) & kNumber) != 0; ++i) done = at;
  return done;
}

const char* MatchPunctuation(const char* at, const char*) {
  return Is(NextCodePoint(at), kPunctuation) ? at : nullptr;
}

const char* MatchAsciiPunctuation(const char* at, const char*) {
  const char c = *at;
  const bool found = (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
                     (c >= '{' && c <= '~');
  return found ? at + 1 : nullptr;
}

// The first match from `at` on, of what kMatch finds at a place: the match's end, or null.
template <const char* (*kMatch)(const char* at, const char* end)>
bool FindNext(const char* at, const char* end, std::string_view* match) {
  for (; at < end; at += Utf8Length(*at)) {
    const char* const match_end = kMatch(at, end);
    if (match_end == nullptr) continue;
    *match = {at, static_cast<size_t>(match_end - at)};
    return true;
  }
  return false;
}

struct Published {
  std::string_view regex;
  Pattern::Search search;
};

constexpr Published kPublished[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     FindNext<MatchGpt2>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)"
     R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     FindNext<MatchLlama3>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     FindNext<MatchQwen2>},
    {R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)", FindNext<MatchClip>},
    {R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|)"
     R"([^\s\p{L}\p{N}]+)",
     FindNext<MatchClipSpecial>},
    {" {2,}", FindNext<MatchTwoSpaces>},
    {R"(\s+)", FindNext<MatchAnySpaces>},
    {R"(\s{2,}|[\n\r\t])", FindNext<MatchSpacesOrLine>},
    {R"(\s)", FindNext<MatchOneSpace>},
    {R"([\r\n])", FindNext<MatchNewline>},
    {R"(\p{N})", FindNext<MatchNumber>},
    {R"(\p{N}{1,3})", FindNext<MatchThreeNumbers>},
    {R"([!-/:-@\[-`{-~])", FindNext<MatchAsciiPunctuation>},  // SigLIP's class
};

}  // namespace

Pattern Pattern::Literal(std::string text) { return {std::move(text), nullptr}; }
Pattern Pattern::Gpt2() { return {"", FindNext<MatchGpt2>}; }
Pattern Pattern::Punctuation() { return {"", FindNext<MatchPunctuation>}; }

std::optional<Pattern> Pattern::Regex(std::string_view regex) {
  for (const Published& published : kPublished) {
    if (published.regex == regex) return Pattern("", published.search);
  }
  return {};
}

bool Pattern::Next(const char* at, const char* end, std::string_view* match) const {
  if (search_ != nullptr) return search_(at, end, match);
  const std::string_view text(at, static_cast<size_t>(end - at));
  const size_t place = text.find(literal_);
  if (place == std::string_view::npos) return false;
  *match = text.substr(place, literal_.size());
  return true;
}

}  // namespace encore::internal
