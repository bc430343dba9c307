// SPDX-License-Identifier: Apache-2.0
//
// What every tokenizer promises of every text.

#include "tests/fuzz/check_encode.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

Status Encode(const Tokenizer& tokenizer, const Texts& texts, const TokenizeOptions& options,
              Tokens* tokens) {
  return texts.second ? tokenizer.EncodePair(texts.first, *texts.second, tokens, options)
                      : tokenizer.Encode(texts.first, tokens, options);
}

// Tokens that some options must give.
Tokens MustEncode(const Tokenizer& tokenizer, const Texts& texts, const TokenizeOptions& options) {
  Tokens tokens;
  const Status status = Encode(tokenizer, texts, options, &tokens);
  ENCORE_FUZZ_CHECK(status.ok(), status.message());
  return tokens;
}

void CheckShape(const Tokenizer& tokenizer, const Texts& texts, const TokenizeOptions& options,
                const Tokens& tokens) {
  ENCORE_FUZZ_CHECK(tokens.type_ids.size() == tokens.ids.size());
  ENCORE_FUZZ_CHECK(tokens.offsets.size() == (options.offsets ? tokens.ids.size() : 0));
  for (const int32_t id : tokens.ids) {
    ENCORE_FUZZ_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.vocab_size());
    ENCORE_FUZZ_CHECK(!tokenizer.IdToToken(id).empty() || tokenizer.TokenToId("").has_value());
  }
  ENCORE_FUZZ_CHECK(tokens.second_begin <= tokens.second_end &&
                    tokens.second_end <= tokens.ids.size());
  for (size_t i = 0; i < tokens.offsets.size(); ++i) {
    const bool in_second = i >= tokens.second_begin && i < tokens.second_end;
    const ByteRange& range = tokens.offsets[i];
    const size_t size = in_second ? texts.second.value_or("").size() : texts.first.size();
    ENCORE_FUZZ_CHECK(range.begin <= range.end && range.end <= size);
  }
  if (options.max_length != 0) ENCORE_FUZZ_CHECK(tokens.ids.size() <= options.max_length);
}

bool Same(const Tokens& a, const Tokens& b) {
  return a.ids == b.ids && a.type_ids == b.type_ids && a.cut == b.cut;
}

size_t SpecialTokens(const Tokenizer& tokenizer, const Texts& texts) {
  return texts.second ? tokenizer.special_tokens_of_pair() : tokenizer.special_tokens_of_text();
}

// How many of the template's tokens are not in `tokens`, which hold `of_texts` tokens of the texts.
size_t Missing(const Tokenizer& tokenizer, const Texts& texts, const Tokens& tokens,
               size_t of_texts) {
  const size_t all = of_texts + SpecialTokens(tokenizer, texts);
  ENCORE_FUZZ_CHECK(tokens.ids.size() >= of_texts && tokens.ids.size() <= all);
  return all - tokens.ids.size();
}

// Whether the tokenizer is SigLIP's, whose template puts no token behind a text that ends in it.
bool PutsEndOnce(const Tokenizer& tokenizer) {
  const std::vector<Decision>& decisions = tokenizer.Describe();
  return std::any_of(decisions.begin(), decisions.end(),
                     [](const Decision& decision) { return decision.source == "SiglipTokenizer"; });
}

// 1 if the tokens of the text alone end in the one that the template has there, else 0.
size_t HasEnd(const Tokenizer& tokenizer, std::string_view text, TokenizeOptions options) {
  const Tokens alone = MustEncode(tokenizer, {"", std::nullopt}, {});
  options.add_special_tokens = false;
  const Tokens plain = MustEncode(tokenizer, {text, std::nullopt}, options);
  ENCORE_FUZZ_CHECK(!alone.ids.empty());
  return !plain.ids.empty() && plain.ids.back() == alone.ids.back() ? 1 : 0;
}

// The tokens against those of the same texts with other options.
void CheckRelations(const Tokenizer& tokenizer, const Texts& texts, TokenizeOptions options,
                    const Tokens& tokens) {
  options.offsets = !options.offsets;
  ENCORE_FUZZ_CHECK(Same(MustEncode(tokenizer, texts, options), tokens));
  TokenizeOptions whole = options;
  whole.max_length = 0;
  whole.add_special_tokens = true;
  const Tokens all = MustEncode(tokenizer, texts, whole);
  whole.add_special_tokens = false;
  const Tokens plain = MustEncode(tokenizer, texts, whole);
  ENCORE_FUZZ_CHECK(all.cut == 0 && plain.cut == 0);
  const bool end_once = PutsEndOnce(tokenizer);
  const size_t missing_whole = Missing(tokenizer, texts, all, plain.ids.size());
  size_t ends = 0;
  if (end_once) {
    ends = HasEnd(tokenizer, texts.first, whole);
    if (texts.second) ends += HasEnd(tokenizer, *texts.second, whole);
  }
  ENCORE_FUZZ_CHECK(missing_whole == ends);

  ENCORE_FUZZ_CHECK(tokens.cut <= plain.ids.size());
  ENCORE_FUZZ_CHECK(options.max_length != 0 || tokens.cut == 0);
  const size_t kept = plain.ids.size() - tokens.cut;
  if (!options.add_special_tokens) {
    ENCORE_FUZZ_CHECK(tokens.ids.size() == kept);
    ENCORE_FUZZ_CHECK(tokens.cut == 0 || kept == options.max_length);
    return;
  }
  const size_t missing = Missing(tokenizer, texts, tokens, kept);
  if (tokens.cut == 0) {
    ENCORE_FUZZ_CHECK(missing == missing_whole);
    return;
  }
  // Cut as little as needed.
  ENCORE_FUZZ_CHECK(tokens.ids.size() + missing == options.max_length);
  ends = 0;
  if (end_once && kept != 0 && !texts.second) {
    whole.max_length = kept;
    ends = HasEnd(tokenizer, texts.first, whole);
  }
  ENCORE_FUZZ_CHECK(end_once && texts.second ? missing <= 2 : missing == ends);
}

