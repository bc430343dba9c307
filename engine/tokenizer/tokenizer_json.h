// SPDX-License-Identifier: Apache-2.0
//
// All parts of a tokenizer from tokenizer.json, as `tokenizers` writes it, and from what its class
// makes.

#ifndef ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_
#define ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_

#include <string>
#include <string_view>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/tokenizer_class.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// sentence_piece.cc: what a model of sentencepiece has.
struct SentencePieceModel {
  // As in the file; others are none of these.
  enum class Type : uint64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };

  JsonValue json;  // like tokenizer.json with a "model" alone
  size_t unk_id = 0;
  // Control symbols (special) and symbols of the user.
  std::vector<AddedToken> added_tokens;
  // What only sentencepiece's own library reads.
  std::vector<Piece> pieces;
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool byte_fallback = false;
};

struct TokenizerFile {
  const JsonValue& json;  // tokenizer.json; or an object with a "model" alone, from other files
  std::string name;       // sentences start with it
  bool is_vocabulary = false;                          // the latter
  const SentencePieceModel* sentence_piece = nullptr;  // of SiglipTokenizer
  TableReader* packed = nullptr;                       // as ReadModel has it
};

// Errors as component_json.h has them. kUnsupported for a class that works in Python, and for a
// vocabulary of another model than the class makes. Throws std::bad_alloc.
Result<TokenizerParts> ReadTokenizerJson(const TokenizerFile& file, TokenizerClass which,
                                         const TokenizerConfig& config,
                                         const TokenizerOptions& options);

// vocabulary_files.cc: vocab.txt, or vocab.json and merges.txt, which transformers saved before.
// Both give an object like tokenizer.json with a "model" alone, whose settings the tokenizer's
// class adds. Errors name the file. They throw std::bad_alloc.

// A token a line, its number from 0 being the id; white space at its end is left out, and the last
// of equal lines counts. kCorruptData for bytes that are not UTF-8.
Result<JsonValue> ModelOfVocabTxt(std::string_view vocab_txt);
// `vocab_json`: an object of tokens with their ids. `merges_txt`: two tokens a line with a space
// between; lines that start with #version are left out. kCorruptData, kInvalidArgument.
Result<JsonValue> ModelOfVocabJson(std::string_view vocab_json, std::string_view merges_txt);

// The same of a model of sentencepiece, of type Unigram. kCorruptData, kUnsupported.
Result<SentencePieceModel> ModelOfSentencePiece(const char* file, std::string_view bytes);

// sentence_piece_model.cc: the model as sentencepiece's own library computes it, with its
// normalization; transformers' SiglipTokenizer calls that for each part of a text, with `unk_token`
// before it. kUnsupported for settings and pieces that encore does not compute; kInvalidArgument,
// kCorruptData.
Status SetSentencePiece(const SentencePieceModel& model, const std::string& file,
                        const std::string& unk_token, bool add_dummy_prefix, TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_TOKENIZER_JSON_H_
