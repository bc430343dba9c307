// SPDX-License-Identifier: Apache-2.0
//
// The public Tokenizer: options, errors, invalid UTF-8, pairs, what it says of itself.

#include "encore/tokenizer.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/tokenizer/tokenizer_factory.h"
#include "gtest/gtest.h"

namespace encore {
namespace {

using Ids = std::vector<int32_t>;

// Ids: 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], then by line.
constexpr const char* kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
    "a\nb\nc\nd\ne\n##a\n##b\nun\n##aff\n##able\nunaff\n,\n[\n]\nsep\n";
enum : int32_t { kUnk = 1, kCls, kSep, kMask, kA, kB, kC, kD, kE };

Tokenizer Make(const TokenizerOptions& options = {}, const std::string& config = "") {
  Result<Tokenizer> tokenizer = internal::TokenizerFactory::FromVocab(kVocabulary, options, config);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return *std::move(tokenizer);
}

Ids Encode(const Tokenizer& tokenizer, std::string_view text, const TokenizeOptions& options = {}) {
  Tokens tokens;
  const Status status = tokenizer.Encode(text, &tokens, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokens.ids;
}

TEST(TokenizerTest, LongestPiecesFirst) {
  const Tokenizer tokenizer = Make();
  EXPECT_EQ(Encode(tokenizer, "Unaffable, a"), (Ids{kCls, 15, 14, 16, kA, kSep}));
  EXPECT_EQ(Encode(tokenizer, "aab \t\xC3\xA0"), (Ids{kCls, kA, 10, 11, kA, kSep}));  // a grave
  EXPECT_EQ(Encode(tokenizer, "unaffabl a"), (Ids{kCls, kUnk, kA, kSep}));
  EXPECT_EQ(Encode(tokenizer, ""), (Ids{kCls, kSep}));
  EXPECT_EQ(Encode(tokenizer, "", {.add_special_tokens = false}), Ids{});
  EXPECT_EQ(Encode(tokenizer, "a b", {.add_special_tokens = false}), (Ids{kA, kB}));
}

TEST(TokenizerTest, SpecialTokensOfTheTextAreTokensUnlessItIsPlain) {
  const Tokenizer tokenizer = Make();
  EXPECT_EQ(Encode(tokenizer, "a[SEP]b"), (Ids{kCls, kA, kSep, kB, kSep}));
  EXPECT_EQ(Encode(tokenizer, "a[sep]b"), (Ids{kCls, kA, 17, 19, 18, kB, kSep}));
  EXPECT_EQ(Encode(tokenizer, "a[SEP]b", {.plain_text = true}),
            (Ids{kCls, kA, 17, 19, 18, kB, kSep}));
}

TEST(TokenizerTest, CutsAtTheEnd) {
  const Tokenizer tokenizer = Make();
  Tokens tokens;
  ASSERT_TRUE(tokenizer.Encode("a b c d e", &tokens, {.max_length = 4}).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kA, kB, kSep}));
  EXPECT_EQ(tokens.cut, 3u);
  ASSERT_TRUE(tokenizer.Encode("a b c d e", &tokens, {.max_length = 7}).ok());
  EXPECT_EQ(tokens.ids.size(), 7u);
  EXPECT_EQ(tokens.cut, 0u);
  ASSERT_TRUE(tokenizer.Encode("a b c d e", &tokens, {.max_length = 2}).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kSep}));
  EXPECT_EQ(tokens.cut, 5u);
  ASSERT_TRUE(
      tokenizer.Encode("a b c d e", &tokens, {.max_length = 4, .add_special_tokens = false}).ok());
  EXPECT_EQ(tokens.ids, (Ids{kA, kB, kC, kD}));
}

