// SPDX-License-Identifier: Apache-2.0
//
// Unigram as sentencepiece's own library computes it (Kudo & Richardson 2018, arXiv:1808.06226):
// the longest string of the map of characters is replaced at each place, spaces become U+2581, and
// sums of scores are rounded to f32. Of equal sums the first stays.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/fp_env.h"
#include "engine/tokenizer/best_pieces.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr float kUnknownLoss = 10;  // what an unknown character has less than the worst piece
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr double kMostGrowth = 65536;  // of a text, as of other tokenizers

class SentencePiece : public Model {
 public:
  struct Parts {
    TokenTable tokens = {};          // all pieces
    ByteTrie trie = ByteTrie();      // those that text may become
    std::vector<float> scores = {};  // by id
    float least_score = 0;
    Charsmap map = {};
    uint32_t unk_id = 0;
    bool add_dummy_prefix = true;
  };

  // Each part of a text is encoded behind `prefix`, whose own pieces are left out afterwards.
  SentencePiece(Parts parts, std::string prefix)
      : parts_(std::move(parts)), prefix_(std::move(prefix)) {
    tokens_ = std::move(parts_.tokens);
    ModelScratch scratch;
    Normalize({}, &scratch.normalized);
    prefix_pieces_ = FindPieces(&scratch);
  }

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                TokenList* out) const override {
    for (const Span& word : words) {
      scratch->normalized.Clear(text.origin != nullptr);
      Normalize(text.Part(word), &scratch->normalized);
      const size_t count = FindPieces(scratch);
      const TextView normalized = scratch->normalized.view();
      for (size_t i = count < prefix_pieces_ ? 0 : prefix_pieces_; i < count; ++i) {
        const Span piece = scratch->pieces[count - 1 - i];
        const std::optional<int32_t> id = tokens_.Id(normalized.Part(piece).text());
        out->ids.push_back(id.value_or(static_cast<int32_t>(parts_.unk_id)));
        if (text.origin != nullptr) out->origins.push_back(normalized.Origin(piece));
      }
    }
  }

 private:
  // Appends the replacement of some characters, with one mark for a run of spaces.
  static void PutMarked(std::string_view text, ByteRange origin, bool* behind_space,
                        TextBuffer* out) {
    while (*behind_space && text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return;
    for (const char& c : text) {
      out->PutBytes(c == ' ' ? kSpaceMark : std::string_view(&c, 1), origin);
    }
    *behind_space = text.ends_with(' ');
  }

  void Normalize(TextView part, TextBuffer* out) const {
    if (parts_.add_dummy_prefix) out->PutBytes(kSpaceMark, {});
    bool behind_space = true;
    const auto put_all = [&](TextView text) {
      for (size_t at = 0; at < text.size;) {
        const std::string_view rest = text.text().substr(at);
        const std::optional<Charsmap::Match> match = parts_.map.Longest(rest);
        const size_t size = match ? match->size : Utf8Length(rest[0]);
        PutMarked(match ? match->replacement : rest.substr(0, size), text.Origin({at, at + size}),
                  &behind_space, out);
        at += size;
      }
    };
    put_all({prefix_.data(), prefix_.size()});
    put_all(part);
  }

  // Fills scratch->pieces with those of scratch->normalized, from the last one to the first. How
  // many there are.
  size_t FindPieces(ModelScratch* scratch) const {
    const FpEnvScope rounding_to_nearest;
    std::string_view text = scratch->normalized.view().text();
    while (text.ends_with(kSpaceMark)) text.remove_suffix(kSpaceMark.size());
    FindBestPieces<float>(text, 0, parts_.trie, parts_.scores, parts_.unk_id,
                          parts_.least_score - kUnknownLoss, scratch);
    return scratch->pieces.size();
  }

  Parts parts_;
  const std::string prefix_;
  size_t prefix_pieces_ = 0;
};

