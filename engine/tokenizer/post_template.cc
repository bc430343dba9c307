// SPDX-License-Identifier: Apache-2.0
//
// Puts texts and special tokens together. Spaces are counted in the token and taken off the origin,
// a character each.

#include "engine/tokenizer/post_template.h"

#include <algorithm>

#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr char32_t kSpaceOfBytes = 0x120;  // a space in GPT-2's alphabet

bool IsSpace(char32_t c) { return c == kSpaceOfBytes || Is(c, kWhite); }

size_t LeadingSpaces(std::string_view token) {
  const char* const end = token.data() + token.size();
  size_t count = 0;
  for (const char* at = token.data(); at < end && IsSpace(NextCodePoint(at));) ++count;
  return count;
}

size_t TrailingSpaces(std::string_view token) {
  const char* at = token.data() + token.size();
  size_t count = 0;
  while (at > token.data() && IsSpace(PreviousCodePoint(at))) ++count;
  return count;
}

}  // namespace

void SetTemplate(std::optional<int32_t> first, std::optional<int32_t> between,
                 std::optional<int32_t> last, uint8_t second_type, PostTemplate* post) {
  using Kind = TemplatePiece::Kind;
  const auto put = [&](std::optional<int32_t> before, Kind kind, uint8_t type,
                       std::vector<TemplatePiece>* pieces) {
    if (before) pieces->push_back({Kind::kToken, *before, type});
    pieces->push_back({kind, 0, type});
    if (last) pieces->push_back({Kind::kToken, *last, type});
  };
  post->single.clear();
  put(first, Kind::kFirst, 0, &post->single);
  post->pair = post->single;
  put(between, Kind::kSecond, second_type, &post->pair);
}

size_t CountSpecial(const std::vector<TemplatePiece>& pieces) {
  return static_cast<size_t>(std::count_if(
      pieces.begin(), pieces.end(),
      [](const TemplatePiece& piece) { return piece.kind == TemplatePiece::Kind::kToken; }));
}

std::pair<size_t, size_t> LongestFirst(size_t first, size_t second, size_t limit) {
  if (first <= limit && second <= limit - first) return {first, second};
  const size_t shorter = std::min(first, second);
  const size_t half = limit / 2;
  // What the shorter and the longer text keep.
  size_t short_kept = shorter;
  size_t long_kept = limit - std::min(shorter, limit);
  if (shorter > long_kept) {
    short_kept = half;
    long_kept = limit - half;
  }
  if (first > second) return {long_kept, short_kept};
  return {short_kept, long_kept};
}

void ApplyTemplate(const std::vector<TemplatePiece>& pieces, bool with_special_tokens,
                   bool with_offsets, bool from_end, const TokenList& first, size_t first_count,
                   const TokenList& second, size_t second_count, Tokens* tokens) {
  tokens->ids.clear();
  tokens->type_ids.clear();
  tokens->offsets.clear();
  size_t behind = 0;  // tokens of the text that the last piece was
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::kToken) {
      const bool is_there = behind != 0 && tokens->ids.back() == piece.id;
      behind = 0;
      if (!with_special_tokens || (piece.once && is_there)) continue;
      tokens->ids.push_back(piece.id);
      tokens->type_ids.push_back(piece.type_id);
      if (with_offsets) tokens->offsets.push_back({});
      continue;
    }
    const bool is_first = piece.kind == TemplatePiece::Kind::kFirst;
    const TokenList& list = is_first ? first : second;
    const size_t count = is_first ? first_count : second_count;
    behind = count;
    if (!is_first) {
      tokens->second_begin = tokens->ids.size();
      tokens->second_end = tokens->second_begin + count;
    }
    const size_t begin = from_end ? list.ids.size() - count : 0;
    const int32_t* const ids = list.ids.data() + begin;
    tokens->ids.insert(tokens->ids.end(), ids, ids + count);
    tokens->type_ids.insert(tokens->type_ids.end(), count, piece.type_id);
    if (!with_offsets) continue;
    const ByteRange* const origins = list.origins.data() + begin;
    tokens->offsets.insert(tokens->offsets.end(), origins, origins + count);
  }
}

void TrimOrigin(OffsetTrim trim, std::string_view original, std::string_view token, bool first,
                ByteRange* origin) {
  if (trim == OffsetTrim::kNone) return;
  size_t leading = LeadingSpaces(token);
  if (leading == 1 && trim == OffsetTrim::kKeepFirstSpace && (first || origin->begin == 0)) {
    leading = 0;
  }
  for (; leading > 0 && origin->begin < origin->end; --leading) {
    do {
      ++origin->begin;
    } while (origin->begin < origin->end && Continues(original[origin->begin]));
  }
  size_t end = origin->end;
  for (size_t trailing = TrailingSpaces(token); trailing > 0; --trailing) {
    if (end == 0) return;  // the text has fewer characters: nothing is taken off
    do {
      --end;
    } while (end > 0 && Continues(original[end]));
  }
  origin->end = std::max(end, origin->begin);
}

}  // namespace encore::internal
