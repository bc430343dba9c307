// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer's parts by themselves, with expectations worked out by hand.

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/post_template.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/utf8.h"
#include "gtest/gtest.h"
#include "tests/support/results.h"

namespace encore::inline v0_1::internal {
namespace {

std::string Bytes(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) {
    char buffer[4];
    bytes.append(buffer, PutCodePoint(c, buffer));
  }
  return bytes;
}

// ---- Grapheme clusters --------------------------------------------------------------------------

TEST(TokenizerGraphemeTest, NothingStaysWithAControl) {
  const auto size = [](std::u32string_view text) {
    const std::string bytes = Bytes(text);
    return ClusterEnd(bytes.data(), bytes.data() + bytes.size()) - bytes.data();
  };
  EXPECT_EQ(size(U"a\u0301\u0323b"), 5);
  for (const char32_t control : {U'\n', U'\u200b', U'\U0001D173', U'\U000E0001'}) {
    const std::u32string text = {control, U'\u0301'};
    EXPECT_EQ(size(text), size(text.substr(0, 1))) << uint32_t{control};
  }
}

// ---- UTF-8 -------------------------------------------------------------------------------------

TEST(TokenizerUtf8Test, EveryScalarValueComesBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    char buffer[4];
    const size_t size = static_cast<size_t>(PutCodePoint(c, buffer) - buffer);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_EQ(ValidUtf8Length({buffer, size}), surrogate ? 0 : size) << uint32_t{c};
    const char* at = buffer;
    ASSERT_EQ(NextCodePoint(at), c);
    ASSERT_EQ(at, buffer + size) << uint32_t{c};
    ASSERT_EQ(Utf8Length(buffer[0]), size) << uint32_t{c};
    ASSERT_EQ(PreviousCodePoint(at), c);
    ASSERT_EQ(at, buffer) << uint32_t{c};
  }
}

TEST(TokenizerUtf8Test, InvalidBytesAreFoundWhereverTheyStand) {
  // The bytes, and how many of them are the first maximal subpart.
  const std::pair<std::string, size_t> cases[] = {
      {"\x80", 1},         {"\xC0\x80", 1},     {"\xC1\xBF", 1},         {"\xC3", 1},
      {"\xC3(", 1},        {"\xE0\x80\x80", 1}, {"\xE0\x9F\xBF", 1},     {"\xE0\xA0", 2},
      {"\xED\xA0\x80", 1}, {"\xED\xBF\xBF", 1}, {"\xE2\x82(", 2},        {"\xF0\x80\x80\x80", 1},
      {"\xF0\x9F", 2},     {"\xF0\x9F\x98", 3}, {"\xF0\x9F\x98(", 3},    {"\xF4\x90\x80\x80", 1},
      {"\xF5\x80", 1},     {"\xFF", 1},         {"\xF8\x88\x80\x80", 1}, {"\xF1\x80\x80\xC0", 3}};
  for (const auto& [bytes, subpart] : cases) {
    EXPECT_EQ(InvalidUtf8Length(bytes), subpart);
    for (size_t before = 0; before < 70; ++before) {
      const std::string text = std::string(before, 'x') + bytes + std::string(before % 40, 'y');
      EXPECT_EQ(ValidUtf8Length(text), before);
    }
  }
  const std::string good = Bytes(U"a\u00E9\u20AC\U0001F600") + std::string(64, 'z');
  EXPECT_EQ(ValidUtf8Length(good), good.size());
  EXPECT_EQ(ValidUtf8Length(""), 0u);
}

// ---- Unicode -----------------------------------------------------------------------------------

