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
  const size_t longest = std::max(texts.first.size(), texts.second.value_or("").size());
  for (const ByteRange& range : tokens.offsets) {
    ENCORE_FUZZ_CHECK(range.begin <= range.end && range.end <= longest);
  }
  if (options.max_length != 0) ENCORE_FUZZ_CHECK(tokens.ids.size() <= options.max_length);
}

bool Same(const Tokens& a, const Tokens& b) {
  return a.ids == b.ids && a.type_ids == b.type_ids && a.cut == b.cut;
}

// How many of the template's tokens are not in `tokens`, which hold `of_texts` tokens of the texts.
// None, but where a text ends in the template's last token and the tokenizer, SigLIP's, puts no
// second one behind it.
size_t CheckTemplate(const Tokenizer& tokenizer, const Texts& texts, const Tokens& tokens,
                     size_t of_texts) {
  const size_t special =
      texts.second ? tokenizer.special_tokens_of_pair() : tokenizer.special_tokens_of_text();
  ENCORE_FUZZ_CHECK(tokens.ids.size() >= of_texts && tokens.ids.size() <= of_texts + special);
  const size_t missing = of_texts + special - tokens.ids.size();
  if (missing == 0) return 0;
  ENCORE_FUZZ_CHECK(missing <= (texts.second ? 2 : 1));
  const Tokens alone = MustEncode(tokenizer, {"", std::nullopt}, {});
  ENCORE_FUZZ_CHECK(alone.ids.size() == tokenizer.special_tokens_of_text());
  ENCORE_FUZZ_CHECK(!alone.ids.empty() && !tokens.ids.empty());
  ENCORE_FUZZ_CHECK(alone.ids.back() == tokens.ids.back());
  return missing;
}

// The tokens against those of the same texts with other options.
void CheckRelations(const Tokenizer& tokenizer, const Texts& texts, TokenizeOptions options,
                    const Tokens& tokens) {
  options.offsets = !options.offsets;
  ENCORE_FUZZ_CHECK(Same(MustEncode(tokenizer, texts, options), tokens));
  TokenizeOptions whole = options;
  whole.max_length = 0;
  const Tokens all = MustEncode(tokenizer, texts, whole);
  whole.add_special_tokens = !options.add_special_tokens;
  const Tokens other = MustEncode(tokenizer, texts, whole);
  ENCORE_FUZZ_CHECK(all.cut == 0 && other.cut == 0);
  const size_t of_texts = (options.add_special_tokens ? other : all).ids.size();
  CheckTemplate(tokenizer, texts, options.add_special_tokens ? all : other, of_texts);
  ENCORE_FUZZ_CHECK(tokens.cut <= of_texts);
  size_t missing = 0;
  if (options.add_special_tokens) {
    missing = CheckTemplate(tokenizer, texts, tokens, of_texts - tokens.cut);
  } else {
    ENCORE_FUZZ_CHECK(tokens.ids.size() == of_texts - tokens.cut);
  }
  ENCORE_FUZZ_CHECK(options.max_length != 0 || tokens.cut == 0);
  // Cut as little as needed.
  ENCORE_FUZZ_CHECK(tokens.cut == 0 || tokens.ids.size() + missing == options.max_length);
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
  const size_t special =
      texts.second ? tokenizer.special_tokens_of_pair() : tokenizer.special_tokens_of_text();
  ENCORE_FUZZ_CHECK(options.max_length != 0, status.message());
  if (options.add_special_tokens && options.max_length < special) return;
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
