// SPDX-License-Identifier: Apache-2.0
//
// encore::Tokenizer: a text through all parts.

#include "encore/tokenizer.h"

#include <algorithm>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "engine/tokenizer/tokenizer_parts.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1 {

using internal::AddedToken;
using internal::Normalizer;
using internal::Piece;
using internal::PreTokenizer;
using internal::TemplatePiece;
using internal::TextBuffer;
using internal::TextView;
using internal::TokenList;

struct Tokens::Scratch {
  TextBuffer text;  // where origins are asked for, or bytes were replaced
  Normalizer::Scratch normalizer;
  PreTokenizer::Scratch pre_tokenizer;
  internal::ModelScratch model;
  std::vector<Piece> raw_pieces;
  std::vector<Piece> normalized_pieces;
  TokenList first;
  TokenList second;
};

Tokens::Tokens() = default;
Tokens::Tokens(Tokens&&) noexcept = default;
Tokens& Tokens::operator=(Tokens&&) noexcept = default;
Tokens::~Tokens() = default;

namespace internal {

size_t MemoryOf(const Tokens& tokens) {
  const size_t bytes = MemoryBytes(tokens.ids, tokens.type_ids, tokens.offsets);
  if (tokens.scratch == nullptr) return bytes;
  const Tokens::Scratch& s = *tokens.scratch;
  return bytes + sizeof(s) + s.text.memory_bytes() + s.normalizer.memory_bytes() +
         s.pre_tokenizer.memory_bytes() + s.model.memory_bytes() + s.first.memory_bytes() +
         s.second.memory_bytes() + MemoryBytes(s.raw_pieces, s.normalized_pieces);
}

std::optional<int32_t> TokenizerParts::IdOf(std::string_view token) const {
  const AddedToken* const added = added_tokens.Find(token);
  return added == nullptr ? model->TokenToId(token) : added->id;
}

std::string_view TokenizerParts::TokenOf(int32_t id) const {
  for (const AddedToken& token : added_tokens.tokens()) {
    if (token.id == id) return token.content;
  }
  return model->IdToToken(id);
}

// What a tokenizer does. Not in Tokenizer::Impl itself: members of a struct in an exported class
// would be exported from a shared library.
struct TokenizerBody {
  TokenizerParts parts;
  size_t vocab_size = 0;

  Status Encode(std::string_view first, const std::string_view* second, Tokens* tokens,
                const TokenizeOptions& options) const;
  Status EncodeText(std::string_view text, const TokenizeOptions& options, Tokens::Scratch* scratch,
                    TokenList* out) const;
  void EncodeNormalized(std::string_view original, TextView text, bool plain,
                        Tokens::Scratch* scratch, TokenList* out) const;
  void PutAddedToken(std::string_view original, TextView text, const Piece& piece,
                     TokenList* out) const;
};

}  // namespace internal

struct Tokenizer::Impl : internal::TokenizerBody {};

namespace {

constexpr char32_t kMark = 0x2581;  // sentencepiece's, of spaces

// Appends the text's characters, bytes that are not UTF-8 replaced, with their places as origins.
// marks_start: see TokenizerParts.
void CopyText(std::string_view text, bool marks_start, TextBuffer* out) {
  if (marks_start) out->Put(kMark, {});
  size_t at = 0;
  while (at < text.size()) {
    const size_t valid_end = at + internal::ValidUtf8Length(text.substr(at));
    while (at < valid_end) {
      const char* p = text.data() + at;
      const char32_t c = internal::NextCodePoint(p);
      const size_t end = static_cast<size_t>(p - text.data());
      out->Put(marks_start && c == kMark ? U' ' : c, {at, end});
      at = end;
    }
    if (at == text.size()) break;
    const size_t end = at + internal::InvalidUtf8Length(text.substr(at));
    out->Put(internal::kReplacementCharacter, {at, end});
    at = end;
  }
}

}  // namespace

void internal::TokenizerBody::PutAddedToken(std::string_view original, TextView text,
                                            const Piece& piece, TokenList* out) const {
  out->ids.push_back(piece.id);
  if (text.origin == nullptr) return;
  out->origins.push_back(text.Origin(piece.span));
  internal::TrimOrigin(parts.post_template.trim, original, text.Part(piece.span).text(),
                       out->ids.size() == 1, &out->origins.back());
}

void internal::TokenizerBody::EncodeNormalized(std::string_view original, TextView text, bool plain,
                                               Tokens::Scratch* scratch, TokenList* out) const {
  const auto words = [&](TextView part) {
    const PreTokenizer::Words split = parts.pre_tokenizer.Split(part, &scratch->pre_tokenizer);
    const size_t before = out->ids.size();
    out->unknown.clear();
    parts.model->Tokenize(split.text, split.words, &scratch->model, out);
    if (part.origin == nullptr || parts.post_template.trim == internal::OffsetTrim::kNone) return;
    auto unknown = out->unknown.begin();
    for (size_t i = before; i < out->ids.size(); ++i) {
      const bool is_unknown = unknown != out->unknown.end() && unknown->first == i;
      internal::TrimOrigin(parts.post_template.trim, original,
                           is_unknown ? (unknown++)->second : parts.model->IdToToken(out->ids[i]),
                           i == 0, &out->origins[i]);
    }
  };
  if (!parts.added_tokens.any(true)) return words(text);
  scratch->normalized_pieces.clear();
  parts.added_tokens.Split(text.text(), true, plain, &scratch->normalized_pieces);
  for (const Piece& piece : scratch->normalized_pieces) {
    if (piece.id < 0) {
      words(text.Part(piece.span));
    } else {
      PutAddedToken(original, text, piece, out);
    }
  }
}