TEST(TokenizerUnicodeTest, Properties) {
  const auto is = [&](char32_t c, CharProperty p) { return (PropertiesOf(c) & p) != 0; };
  EXPECT_TRUE(is(' ', kWhite) && is(0x3000, kWhite) && is(0x85, kWhite) && !is(0x200B, kWhite));
  EXPECT_TRUE(is('$', kPunctuation) && is(0x2014, kPunctuation) && !is(0x20AC, kPunctuation));
  EXPECT_TRUE(is(0, kCleaned) && is(0xFFFD, kCleaned) && is(0xAD, kCleaned) && !is('\t', kCleaned));
  EXPECT_TRUE(is(0x4E00, kChinese) && is(0x2B920, kChinese) && !is(0x2B820, kChinese));
  EXPECT_TRUE(is(0x301, kNonspacing) && is(0x301, kMark) && !is(0x302E, kNonspacing));
  EXPECT_TRUE(is(0x302E, kMark) && !is(0x1F3FD, kMark));
  EXPECT_TRUE(is('_', kWordChar) && is(0xE9, kWordChar) && !is('-', kWordChar));
  EXPECT_EQ(OrderRank(PropertiesOf('a')), 0u);
  EXPECT_LT(OrderRank(PropertiesOf(0x323)), OrderRank(PropertiesOf(0x301)));
  EXPECT_EQ(PropertiesOf(0x10FFFD), kCleaned);  // private use
  EXPECT_EQ(PropertiesOf(0x10FFFF), 0);         // no character
}

TEST(TokenizerUnicodeTest, Mappings) {
  const auto decomposed = [&](char32_t c) {
    EXPECT_NE(PropertiesOf(c) & kDecomposes, 0) << uint32_t{c};
    const Decomposition d = Decompose(c);
    return std::u32string(d.parts.begin(), d.parts.begin() + d.size);
  };
  EXPECT_EQ(decomposed(0xE9), U"e\u0301");
  EXPECT_EQ(decomposed(0x1F82), U"\u03B1\u0313\u0300\u0345");
  EXPECT_EQ(decomposed(0xAC00), U"\u1100\u1161");
  EXPECT_EQ(decomposed(0xAC01), U"\u1100\u1161\u11A8");
  EXPECT_EQ(decomposed(0xD7A3), U"\u1112\u1175\u11C2");
  EXPECT_EQ(decomposed(0x2FA1D), U"\U0002A600");
  EXPECT_EQ(PropertiesOf(0xD7A4) & kDecomposes, 0);
  EXPECT_EQ(PropertiesOf(0x11938) & kDecomposes, 0);  // new in Unicode 13
  EXPECT_EQ(LowerOf('A'), U'a');
  EXPECT_EQ(LowerOf(0x1E9E), 0xDFu);
  EXPECT_EQ(LowerOf(0x10400), 0x10428u);
  EXPECT_EQ(PropertiesOf('a') & kHasLower, 0);
}

// ---- Normalizers -------------------------------------------------------------------------------

struct Normalized {
  std::string text;
  std::vector<ByteRange> origins;  // of each byte
};

Normalized Apply(std::unique_ptr<const NormalizerStep> step, const std::u32string& text) {
  Normalizer normalizer;
  normalizer.Append(std::move(step));
  Normalizer::Scratch scratch, other;
  TextBuffer with_origins;
  with_origins.Clear(true);
  size_t at = 0;
  for (const char32_t c : text) {
    const size_t size = Bytes({&c, 1}).size();
    with_origins.Put(c, {at, at + size});
    at += size;
  }
  const TextView view = normalizer.Apply(with_origins.view(), &scratch);
  Normalized result = {std::string(view.text()), {view.origin, view.origin + view.size}};
  const std::string bytes = Bytes(text);
  EXPECT_EQ(normalizer.Apply({bytes.data(), bytes.size()}, &other).text(), result.text);
  return result;
}

std::string Bert(const std::u32string& text, const BertNormalizerSettings& settings = {}) {
  return Apply(MakeBertNormalizer(settings), text).text;
}

TEST(TokenizerNormalizerTest, BertCleansSpacesStripsAndLowers) {
  EXPECT_EQ(Bert(U"H\u00E9llo\tW\u00D6RLD\u0001\u000B\u0085!"), "hello world!");
  EXPECT_EQ(Bert(U"a\u4E00b\uF900"), Bytes(U"a \u4E00 b \u8C48 "));
  EXPECT_EQ(Bert(U"\u0130\u1E9E\u03A3"), Bytes(U"i\u00DF\u03C3"));
  EXPECT_EQ(Bert(U"\uAC01"), Bytes(U"\u1100\u1161\u11A8"));
  EXPECT_EQ(Bert(U"\u0301"), "");
  EXPECT_EQ(Bert(U"a\r\nb\u2028c"), "a  b c");
}

