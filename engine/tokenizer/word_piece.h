// SPDX-License-Identifier: Apache-2.0
//
// WordPiece: a word becomes the longest token that it starts with, then the longest continuing one,
// and so on; one unknown token if that fails anywhere (Wu et al. 2016, arXiv:1609.08144, as in
// BERT).

#ifndef ENCORE_ENGINE_TOKENIZER_WORD_PIECE_H_
#define ENCORE_ENGINE_TOKENIZER_WORD_PIECE_H_

#include <memory>
#include <string>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/model.h"

namespace encore::inline v0_1::internal {

struct WordPieceSettings {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;  // longer words are unknown
};

class WordPiece : public Model {
 public:
  // kInvalidArgument if the unknown token is not in the vocabulary, and for what TokenTable
  // refuses; sentences start with `where`. Throws std::bad_alloc.
  static Result<std::unique_ptr<const Model>> Create(const Vocabulary& vocabulary,
                                                     const WordPieceSettings& settings,
                                                     const std::string& where);

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch*,
                TokenList* out) const override;

 private:
  WordPiece() = default;

  // Appends the tokens of a word; false (and some of them appended) if it is unknown.
  bool TokenizeWord(TextView text, Span word, TokenList* out) const;

  size_t max_chars_ = 0;
  int32_t unk_id_ = 0;
  ByteTrie continuing_;  // those with the prefix, without it
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_WORD_PIECE_H_
