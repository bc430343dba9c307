// SPDX-License-Identifier: Apache-2.0
//
// What a tokenizer's model does: words to tokens.

#ifndef ENCORE_ENGINE_TOKENIZER_MODEL_H_
#define ENCORE_ENGINE_TOKENIZER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/text_buffer.h"
#include "engine/tokenizer/token_table.h"

namespace encore::inline v0_1::internal {

// Tokens of one text, without the template's.
struct TokenList {
  std::vector<int32_t> ids;
  std::vector<ByteRange> origins;  // empty unless asked for
  // With origins, of Unigram's unknown tokens: their place in ids, and the text that they stand
  // for, which lives as long as the words.
  std::vector<std::pair<size_t, std::string_view>> unknown;

  size_t memory_bytes() const { return MemoryBytes(ids, origins, unknown); }
  void Clear() {
    ids.clear();
    origins.clear();
    unknown.clear();
  }
};

// What a call works with, whichever model it is of; reused from call to call.
struct ModelScratch {
  // Bpe's: a word's symbols so far, and the possible merges of neighbours.
  struct Symbol {
    uint32_t id;
    uint32_t rank;  // of the merge with the next one
    size_t size;    // in bytes of the word as it is spelled
    // Of long words only, where symbols stay in their places.
    uint32_t previous;
    uint32_t next;
  };
  std::vector<Symbol> symbols;
  std::vector<uint64_t> merges;
  std::string spelled;

  // Unigram's: the best way to each place of a word.
  struct Best {
    double score;
    uint32_t id;
    uint32_t size;  // of the last piece, in bytes; 0: no way leads here
  };
  std::vector<Best> best;
  std::vector<Span> pieces;  // from the last one to the first

  TextBuffer normalized;  // SentencePiece's

  size_t memory_bytes() const {
    return MemoryBytes(symbols, merges, spelled, best, pieces) + normalized.memory_bytes();
  }
};

// Immutable.
class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of words of `text`, none of which is empty, with offsets if the text has
  // them. Throws std::bad_alloc.
  virtual void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                        TokenList* out) const = 0;

  // Appends the tables that reading the model's JSON makes, for its reader to take (ModelTables).
  // False if it has no such reader.
  virtual bool Put(TableWriter*) const { return false; }

  std::optional<int32_t> TokenToId(std::string_view token) const { return tokens_.Id(token); }
  // Empty if there is none.
  std::string_view IdToToken(int32_t id) const { return tokens_.Token(id); }
  size_t token_count() const { return tokens_.count(); }
  // Every id is below this.
  size_t id_limit() const { return tokens_.id_limit(); }

 protected:
  TokenTable tokens_;  // as the file spells them
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_MODEL_H_