TEST(TokenizerNormalizerTest, EachSettingOfBertIsItsOwn) {
  const std::u32string text = U"\u00C9\u4E00\u200B\u00A0";
  const BertNormalizerSettings none = {false, false, false, false};
  EXPECT_EQ(Bert(text, none), Bytes(text));
  BertNormalizerSettings one = none;
  one.clean_text = true;
  EXPECT_EQ(Bert(text, one), Bytes(U"\u00C9\u4E00 "));
  one = none;
  one.handle_chinese_chars = true;
  EXPECT_EQ(Bert(text, one), Bytes(U"\u00C9 \u4E00 \u200B\u00A0"));
  one = none;
  one.strip_accents = true;
  EXPECT_EQ(Bert(text, one), Bytes(U"E\u4E00\u200B\u00A0"));
  one = none;
  one.lowercase = true;
  EXPECT_EQ(Bert(text, one), Bytes(U"\u00E9\u4E00\u200B\u00A0"));
  EXPECT_EQ(Bert(U"\u0130", one), Bytes(U"i\u0307"));
}

TEST(TokenizerNormalizerTest, MarksThatStayAreOrdered) {
  // Classes: 302E 224, 302F 224, 1D165 216, 1D16D 226; 301 230 and 323 220 go, and so does 34F,
  // of class 0, but it keeps apart what stands around it.
  EXPECT_EQ(Bert(U"o\u302E\u0301\U0001D165\u302F\u0323"), Bytes(U"o\U0001D165\u302E\u302F"));
  EXPECT_EQ(Bert(U"o\u302E\u034F\U0001D165"), Bytes(U"o\u302E\U0001D165"));
  EXPECT_EQ(Bert(U"\u302E\u200B\U0001D165"), Bytes(U"\U0001D165\u302E"));  // cleaned before
  EXPECT_EQ(Apply(MakeUnicodeForm({}), U"\u00E9\u0323 \u302E\U0001D165").text,
            Bytes(U"e\u0323\u0301 \U0001D165\u302E"));
}

TEST(TokenizerNormalizerTest, OriginsAreTheCharactersRead) {
  const Normalized bert = Apply(MakeBertNormalizer({}), U"\u00C9\u200B\u4E00");  // 2, 3, 3 bytes
  EXPECT_EQ(bert.text, Bytes(U"e \u4E00 "));
  EXPECT_EQ(bert.origins, (std::vector<ByteRange>{{0, 2}, {5, 8}, {5, 8}, {5, 8}, {5, 8}, {5, 8}}));
  // The accent of the letter goes, and what stays keeps its place.
  EXPECT_EQ(Apply(MakeBertNormalizer({}), U"\u00E9\u302E").origins,
            (std::vector<ByteRange>{{0, 2}, {2, 5}, {2, 5}, {2, 5}}));
  // The first mark written gets the place of the first one read.
  const Normalized sorted = Apply(MakeUnicodeForm({}), U"o\u0301\u0323");
  EXPECT_EQ(sorted.text, Bytes(U"o\u0323\u0301"));
  EXPECT_EQ(sorted.origins, (std::vector<ByteRange>{{0, 1}, {1, 3}, {1, 3}, {3, 5}, {3, 5}}));
}

TEST(TokenizerNormalizerTest, SimpleOnes) {
  EXPECT_EQ(Apply(MakeLowercase(), U"\u0130\u03A3A\u01C5").text, Bytes(U"i\u0307\u03C3a\u01C6"));
  EXPECT_EQ(Apply(MakeStripAccents(), U"e\u0301\u00E9\u302E").text, Bytes(U"e\u00E9"));
}

// ---- Pre-tokenizers ----------------------------------------------------------------------------

std::vector<std::string> Words(const std::vector<PreTokenizerStep>& steps,
                               const std::u32string& text) {
  PreTokenizer pre_tokenizer;
  for (const PreTokenizerStep step : steps) pre_tokenizer.Append(step);
  PreTokenizer::Scratch scratch;
  const std::string bytes = Bytes(text);
  std::vector<std::string> words;
  for (const Span& span : pre_tokenizer.Split({bytes.data(), bytes.size()}, &scratch).words) {
    words.push_back(bytes.substr(span.begin, span.end - span.begin));
  }
  return words;
}

