// SPDX-License-Identifier: Apache-2.0
//
// Unigram: of all ways to cut a word into pieces, the one whose pieces have the largest sum of
// scores (Kudo 2018, arXiv:1804.10959).

#ifndef ENCORE_ENGINE_TOKENIZER_UNIGRAM_H_
#define ENCORE_ENGINE_TOKENIZER_UNIGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/model.h"
#include "engine/tokenizer/token_table.h"

namespace encore::inline v0_1::internal {

struct UnigramSettings {
  size_t unk_id = 0;
  bool byte_fallback = false;  // unknown text is the tokens <0x00> to <0xFF> of its bytes
};

class Unigram : public Model {
 public:
  // scores[i] is that of the token with id i. Of a token that is there twice the last id counts, as
  // in `tokenizers`. kInvalidArgument for a score that is no finite
  // number, for an unk_id that no token has, and for what TokenTable refuses. Sentences start with
  // `where`. Throws std::bad_alloc.
  static Result<std::unique_ptr<const Model>> Create(const Vocabulary& vocabulary,
                                                     std::vector<double> scores,
                                                     const UnigramSettings& settings,
                                                     const std::string& where);

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                TokenList* out) const override;
  std::optional<int32_t> TokenToId(std::string_view token) const override {
    return tokens_.Id(token);
  }
  std::string_view IdToToken(int32_t id) const override { return tokens_.Token(id); }
  size_t token_count() const override { return tokens_.count(); }
  size_t id_limit() const override { return tokens_.id_limit(); }

 private:
  Unigram() = default;
  // Fills in scratch->best for a word.
  void FindBest(std::string_view word, ModelScratch* scratch) const;
  // Appends the tokens of a piece that may be no token.
  void PutPiece(TextView text, Span piece, TokenList* out) const;

  TokenTable tokens_;
  std::vector<double> scores_;  // by id
  uint32_t unk_id_ = 0;
  double unk_score_ = 0;  // of one unknown character
  // The tokens of bytes; nothing without byte_fallback. -1: none.
  std::optional<std::array<int32_t, 256>> fallback_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNIGRAM_H_