// What sentencepiece can do and encore does not.
Status CheckSettings(const SentencePieceModel& model, const std::string& file) {
  const struct {
    const char* key;
    bool value;
    bool wanted;
  } settings[] = {
      {"normalizer_spec.remove_extra_whitespaces", model.remove_extra_whitespaces, true},
      {"normalizer_spec.escape_whitespaces", model.escape_whitespaces, true},
      {"trainer_spec.treat_whitespace_as_suffix", model.treat_whitespace_as_suffix, false},
      {"trainer_spec.byte_fallback", model.byte_fallback, false}};
  for (const auto& [key, value, wanted] : settings) {
    if (value == wanted) continue;
    return Status(ErrorCode::kUnsupported, file + ": " + key + " is " + (value ? "true" : "false") +
                                               "; encore computes " + (wanted ? "true" : "false") +
                                               " only");
  }
  return {};
}

Result<Charsmap> ReadMap(const std::string& bytes, const std::string& file) {
  Charsmap map;
  std::string problem;
  if (bytes.empty()) return map;
  if (!map.Read(bytes, &problem)) {
    return Status(ErrorCode::kCorruptData, file + ": precompiled_charsmap " + problem +
                                               "; wanted sentencepiece's map of characters");
  }
  if (map.growth() * static_cast<double>(kSpaceMark.size()) > kMostGrowth) {
    return Status(ErrorCode::kUnsupported,
                  file + ": precompiled_charsmap can make a text more than " +
                      std::to_string(static_cast<int>(kMostGrowth)) + " times as long");
  }
  return map;
}

}  // namespace

Status SetSentencePiece(const SentencePieceModel& model, const std::string& file,
                        const std::string& unk_token, bool add_dummy_prefix,
                        TokenizerParts* parts) {
  using Type = SentencePieceModel::Type;
  ENCORE_RETURN_IF_ERROR(CheckSettings(model, file));
  SentencePiece::Parts made = {.least_score = std::numeric_limits<float>::max(),
                               .unk_id = static_cast<uint32_t>(model.unk_id),
                               .add_dummy_prefix = add_dummy_prefix};
  Vocabulary all, normal;
  bool has_unknown = false;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    const auto id = static_cast<uint32_t>(i);
    const std::string where = file + ": piece " + std::to_string(i) + ", " + Quoted(piece.text);
    if (piece.text.empty()) return InvalidArgument(where + ", is empty; wanted a text");
    if (piece.text.size() > AddedTokens::kMaxContentBytes) {
      return Status(ErrorCode::kUnsupported, where + ", has " + std::to_string(piece.text.size()) +
                                                 " bytes; wanted at most " +
                                                 std::to_string(AddedTokens::kMaxContentBytes));
    }
    if (!std::isfinite(piece.score)) {
      return InvalidArgument(where + ", has a score that is no finite number");
    }
    all.emplace_back(piece.text, id);
    made.scores.push_back(piece.score);
    if (piece.type == Type::kNormal) {
      normal.emplace_back(piece.text, id);
      made.least_score = std::min(made.least_score, piece.score);
    } else if (piece.type == Type::kUnknown) {
      has_unknown = has_unknown || i == model.unk_id;
    } else if (piece.type != Type::kControl) {
      return Status(ErrorCode::kUnsupported,
                    where + ", has type " + std::to_string(static_cast<uint64_t>(piece.type)) +
                        "; encore computes 1 (normal), 2 (unknown) and 3 (control) only");
    }
  }
  if (!has_unknown || normal.empty()) {
    return InvalidArgument(file + ": unk_id is " + std::to_string(model.unk_id) +
                           "; wanted an unknown piece there, and normal pieces");
  }
  ENCORE_ASSIGN_OR_RETURN(made.map, ReadMap(model.charsmap, file));
  ENCORE_ASSIGN_OR_RETURN(made.tokens, TokenTable::Create(all, file));
  made.trie = ByteTrie(std::move(normal));
  parts->model = std::make_unique<SentencePiece>(std::move(made), unk_token);
  parts->unk_token = model.pieces[model.unk_id].text;
  parts->Note("unknown token", parts->unk_token, file + ": unk_id");
  return {};
}

}  // namespace encore::internal