TEST(TokenizerPreTokenizerTest, Words) {
  using W = std::vector<std::string>;
  const auto bert = PreTokenizerStep::kBert, split = PreTokenizerStep::kWhitespaceSplit,
             runs = PreTokenizerStep::kWhitespace;
  EXPECT_EQ(Words({bert}, U" don't\u3000stop--now "),
            (W{"don", "'", "t", "stop", "-", "-", "now"}));
  EXPECT_EQ(Words({split}, U" don't\u3000stop--now "), (W{"don't", "stop--now"}));
  EXPECT_EQ(Words({runs}, U" don't stop--now_1"), (W{"don", "'", "t", "stop", "--", "now_1"}));
  EXPECT_EQ(Words({bert}, U"\u2014\u00E9\u2014"),
            (W{Bytes(U"\u2014"), "\xC3\xA9", Bytes(U"\u2014")}));
  EXPECT_EQ(Words({runs, bert}, U"a--b c"), (W{"a", "-", "-", "b", "c"}));
  EXPECT_EQ(Words({}, U" a b "), (W{" a b "}));
  for (const auto step : {bert, split, runs}) {
    EXPECT_EQ(Words({step}, U""), W{});
    EXPECT_EQ(Words({step}, U" \u2028\t"), W{});
  }
}

// ---- Tries -------------------------------------------------------------------------------------

TEST(TokenizerTrieTest, FindsTheLongestOfAnySet) {
  std::mt19937 random(1);
  for (const size_t count : {0, 1, 2, 30, 3000}) {
    std::map<std::string, uint32_t> keys;
    for (size_t i = 0; i < count; ++i) {
      std::string key(1 + random() % 6, '\0');
      // Few letters, so that keys share starts; all bytes at times.
      for (char& c : key) c = static_cast<char>(random() % 9 != 0 ? 'a' + random() % 3 : random());
      keys.emplace(key, static_cast<uint32_t>(random() % ByteTrie::kMaxValue));
    }
    const ByteTrie trie{std::vector<ByteTrie::Entry>(keys.begin(), keys.end())};
    for (const auto& [key, value] : keys) {
      uint32_t found = 0;
      ASSERT_TRUE(trie.Find(key, &found));
      ASSERT_EQ(found, value);
    }
    for (int i = 0; i < 2000; ++i) {
      std::string text(random() % 9, '\0');
      for (char& c : text) c = static_cast<char>(random() % 9 != 0 ? 'a' + random() % 3 : random());
      size_t longest = text.size();
      while (longest > 0 && keys.count(text.substr(0, longest)) == 0) --longest;
      const ByteTrie::Match match = trie.Longest(text.data(), text.data() + text.size());
      ASSERT_EQ(match.size, longest);
      if (longest != 0) {
        ASSERT_EQ(match.value, keys[text.substr(0, longest)]);
      }
    }
  }
}

TEST(TokenizerTrieTest, NodesWithAllBytesAndLargestValue) {
  std::vector<std::string> keys;
  for (int a = 0; a < 256; ++a) {
    keys.push_back({static_cast<char>(a)});
    for (int b = 0; b < 256; b += 5) keys.push_back({static_cast<char>(a), static_cast<char>(b)});
  }
  std::vector<ByteTrie::Entry> entries;
  for (const std::string& key : keys) {
    entries.emplace_back(key, ByteTrie::kMaxValue - static_cast<uint32_t>(entries.size()));
  }
  const ByteTrie trie(entries);
  for (const auto& [key, value] : entries) {
    const std::string longer = std::string(key) + '\x01';
    const ByteTrie::Match match = trie.Longest(longer.data(), longer.data() + longer.size());
    EXPECT_EQ(match.size, key.size());
    EXPECT_EQ(match.value, value);
  }
}

// ---- Added tokens ------------------------------------------------------------------------------

