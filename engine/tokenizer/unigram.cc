// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: a "model" of type Unigram, whose vocabulary is a list of tokens with scores; ids
// count from 0. Of all ways to cut a word into pieces, the one whose pieces have the largest sum of
// scores, in the order and with the sums of `tokenizers`: best_pieces.h.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/fp_env.h"
#include "engine/tokenizer/best_pieces.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

// Searching takes up to this many steps a byte; pieces of published models have less than 100.
constexpr size_t kMaxPieceBytes = 4096;
constexpr double kUnknownPenalty = 10;  // what an unknown character has less than the worst token

class Unigram : public Model {
 public:
  // scores[i] is that of the token with id i. Of a token that is there twice the last id counts, as
  // in `tokenizers`.
  Unigram(TokenTable tokens, std::vector<double> scores, size_t unk_id, bool byte_fallback)
      : scores_(std::move(scores)),
        unk_id_(static_cast<uint32_t>(unk_id)),
        unk_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty) {
    tokens_ = std::move(tokens);
    if (byte_fallback) fallback_ = tokens_.OfBytes();
  }

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                TokenList* out) const override;
  bool Put(TableWriter* out) const override {
    tokens_.Put(out);
    out->Put(scores_);
    out->Put(uint64_t{unk_id_});
    return true;
  }

 private:
  // Appends the tokens of a piece that may be no token.
  void PutPiece(TextView text, Span piece, TokenList* out) const;

  const std::vector<double> scores_;  // by id
  const uint32_t unk_id_;
  const double unk_score_;  // of one unknown character
  // The tokens of bytes; nothing without byte_fallback. -1: none.
  std::optional<std::array<int32_t, 256>> fallback_;
};

void Unigram::PutPiece(TextView text, Span piece, TokenList* out) const {
  const auto put = [&](int32_t id) {
    out->ids.push_back(id);
    if (text.origin != nullptr) out->origins.push_back(text.Origin(piece));
  };
  const std::string_view bytes = text.Part(piece).text();
  if (const std::optional<int32_t> id = tokens_.Id(bytes)) return put(*id);
  const auto fallback = [&](char c) { return (*fallback_)[static_cast<unsigned char>(c)]; };
  if (!fallback_ ||
      std::any_of(bytes.begin(), bytes.end(), [&](char c) { return fallback(c) < 0; })) {
    if (text.origin != nullptr) out->unknown.emplace_back(out->ids.size(), bytes);
    return put(static_cast<int32_t>(unk_id_));
  }
  for (const char c : bytes) put(fallback(c));
}

void Unigram::Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                       TokenList* out) const {
  const FpEnvScope rounding_to_nearest;
  for (const Span& word : words) {
    FindBestPieces<double>(text.Part(word).text(), word.begin, tokens_.trie(), scores_, unk_id_,
                           unk_score_, scratch);
    const std::vector<Span>& pieces = scratch->pieces;
    // Unknown characters in a row are one piece, which may be a token as a whole.
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      PutPiece(text, *piece, out);
    }
  }
}

// The vocabulary, a list of tokens with scores.
Status ReadScores(const JsonValue& vocab, const std::string& where, TokenTable* tokens,
                  std::vector<double>* scores) {
  Vocabulary vocabulary;
  vocabulary.reserve(vocab.items().size());
  for (size_t i = 0; i < vocab.items().size(); ++i) {
    const JsonValue& item = vocab.items()[i];
    const bool pair = item.is_array() && item.items().size() == 2 && item.items()[0].is_string() &&
                      item.items()[1].is_number();
    if (!pair) {
      return InvalidArgument(where + ": vocab[" + std::to_string(i) + "] is " + item.Described() +
                             "; wanted a token and its score");
    }
    const std::string& token = item.items()[0].text();
    const double score = item.items()[1].number();
    if (!std::isfinite(score)) {
      return InvalidArgument(where + ": vocab[" + std::to_string(i) + "] has a score that is " +
                             "no finite number of 64 bits");
    }
    if (token.size() > kMaxPieceBytes) {
      return Status(ErrorCode::kUnsupported,
                    where + ": vocab[" + std::to_string(i) + "] is " + Quoted(token) + ", of " +
                        std::to_string(token.size()) + " bytes; wanted at most " +
                        std::to_string(kMaxPieceBytes));
    }
    // Fewer than ByteTrie::kMaxValue: each is three values of JSON.
    static_assert(JsonValue::kMaxValues / 3 < ByteTrie::kMaxValue);
    vocabulary.emplace_back(token, static_cast<uint32_t>(i));
    scores->push_back(score);
  }
  ENCORE_ASSIGN_OR_RETURN(*tokens,
                          TokenTable::Create(vocabulary, where, TokenTable::Twice::kLastCounts));
  return {};
}

}  // namespace

Status ReadUnigram(JsonMembers* members, TokenizerParts* parts, TableReader* packed) {
  const std::string& where = members->where();
  const std::optional<size_t> unk_id = members->OptionalSize("unk_id");
  const bool byte_fallback = members->Bool("byte_fallback", false);
  const JsonValue& vocab = members->RequiredArray("vocab");
  if (!members->ok()) return members->status();
  ENCORE_RETURN_IF_ERROR(RefuseUnread(*members));
  if (!unk_id) {
    return Status(ErrorCode::kUnsupported,
                  where + ": unk_id is null; encore needs a token for unknown characters");
  }
  TokenTable tokens;
  std::vector<double> scores;
  uint64_t unknown = *unk_id;  // of some classes a place in the vocabulary
  if (packed == nullptr) {
    ENCORE_RETURN_IF_ERROR(ReadScores(vocab, where, &tokens, &scores));
  } else if (!tokens.Take(packed) || !packed->Take(&scores) || !packed->Take(&unknown) ||
             tokens.id_limit() > scores.size() || unknown >= scores.size()) {
    return DamagedTables(where);
  }
  if (unknown >= scores.size()) {
    return InvalidArgument(where + ": unk_id is " + std::to_string(unknown) +
                           "; wanted an id below " + std::to_string(scores.size()) +
                           ", the vocabulary's size");
  }
  parts->model =
      std::make_unique<Unigram>(std::move(tokens), std::move(scores), unknown, byte_fallback);
  parts->unk_token = parts->model->IdToToken(static_cast<int32_t>(unknown));
  parts->Note("unknown token", (byte_fallback ? "bytes, else " : "") + parts->unk_token,
              where + ": unk_id");
  return {};
}

}  // namespace encore::internal
