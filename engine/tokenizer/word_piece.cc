// SPDX-License-Identifier: Apache-2.0
//
// WordPiece over two tries.

#include "engine/tokenizer/word_piece.h"

#include <algorithm>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
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
  ENCORE_ASSIGN_OR_RETURN(model->tokens_, TokenTable::Create(vocabulary, where));
  Vocabulary continuing;
  const std::string& prefix = settings.continuing_subword_prefix;
  for (const auto& [token, id] : vocabulary) {
    if (token.size() > prefix.size() && token.starts_with(prefix)) {
      continuing.emplace_back(token.substr(prefix.size()), id);
    }
  }
  model->continuing_ = ByteTrie(std::move(continuing));
  const std::optional<int32_t> unk = model->tokens_.Id(settings.unk_token);
  if (!unk) {
    return InvalidArgument(where + ": the unknown token " + Quoted(settings.unk_token) +
                           " is not in the vocabulary");
  }
  model->unk_id_ = *unk;
  return std::unique_ptr<const Model>(std::move(model));
}

bool WordPiece::TokenizeWord(TextView text, Span word, TokenList* out) const {
  const char* at = text.data + word.begin;
  const char* const end = text.data + word.end;
  if (MoreCharactersThan(max_chars_, at, end)) return false;
  const ByteTrie* trie = &tokens_.trie();
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

void WordPiece::Tokenize(TextView text, const std::vector<Span>& words, ModelScratch*,
                         TokenList* out) const {
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

}  // namespace encore::internal