void CheckReplacement(const Tokenizer& tokenizer, const Texts& texts, TokenizeOptions options,
                      const Tokens& tokens) {
  if (options.on_invalid_utf8 == OnInvalidUtf8::kError) return;
  const std::string first = ReplaceInvalid(texts.first);
  const std::string second = ReplaceInvalid(texts.second.value_or(""));
  Texts replaced = {first, std::nullopt};
  if (texts.second) replaced.second = second;
  options.on_invalid_utf8 = OnInvalidUtf8::kError;
  ENCORE_FUZZ_CHECK(Same(MustEncode(tokenizer, replaced, options), tokens));
}

// Whether an error is one that the options ask for.
void CheckRefusal(const Tokenizer& tokenizer, const Texts& texts, TokenizeOptions options,
                  const Status& status) {
  CheckError(status);
  ENCORE_FUZZ_CHECK(status.code() == ErrorCode::kInvalidArgument, status.message());
  const bool invalid = ReplaceInvalid(texts.first) != texts.first ||
                       ReplaceInvalid(texts.second.value_or("")) != texts.second.value_or("");
  if (invalid && options.on_invalid_utf8 == OnInvalidUtf8::kError) return;
  ENCORE_FUZZ_CHECK(options.max_length != 0, status.message());
  if (options.add_special_tokens && options.max_length < SpecialTokens(tokenizer, texts)) return;
  ENCORE_FUZZ_CHECK(options.on_long == OnLong::kError, status.message());
  options.on_long = OnLong::kCut;
  ENCORE_FUZZ_CHECK(MustEncode(tokenizer, texts, options).cut != 0, status.message());
}

// The bytes of a code point by its first, and the range of its second (WHATWG, UTF-8 decoder).
struct Lead {
  size_t size = 0;  // 0: no code point starts so
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

std::string ReplaceInvalid(std::string_view text) {
  std::string replaced;
  size_t at = 0;
  while (at < text.size()) {
    const Lead lead = LeadOf(static_cast<unsigned char>(text[at]));
    size_t good = lead.size == 0 ? 0 : 1;
    while (good != 0 && good < lead.size && at + good < text.size()) {
      const auto byte = static_cast<unsigned char>(text[at + good]);
      if (byte < (good == 1 ? lead.low : 0x80) || byte > (good == 1 ? lead.high : 0xBF)) break;
      ++good;
    }
    if (lead.size != 0 && good == lead.size) {
      replaced += text.substr(at, good);
    } else {
      replaced += "\xEF\xBF\xBD";
    }
    at += std::max<size_t>(good, 1);
  }
  return replaced;
}

void CheckEncode(const Tokenizer& tokenizer, const Texts& texts, const TokenizeOptions& options) {
  static Tokens warm;
  const Status status = Encode(tokenizer, texts, options, &warm);
  Tokens cold;
  const Status again = Encode(tokenizer, texts, options, &cold);
  ENCORE_FUZZ_CHECK(status.code() == again.code() && status.message() == again.message());
  if (!status.ok()) return CheckRefusal(tokenizer, texts, options, status);
  ENCORE_FUZZ_CHECK(Same(warm, cold) && warm.offsets == cold.offsets);
  CheckShape(tokenizer, texts, options, cold);
  if (options.on_long == OnLong::kError) ENCORE_FUZZ_CHECK(cold.cut == 0);
  TokenizeOptions cut = options;
  cut.on_long = OnLong::kCut;
  CheckRelations(tokenizer, texts, cut, cold);
  CheckReplacement(tokenizer, texts, cut, cold);
}

void CheckVocabulary(const Tokenizer& tokenizer) {
  ENCORE_FUZZ_CHECK(tokenizer.vocab_size() != 0);
  const size_t some = std::min<size_t>(tokenizer.vocab_size(), 300);
  for (size_t i = 0; i < some; ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string_view token = tokenizer.IdToToken(id);
    if (token.empty()) continue;
    const std::optional<int32_t> back = tokenizer.TokenToId(token);
    ENCORE_FUZZ_CHECK(back.has_value() && *back == id, std::string(token));
  }
  ENCORE_FUZZ_CHECK(tokenizer.IdToToken(-1).empty());
  ENCORE_FUZZ_CHECK(!tokenizer.Describe().empty());
  for (const Decision& decision : tokenizer.Describe()) {
    ENCORE_FUZZ_CHECK(!decision.what.empty() && !decision.source.empty());
  }
}

}  // namespace encore::fuzz
