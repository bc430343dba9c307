// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: a "model" of type WordPiece. A word becomes the longest token that it starts
// with, then the longest continuing one, and so on; one unknown token if that fails anywhere (Wu et
// al. 2016, arXiv:1609.08144, as in BERT).

#include <memory>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"

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

class WordPiece : public Model {
 public:
  // `continuing` has the tokens that continue a word; words of more characters are unknown.
  WordPiece(TokenTable tokens, ByteTrie continuing, int32_t unk_id, size_t max_chars)
      : max_chars_(max_chars), unk_id_(unk_id), continuing_(std::move(continuing)) {
    tokens_ = std::move(tokens);
  }

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch*,
                TokenList* out) const override;
  bool Put(TableWriter* out) const override {
    tokens_.Put(out);
    continuing_.Put(out);
    return true;
  }

 private:
  // Appends the tokens of a word; false (and some of them appended) if it is unknown.
  bool TokenizeWord(TextView text, Span word, TokenList* out) const;

  const size_t max_chars_;
  const int32_t unk_id_;
  ByteTrie continuing_;  // those with the prefix, without it
};

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

// The tokens with the prefix, which continue a word, without it.
Vocabulary WithoutPrefix(const Vocabulary& vocabulary, const std::string& prefix) {
  Vocabulary continuing;
  for (const auto& [token, id] : vocabulary) {
    if (token.size() > prefix.size() && token.starts_with(prefix)) {
      continuing.emplace_back(token.substr(prefix.size()), id);
    }
  }
  return continuing;
}

}  // namespace

Status ReadWordPiece(JsonMembers* members, TokenizerParts* parts, TableReader* packed) {
  const std::string& where = members->where();
  parts->unk_token = members->RequiredString("unk_token");
  const std::string prefix = members->RequiredString("continuing_subword_prefix");
  const size_t max_chars = members->RequiredSize("max_input_chars_per_word");
  const JsonValue& vocab = members->RequiredObject("vocab");
  if (!members->ok()) return members->status();
  ENCORE_RETURN_IF_ERROR(RefuseUnread(*members));
  TokenTable tokens;
  ByteTrie continuing;
  if (packed == nullptr) {
    Vocabulary vocabulary;
    ENCORE_RETURN_IF_ERROR(ReadVocabulary(vocab, where, &vocabulary));
    ENCORE_ASSIGN_OR_RETURN(tokens, TokenTable::Create(vocabulary, where));
    continuing = ByteTrie(WithoutPrefix(vocabulary, prefix));
  } else if (!tokens.Take(packed) || !continuing.Take(packed, tokens.id_limit())) {
    return DamagedTables(where);
  }
  ENCORE_ASSIGN_OR_RETURN(const int32_t unk_id, UnknownId(tokens, parts->unk_token, where));
  parts->model =
      std::make_unique<WordPiece>(std::move(tokens), std::move(continuing), unk_id, max_chars);
  parts->Note("unknown token", parts->unk_token, where + ": unk_token");
  parts->Note("characters of a word", "at most " + std::to_string(max_chars),
              where + ": max_input_chars_per_word");
  return {};
}

}  // namespace encore::internal