TEST(TokenizerTest, TellsOfTextsThatAreTooLong) {
  const Tokenizer tokenizer = Make();
  Tokens tokens;
  Status status =
      tokenizer.Encode("a b c d e", &tokens, {.max_length = 6, .on_long = OnLong::kError});
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "the text has 7 tokens; wanted at most 6");
  EXPECT_TRUE(
      tokenizer.Encode("a b c d e", &tokens, {.max_length = 7, .on_long = OnLong::kError}).ok());
  status = tokenizer.Encode("a", &tokens, {.max_length = 1});
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "max_length is 1; wanted at least 2, the template's tokens");
  status = tokenizer.EncodePair("a", "b", &tokens, {.max_length = 2});
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
}

TEST(TokenizerTest, PairsHaveTypes) {
  const Tokenizer tokenizer = Make();
  Tokens tokens;
  ASSERT_TRUE(tokenizer.EncodePair("a b", "c", &tokens, {.offsets = true}).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kA, kB, kSep, kC, kSep}));
  EXPECT_EQ(tokens.type_ids, (std::vector<uint8_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(tokens.offsets,
            (std::vector<ByteRange>{{0, 0}, {0, 1}, {2, 3}, {0, 0}, {0, 1}, {0, 0}}));
  ASSERT_TRUE(tokenizer.EncodePair("a a a a a a", "b b b", &tokens, {.max_length = 6}).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kA, kA, kSep, kB, kSep}));
  EXPECT_EQ(tokens.cut, 6u);
  EXPECT_EQ(std::pair(tokens.second_begin, tokens.second_end), std::pair(size_t{4}, size_t{5}));
  ASSERT_TRUE(tokenizer.EncodePair("", "", &tokens).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kSep, kSep}));
  EXPECT_EQ(std::pair(tokens.second_begin, tokens.second_end), std::pair(size_t{2}, size_t{2}));
  ASSERT_TRUE(tokenizer.Encode("a", &tokens).ok());
  EXPECT_EQ(std::pair(tokens.second_begin, tokens.second_end), std::pair(size_t{0}, size_t{0}));
}

TEST(TokenizerTest, InvalidUtf8IsAnErrorOrReplaced) {
  const Tokenizer tokenizer = Make();
  Tokens tokens;
  const Status status = tokenizer.Encode("ab\xC3(", &tokens);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "the text is not UTF-8 at byte 2");
  EXPECT_TRUE(tokens.ids.empty());
  EXPECT_EQ(tokenizer.EncodePair("a", "\xFF", &tokens).message(),
            "second text: the text is not UTF-8 at byte 0");
  // BERT's normalizer drops U+FFFD; offsets are those of the bytes that came.
  const TokenizeOptions replace = {.on_invalid_utf8 = OnInvalidUtf8::kReplace, .offsets = true};
  ASSERT_TRUE(tokenizer.Encode("a\xF0\x9F b\xFFq c", &tokens, replace).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kA, kUnk, kC, kSep}));
  EXPECT_EQ(tokens.offsets, (std::vector<ByteRange>{{0, 0}, {0, 1}, {4, 7}, {8, 9}, {0, 0}}));
  EXPECT_EQ(Encode(tokenizer, "a\xF0\x9F b\xFFq c", {.on_invalid_utf8 = OnInvalidUtf8::kReplace}),
            tokens.ids);
}

TEST(TokenizerTest, ReplacedBytesKeepTheirPlaces) {
  const Result<Tokenizer> tokenizer = internal::TokenizerFactory::FromJson(R"({
    "model": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "",
              "max_input_chars_per_word": 100, "vocab": {"u": 0, "\ufffd": 1, "a": 2}}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  Tokens tokens;
  ASSERT_TRUE(tokenizer
                  ->Encode("a\xF0\x9F\xFF"
                           "a",
                           &tokens, {.on_invalid_utf8 = OnInvalidUtf8::kReplace, .offsets = true})
                  .ok());
  EXPECT_EQ(tokens.ids, (Ids{2, 1, 1, 2}));
  EXPECT_EQ(tokens.offsets, (std::vector<ByteRange>{{0, 1}, {1, 3}, {3, 4}, {4, 5}}));
}

