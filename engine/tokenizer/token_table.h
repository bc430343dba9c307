// SPDX-License-Identifier: Apache-2.0
//
// A model's vocabulary: tokens by id and ids by token.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKEN_TABLE_H_
#define ENCORE_ENGINE_TOKENIZER_TOKEN_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/byte_trie.h"

namespace encore::inline v0_1::internal {

// Tokens with their ids; views that outlive Create.
using Vocabulary = std::vector<ByteTrie::Entry>;

// Immutable.
class TokenTable {
 public:
  // A token with several ids is an error, or has the last one.
  enum class Twice : uint8_t { kError, kLastCounts };

  TokenTable() = default;
  // Ids up to ByteTrie::kMaxValue, tokens of less than 4 GiB. kInvalidArgument for an id, or with
  // Twice::kError a token, that is there twice; errors start with `where`. An empty token has an id
  // and is never found. Throws std::bad_alloc.
  static Result<TokenTable> Create(const Vocabulary& vocabulary, const std::string& where,
                                   Twice twice = Twice::kError);

  std::optional<int32_t> Id(std::string_view token) const {
    uint32_t id = 0;
    if (!trie_.Find(token, &id)) return {};
    return static_cast<int32_t>(id);
  }
  // Empty if there is none. Valid as long as the table stays where it is.
  std::string_view Token(int32_t id) const;
  size_t count() const { return by_id_.size(); }
  // Every id is below this.
  size_t id_limit() const { return by_id_.empty() ? 0 : static_cast<size_t>(by_id_.back().id) + 1; }
  const ByteTrie& trie() const { return trie_; }
  void Put(TableWriter* out) const;
  // What Put has written; false for other bytes.
  [[nodiscard]] bool Take(TableReader* in);
  // The ids of the bytes' tokens "<0x00>" to "<0xFF>"; -1: none.
  std::array<int32_t, 256> OfBytes() const;

 private:
  // A token's text in text_.
  struct Place {
    uint64_t begin;
    uint32_t size;
    uint32_t id;
  };

  ByteTrie trie_;
  std::string text_;          // tokens one after another
  std::vector<Place> by_id_;  // sorted by id
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKEN_TABLE_H_