Status internal::TokenizerBody::EncodeText(std::string_view text, const TokenizeOptions& options,
                                           Tokens::Scratch* scratch, TokenList* out) const {
  out->Clear();
  TextView view = {text.data(), text.size()};
  const size_t valid = internal::ValidUtf8Length(text);
  if (valid < text.size() && options.on_invalid_utf8 == OnInvalidUtf8::kError) {
    return InvalidArgument("the text is not UTF-8 at byte " + std::to_string(valid));
  }
  const bool origins = options.offsets || parts.needs_origins;
  if (origins || valid < text.size() || parts.marks_start) {
    scratch->text.Clear(origins);
    CopyText(text, parts.marks_start, &scratch->text);
    view = scratch->text.view();
  }
  scratch->raw_pieces.clear();
  const bool plain = options.plain_text || parts.plain_text;
  parts.added_tokens.Split(view.text(), false, plain, &scratch->raw_pieces);
  for (const Piece& piece : scratch->raw_pieces) {
    if (piece.id < 0) {
      EncodeNormalized(text, parts.normalizer.Apply(view.Part(piece.span), &scratch->normalizer),
                       plain, scratch, out);
    } else {
      PutAddedToken(text, view, piece, out);
    }
  }
  return {};
}

Status internal::TokenizerBody::Encode(std::string_view first, const std::string_view* second,
                                       Tokens* tokens, const TokenizeOptions& options) const {
  return internal::Guarded("the tokens", [&]() -> Status {
    tokens->ids.clear();
    tokens->type_ids.clear();
    tokens->offsets.clear();
    tokens->second_begin = tokens->second_end = 0;
    tokens->cut = 0;
    const std::vector<TemplatePiece>& pieces =
        second == nullptr ? parts.post_template.single : parts.post_template.pair;
    const size_t special = options.add_special_tokens ? internal::CountSpecial(pieces) : 0;
    if (options.max_length != 0 && options.max_length < special) {
      return InvalidArgument("max_length is " + std::to_string(options.max_length) +
                             "; wanted at least " + std::to_string(special) +
                             ", the template's tokens");
    }
    if (tokens->scratch == nullptr) tokens->scratch = std::make_unique<Tokens::Scratch>();
    Tokens::Scratch* const scratch = tokens->scratch.get();
    ENCORE_RETURN_IF_ERROR(EncodeText(first, options, scratch, &scratch->first));
    scratch->second.Clear();
    if (second != nullptr) {
      const Status status = EncodeText(*second, options, scratch, &scratch->second);
      if (!status.ok()) return Prefixed("second text", status);
    }

    const size_t first_count = scratch->first.ids.size();
    const size_t second_count = scratch->second.ids.size();
    std::pair<size_t, size_t> kept = {first_count, second_count};
    if (options.max_length != 0) {
      kept = internal::LongestFirst(first_count, second_count, options.max_length - special);
    }
    const size_t cut = first_count - kept.first + second_count - kept.second;
    if (cut != 0 && options.on_long == OnLong::kError) {
      return InvalidArgument("the text has " +
                             std::to_string(first_count + second_count + special) +
                             " tokens; wanted at most " + std::to_string(options.max_length));
    }
    internal::ApplyTemplate(pieces, options.add_special_tokens, options.offsets, parts.cut_start,
                            scratch->first, kept.first, scratch->second, kept.second, tokens);
    tokens->cut = cut;
    return {};
  });
}

Status Tokenizer::Encode(std::string_view text, Tokens* tokens,
                         const TokenizeOptions& options) const {
  return impl_->Encode(text, nullptr, tokens, options);
}

Status Tokenizer::EncodePair(std::string_view first, std::string_view second, Tokens* tokens,
                             const TokenizeOptions& options) const {
  return impl_->Encode(first, &second, tokens, options);
}

size_t Tokenizer::vocab_size() const { return impl_->vocab_size; }

std::optional<int32_t> Tokenizer::TokenToId(std::string_view token) const {
  return impl_->parts.IdOf(token);
}

std::string_view Tokenizer::IdToToken(int32_t id) const& { return impl_->parts.TokenOf(id); }

size_t Tokenizer::special_tokens_of_text() const {
  return internal::CountSpecial(impl_->parts.post_template.single);
}
size_t Tokenizer::special_tokens_of_pair() const {
  return internal::CountSpecial(impl_->parts.post_template.pair);
}

std::optional<size_t> Tokenizer::model_max_length() const { return impl_->parts.model_max_length; }

const std::vector<Decision>& Tokenizer::Describe() const& { return impl_->parts.decisions; }

std::optional<int32_t> internal::TokenizerFactory::TokenId(const Tokenizer& tokenizer,
                                                           std::string_view token) {
  return tokenizer.impl_->parts.IdOf(token);
}

std::optional<int32_t> internal::TokenizerFactory::SpecialTokenId(const Tokenizer& tokenizer,
                                                                  std::string_view key) {
  for (const auto& [name, id] : tokenizer.impl_->parts.special_ids) {
    if (name == key) return id;
  }
  return {};
}

bool internal::TokenizerFactory::IsSpecial(const Tokenizer& tokenizer, int32_t id) {
  const auto& ids = tokenizer.impl_->parts.special_ids;
  return std::any_of(ids.begin(), ids.end(),
                     [id](const auto& known) { return known.second == id; });
}

Tokenizer internal::TokenizerFactory::Make(TokenizerParts parts) {
  size_t vocab_size = parts.model->id_limit();
  for (const AddedToken& token : parts.added_tokens.tokens()) {
    vocab_size = std::max(vocab_size, static_cast<size_t>(token.id) + 1);
  }
  return Tokenizer(
      std::make_shared<const Tokenizer::Impl>(Tokenizer::Impl{{std::move(parts), vocab_size}}));
}

}  // namespace encore
