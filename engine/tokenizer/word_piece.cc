// SPDX-License-Identifier: Apache-2.0
//
// WordPiece over two tries.

#include "engine/tokenizer/word_piece.h"

#include <algorithm>

#include "engine/base/quoted.h"

namespace encore::internal {
namespace {

// Whether the bytes are more than `limit` characters.
bool MoreCharactersThan(size_t limit, const char* at, const char* end) {
  if (static_cast<size_t>(end - at) <= limit) return false;
  size_t count = 0;
  for (; at < end; at += Utf8Length(*at)) {
    if (++count > limit) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<const Model>> WordPiece::Create(const Vocabulary& vocabulary,
                                                       const WordPieceSettings& settings,
                                                       const std::string& where) {
  std::unique_ptr<WordPiece> model(new WordPiece);
  model->max_chars_ = settings.max_input_chars_per_word;
  Vocabulary first, continuing;
  size_t bytes = 0;
  for (const auto& [token, id] : vocabulary) bytes += token.size();
  model->tokens_.reserve(bytes);
  const std::string& prefix = settings.continuing_subword_prefix;
  for (const auto& [token, id] : vocabulary) {
    if (id > ByteTrie::kMaxValue) {
      return InvalidArgument(where + ": token " + Quoted(token) + " has id " + std::to_string(id) +
                             "; wanted at most " + std::to_string(ByteTrie::kMaxValue));
    }
    model->by_id_.push_back({id, model->tokens_.size(), token.size()});
    model->tokens_ += token;
    if (!token.empty()) first.emplace_back(token, id);
    if (token.size() > prefix.size() && token.starts_with(prefix)) {
      continuing.emplace_back(token.substr(prefix.size()), id);
    }
  }
  std::sort(model->by_id_.begin(), model->by_id_.end(),
            [](const Token& a, const Token& b) { return a.id < b.id; });
  const auto twice =
      std::adjacent_find(model->by_id_.begin(), model->by_id_.end(),
                         [](const Token& a, const Token& b) { return a.id == b.id; });
  if (twice != model->by_id_.end()) {
    const auto text = [&](const Token& t) {
      return Quoted(model->tokens_.substr(t.begin, t.size));
    };
    return InvalidArgument(where + ": tokens " + text(twice[0]) + " and " + text(twice[1]) +
                           " both have id " + std::to_string(twice->id));
  }
  model->first_ = ByteTrie(std::move(first));
  model->continuing_ = ByteTrie(std::move(continuing));
  uint32_t unk = 0;
  if (!model->first_.Find(settings.unk_token, &unk)) {
    return InvalidArgument(where + ": the unknown token " + Quoted(settings.unk_token) +
                           " is not in the vocabulary");
  }
  model->unk_id_ = static_cast<int32_t>(unk);
  return std::unique_ptr<const Model>(std::move(model));
}

bool WordPiece::TokenizeWord(TextView text, Span word, TokenList* out) const {
  const char* at = text.data + word.begin;
  const char* const end = text.data + word.end;
  if (MoreCharactersThan(max_chars_, at, end)) return false;
  const ByteTrie* trie = &first_;
  while (at < end) {
    const ByteTrie::Match match = trie->Longest(at, end);
    if (match.size == 0) return false;
    out->ids.push_back(static_cast<int32_t>(match.value));
    if (text.origin != nullptr) {
      const size_t begin = static_cast<size_t>(at - text.data);
      out->origins.push_back(text.Origin({begin, begin + match.size}));
    }
    at += match.size;
    trie = &continuing_;
  }
  return true;
}

void WordPiece::Tokenize(TextView text, const std::vector<Span>& words, TokenList* out) const {
  for (const Span& word : words) {
    const size_t before = out->ids.size();
    if (TokenizeWord(text, word, out)) continue;
    out->ids.resize(before);
    out->ids.push_back(unk_id_);
    if (text.origin == nullptr) continue;
    out->origins.resize(before);
    out->origins.push_back(text.Origin(word));
  }
}

std::optional<int32_t> WordPiece::TokenToId(std::string_view token) const {
  uint32_t id = 0;
  if (first_.Find(token, &id)) return static_cast<int32_t>(id);
  return {};
}

std::string_view WordPiece::IdToToken(int32_t id) const {
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), id, [](const Token& t, int32_t i) {
    return static_cast<int64_t>(t.id) < i;
  });
  if (at == by_id_.end() || static_cast<int64_t>(at->id) != id) return {};
  return std::string_view(tokens_).substr(at->begin, at->size);
}

size_t WordPiece::id_limit() const {
  return by_id_.empty() ? 0 : static_cast<size_t>(by_id_.back().id) + 1;
}

}  // namespace encore::internal
