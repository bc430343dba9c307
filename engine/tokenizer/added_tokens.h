// SPDX-License-Identifier: Apache-2.0
//
// Added tokens: strings that are found in a text before anything else looks at it, and become one
// token each.

#ifndef ENCORE_ENGINE_TOKENIZER_ADDED_TOKENS_H_
#define ENCORE_ENGINE_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;      // ordinary text under plain_text
  bool normalized = true;    // its normalized form is looked for, in normalized text
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // white space before it belongs to it
  bool rstrip = false;       // white space behind it does

  static AddedToken Special(std::string content) {
    AddedToken token;
    token.content = std::move(content);
    token.special = true;
    token.normalized = false;
    return token;
  }
};

// A part of a text: an added token, or text between them.
struct Piece {
  Span span;
  int32_t id = -1;  // -1: text
};

// Immutable.
class AddedTokens {
 public:
  // Searching takes up to this many steps a byte.
  static constexpr size_t kMaxContentBytes = 4096;

  AddedTokens() = default;
  // Contents must differ. kInvalidArgument if two are the same once normalized, or one is nothing
  // then; kUnsupported for a content that is too long. Sentences start with `where`. Throws
  // std::bad_alloc.
  static Result<AddedTokens> Create(std::vector<AddedToken> tokens, const Normalizer& normalizer,
                                    const std::string& where);

  // Appends the pieces of a raw text, or of a normalized one. Special tokens are left alone
  // if `plain`. Throws std::bad_alloc.
  void Split(std::string_view text, bool normalized, bool plain, std::vector<Piece>* pieces) const {
    (normalized ? normalized_ : raw_).Split(tokens_, text, plain, pieces);
  }
  // Whether Split can find anything.
  bool any(bool normalized) const { return (normalized ? normalized_ : raw_).any; }

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  // The token of this content, or null.
  const AddedToken* Find(std::string_view content) const;

 private:
  struct Matcher {
    bool any = false;
    ByteTrie trie;  // of places in tokens_
    std::array<bool, 256> first = {};
    std::optional<char> only_first;  // if all start with the same byte

    // The first place from `at` on where a token may start, or `end`.
    const char* Candidate(const char* at, const char* end) const;
    void Split(const std::vector<AddedToken>& tokens, std::string_view text, bool plain,
               std::vector<Piece>* pieces) const;
  };
  static Matcher MakeMatcher(std::vector<ByteTrie::Entry> entries);

  std::vector<AddedToken> tokens_;
  Matcher raw_;
  Matcher normalized_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_ADDED_TOKENS_H_