TEST(TokenizerTest, LongWordsAreUnknown) {
  const Tokenizer tokenizer = Make();
  EXPECT_EQ(Encode(tokenizer, std::string(100, 'a')).size(), 102u);
  EXPECT_EQ(Encode(tokenizer, std::string(101, 'a')), (Ids{kCls, kUnk, kSep}));
  EXPECT_EQ(Encode(tokenizer, std::string(10 << 20, 'a') + " b"), (Ids{kCls, kUnk, kB, kSep}));
  // As many bytes of marks, which are sorted and dropped.
  std::string marks = "a";
  for (int i = 0; i < 1 << 20; ++i) marks += i % 2 == 0 ? "\xCC\x81" : "\xE3\x80\xAE";
  EXPECT_EQ(Encode(tokenizer, marks), (Ids{kCls, kUnk, kSep}));
  EXPECT_EQ(Encode(tokenizer, marks, {.offsets = true}), (Ids{kCls, kUnk, kSep}));
}

TEST(TokenizerTest, LowercaseBeforeTheNormalizer) {
  const std::string cased = R"({"do_lower_case": false})";
  EXPECT_EQ(Encode(Make({}, cased), "A a"), (Ids{kCls, kUnk, kA, kSep}));
  EXPECT_EQ(Encode(Make({.lowercase = true}, cased), "A a"), (Ids{kCls, kA, kA, kSep}));
}

TEST(TokenizerTest, KnowsItsVocabulary) {
  const Tokenizer tokenizer = Make({}, R"({"model_max_length": 512})");
  EXPECT_EQ(tokenizer.vocab_size(), 20u);
  EXPECT_EQ(tokenizer.TokenToId("##able"), 14);
  EXPECT_EQ(tokenizer.TokenToId("[SEP]"), 3);
  EXPECT_EQ(tokenizer.TokenToId("able"), std::nullopt);
  EXPECT_EQ(tokenizer.TokenToId(""), std::nullopt);
  EXPECT_EQ(tokenizer.IdToToken(14), "##able");
  EXPECT_EQ(tokenizer.IdToToken(20), "");
  EXPECT_EQ(tokenizer.IdToToken(-1), "");
  EXPECT_EQ(tokenizer.special_tokens_of_text(), 2u);
  EXPECT_EQ(tokenizer.special_tokens_of_pair(), 3u);
  EXPECT_EQ(tokenizer.model_max_length(), 512u);
  EXPECT_EQ(Make({}, R"({"model_max_length": 1000000000000000019884624838656})").model_max_length(),
            std::nullopt);
}

TEST(TokenizerTest, TokensCanBeMovedAndReused) {
  const Tokenizer tokenizer = Make();
  Tokens tokens;
  ASSERT_TRUE(tokenizer.Encode("a b", &tokens, {.offsets = true}).ok());
  Tokens moved = std::move(tokens);
  EXPECT_EQ(moved.ids, (Ids{kCls, kA, kB, kSep}));
  tokens = Tokens();
  ASSERT_TRUE(tokenizer.Encode("c", &tokens).ok());
  EXPECT_EQ(tokens.ids, (Ids{kCls, kC, kSep}));
  ASSERT_TRUE(tokenizer.Encode("d", &moved).ok());
  EXPECT_EQ(moved.ids, (Ids{kCls, kD, kSep}));
  EXPECT_TRUE(moved.offsets.empty());
}

TEST(TokenizerTest, ThreadsShareOne) {
  const Tokenizer tokenizer = Make();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&tokenizer, &wrong, t] {
      const Tokenizer copy = tokenizer;
      Tokens tokens;
      for (int i = 0; i < 200; ++i) {
        const Status status = copy.Encode("a b unaffable \xC3\xA9", &tokens);
        wrong[t] += !status.ok() || tokens.ids != Ids{kCls, kA, kB, 15, 14, kE, kSep};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(wrong.size()));
}

}  // namespace
}  // namespace encore
