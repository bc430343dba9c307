// SPDX-License-Identifier: Apache-2.0
//
// Finds added tokens: the leftmost match, the longest there, then on from its end, also where its
// flags discard it.

#include "engine/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "engine/base/quoted.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// Whether a word character ends before, or starts at, a place of the text.
bool WordBefore(std::string_view text, size_t place) {
  const char* at = text.data() + place;
  return place != 0 && Is(PreviousCodePoint(at), kWordChar);
}
bool WordAt(std::string_view text, size_t place) {
  const char* at = text.data() + place;
  return place != text.size() && Is(NextCodePoint(at), kWordChar);
}

// The start of the white space that ends at a place, not before `limit`; and the end of that which
// starts there.
size_t WhiteStart(std::string_view text, size_t place, size_t limit) {
  return limit + WithoutWhiteEnd(text.substr(limit, place - limit)).size();
}
size_t WhiteEnd(std::string_view text, size_t place) {
  return text.size() - WithoutWhiteStart(text.substr(place)).size();
}

}  // namespace

const char* AddedTokens::Matcher::Candidate(const char* at, const char* end) const {
  if (only_first) {
    const void* found = at == end ? nullptr
                                  : std::memchr(at, static_cast<unsigned char>(*only_first),
                                                static_cast<size_t>(end - at));
    return found == nullptr ? end : static_cast<const char*>(found);
  }
  while (at < end && !first[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

void AddedTokens::Matcher::Split(const std::vector<AddedToken>& tokens, std::string_view text,
                                 bool plain, std::vector<Piece>* pieces) const {
  size_t done = 0;  // the end of the last piece
  Span white;       // the last run of white space that a token took behind it
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  while (any && (at = Candidate(at, end)) < end) {
    const ByteTrie::Match match = trie.Longest(at, end);
    if (match.size == 0) {
      ++at;
      continue;
    }
    size_t begin = static_cast<size_t>(at - text.data());
    size_t stop = begin + match.size;
    at += match.size;
    const AddedToken& token = tokens[match.value];
    if (plain && token.special) continue;
    if (token.single_word && (WordBefore(text, begin) || WordAt(text, stop))) continue;
    // White space that a token before has taken stays with it, but never what the token matched.
    if (token.lstrip) begin = std::max(WhiteStart(text, begin, std::min(done, begin)), done);
    if (token.rstrip) {
      // Tokens that are white space match inside that run: it is walked once for all of them.
      if (stop < white.begin || stop > white.end) white = {stop, WhiteEnd(text, stop)};
      stop = white.end;
    }
    if (done < begin) pieces->push_back({{done, begin}, -1});
    if (begin < stop) pieces->push_back({{begin, stop}, token.id});
    done = stop;
  }
  if (done < text.size()) pieces->push_back({{done, text.size()}, -1});
}

AddedTokens::Matcher AddedTokens::MakeMatcher(std::vector<ByteTrie::Entry> entries) {
  Matcher matcher;
  matcher.any = !entries.empty();
  for (const auto& [content, place] : entries) {
    matcher.first[static_cast<unsigned char>(content[0])] = true;
  }
  if (std::count(matcher.first.begin(), matcher.first.end(), true) == 1) {
    matcher.only_first = entries[0].first[0];
  }
  matcher.trie = ByteTrie(std::move(entries));
  return matcher;
}

Result<AddedTokens> AddedTokens::Create(std::vector<AddedToken> tokens,
                                        const Normalizer& normalizer, const std::string& where) {
  AddedTokens added;
  added.tokens_ = std::move(tokens);
  std::vector<std::string> patterns;  // as they are looked for
  Normalizer::Scratch scratch;
  for (const AddedToken& token : added.tokens_) {
    if (token.content.size() > kMaxContentBytes) {
      return Status(ErrorCode::kUnsupported, where + ": " + Quoted(token.content) + " has " +
                                                 std::to_string(token.content.size()) +
                                                 " bytes; wanted at most " +
                                                 std::to_string(kMaxContentBytes));
    }
    const TextView content = {token.content.data(), token.content.size()};
    patterns.emplace_back(token.normalized ? normalizer.Apply(content, &scratch).text()
                                           : content.text());
    if (patterns.back().empty()) {
      return InvalidArgument(where + ": " + Quoted(token.content) +
                             " is nothing once normalized; wanted a token that can be found");
    }
  }
  for (const bool normalized : {false, true}) {
    std::vector<ByteTrie::Entry> entries;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (added.tokens_[i].normalized == normalized) {
        entries.emplace_back(patterns[i], static_cast<uint32_t>(i));
      }
    }
    std::sort(entries.begin(), entries.end());
    const auto twice =
        std::adjacent_find(entries.begin(), entries.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != entries.end()) {
      return InvalidArgument(where + ": " + Quoted(added.tokens_[twice[0].second].content) +
                             " and " + Quoted(added.tokens_[twice[1].second].content) +
                             " are the same once normalized");
    }
    (normalized ? added.normalized_ : added.raw_) = MakeMatcher(std::move(entries));
  }
  return added;
}

const AddedToken* AddedTokens::Find(std::string_view content) const {
  for (const AddedToken& token : tokens_) {
    if (token.content == content) return &token;
  }
  return nullptr;
}

}  // namespace encore::internal