std::vector<std::string> Pieces(const AddedTokens& tokens, const std::string& text,
                                bool plain = false) {
  std::vector<Piece> pieces;
  tokens.Split(text, false, plain, &pieces);
  std::vector<std::string> spelled;
  for (const Piece& piece : pieces) {
    spelled.push_back((piece.id < 0 ? "" : std::to_string(piece.id) + "=") +
                      text.substr(piece.span.begin, piece.span.end - piece.span.begin));
  }
  return spelled;
}

TEST(TokenizerAddedTokensTest, LeftmostLongestWithFlags) {
  using P = std::vector<std::string>;
  const Normalizer none;
  const auto raw = [](const char* content, int32_t id) {
    AddedToken token;
    token.content = content;
    token.id = id;
    token.normalized = false;
    return token;
  };
  std::vector<AddedToken> list = {raw("<a>", 1), raw("<a>b", 2), raw("word", 3), raw("<l>", 4),
                                  raw("<r>", 5), raw("[S]", 6),  raw("ord", 7)};
  list[2].single_word = list[3].lstrip = list[4].rstrip = list[5].special = true;
  const AddedTokens tokens = Taken(AddedTokens::Create(list, none, "here"));
  EXPECT_EQ(Pieces(tokens, "x<a>y<a>b"), (P{"x", "1=<a>", "y", "2=<a>b"}));
  EXPECT_EQ(Pieces(tokens, "<a><<a>"), (P{"1=<a>", "<", "1=<a>"}));
  EXPECT_EQ(Pieces(tokens, "word sword word_ \xC3\xA9word -word."),
            (P{"3=word", " sword word_ \xC3\xA9word -", "3=word", "."}));
  EXPECT_EQ(Pieces(tokens, "sword ord"), (P{"sword ", "7=ord"}));  // a discarded match is passed
  EXPECT_EQ(Pieces(tokens, "a \xE3\x80\x80<l> b"), (P{"a", "4= \xE3\x80\x80<l>", " b"}));
  EXPECT_EQ(Pieces(tokens, "a <r> \t b"), (P{"a ", "5=<r> \t ", "b"}));
  EXPECT_EQ(Pieces(tokens, "<r> <l> "), (P{"5=<r> ", "4=<l>", " "}));
  EXPECT_EQ(Pieces(tokens, "a[S]b"), (P{"a", "6=[S]", "b"}));
  EXPECT_EQ(Pieces(tokens, "a[S]b", true), (P{"a[S]b"}));
  EXPECT_EQ(Pieces(tokens, ""), P{});
  EXPECT_EQ(Pieces(tokens, "<"), (P{"<"}));
}

// ---- The template ------------------------------------------------------------------------------

TEST(TokenizerTemplateTest, LongestFirst) {
  using Kept = std::pair<size_t, size_t>;
  EXPECT_EQ(LongestFirst(3, 4, 7), Kept(3, 4));
  EXPECT_EQ(LongestFirst(3, 4, 6), Kept(3, 3));
  EXPECT_EQ(LongestFirst(6, 3, 3), Kept(2, 1));
  EXPECT_EQ(LongestFirst(3, 6, 3), Kept(1, 2));
  EXPECT_EQ(LongestFirst(9, 2, 6), Kept(4, 2));
  EXPECT_EQ(LongestFirst(2, 9, 6), Kept(2, 4));
  EXPECT_EQ(LongestFirst(9, 9, 5), Kept(2, 3));
  EXPECT_EQ(LongestFirst(9, 0, 5), Kept(5, 0));
  EXPECT_EQ(LongestFirst(9, 9, 0), Kept(0, 0));
  EXPECT_EQ(LongestFirst(0, 9, 1), Kept(0, 1));
  for (size_t first = 0; first < 9; ++first) {
    for (size_t second = 0; second < 9; ++second) {
      for (size_t limit = 0; limit < 20; ++limit) {
        const auto [a, b] = LongestFirst(first, second, limit);
        EXPECT_EQ(a + b, std::min(first + second, limit));
        EXPECT_LE(a, first);
        EXPECT_LE(b, second);
      }
    }
  }
}

}  // namespace
}  // namespace encore::internal
