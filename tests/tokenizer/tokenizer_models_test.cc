// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding and Unigram by themselves, with expectations worked out by hand, and files
// that contradict themselves.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/results.h"

namespace encore {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

json File(const json& model, const json& pre_tokenizer = nullptr,
          const json& normalizer = nullptr) {
  return {{"version", "1.0"},
          {"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer},
          {"model", model}};
}

// Tokens get the ids 0, 1, 2 ...
json BpeModel(const std::vector<std::string>& tokens, const std::vector<json>& merges,
              const json& more = json::object()) {
  json model = {{"type", "BPE"}, {"merges", merges}, {"vocab", json::object()}};
  for (const std::string& token : tokens) {
    const size_t id = model["vocab"].size();
    model["vocab"][token] = id;
  }
  model.update(more);
  return model;
}

json UnigramModel(const std::vector<json>& vocab, const json& unk_id = 0,
                  bool byte_fallback = false) {
  return {
      {"type", "Unigram"}, {"vocab", vocab}, {"unk_id", unk_id}, {"byte_fallback", byte_fallback}};
}

Ids Encoded(const json& file, const std::string& text) {
  const Tokenizer tokenizer = Taken(internal::TokenizerFactory::FromJson(file.dump()));
  Tokens tokens;
  const Status status = tokenizer.Encode(text, &tokens);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokens.ids;
}

void ExpectModelRefused(const json& file, ErrorCode code, const std::vector<std::string>& words) {
  SCOPED_TRACE(file.dump().substr(0, 500));
  const Result<Tokenizer> tokenizer = internal::TokenizerFactory::FromJson(file.dump());
  ASSERT_FALSE(tokenizer.ok());
  const std::string& message = tokenizer.status().message();
  EXPECT_EQ(tokenizer.status().code(), code) << message;
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos)
        << "wanted: " << word << "\nfound: " << message;
  }
  EXPECT_LT(message.size(), 1000u);
}

constexpr auto kInvalidModel = ErrorCode::kInvalidArgument;
constexpr auto kUnsupportedModel = ErrorCode::kUnsupported;
constexpr auto kCorruptModel = ErrorCode::kCorruptData;
const json kByteLevel = {
    {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};

// ---- Byte-pair encoding ------------------------------------------------------------------------

TEST(TokenizerBpeTest, MergesGoByRankThenFromTheLeft) {
  const json model =
      BpeModel({"a", "b", "c", "ab", "bc", "abc", "aa"}, {"b c", "a b", "ab c", json{"a", "a"}});
  EXPECT_EQ(Encoded(File(model), "abc"), (Ids{0, 4}));  // bc first, and a bc is no merge
  EXPECT_EQ(Encoded(File(model), "ab"), (Ids{3}));
  EXPECT_EQ(Encoded(File(model), "aaa"), (Ids{6, 0}));  // the leftmost of equals
  EXPECT_EQ(Encoded(File(model), "aaab"), (Ids{6, 3}));
  EXPECT_EQ(Encoded(File(model), "axb"), (Ids{3}));  // no token for what is unknown: left out
}

TEST(TokenizerBpeTest, AWordThatIsATokenIsThatTokenOnlyWithIgnoreMerges) {
  const json model = BpeModel({"a", "b", "ab", "bb", "abb"}, {"b b"});
  EXPECT_EQ(Encoded(File(model), "abb"), (Ids{0, 3}));
  const json ignoring = BpeModel({"a", "b", "ab", "bb", "abb"}, {"b b"}, {{"ignore_merges", true}});
  EXPECT_EQ(Encoded(File(ignoring), "abb"), (Ids{4}));
  EXPECT_EQ(Encoded(File(ignoring), "abba"), (Ids{0, 3, 0}));
  for (const json& file : {File(model), File(ignoring)}) {
    const Tokenizer tokenizer = Taken(internal::TokenizerFactory::FromJson(file.dump()));
    const std::vector<Decision>& told = tokenizer.Describe();
    EXPECT_EQ(std::any_of(told.begin(), told.end(),
                          [](const Decision& d) {
                            return d.what == "words that are tokens" && d.value == "not merged";
                          }),
              file["model"].contains("ignore_merges"));
  }
}

TEST(TokenizerBpeTest, UnknownCharacters) {
  const std::vector<std::string> tokens = {"?", "a", "<0xC3>", "<0xA9>"};
  EXPECT_EQ(Encoded(File(BpeModel(tokens, {}, {{"unk_token", "?"}})), "xya"), (Ids{0, 0, 1}));
  const json fused = BpeModel(tokens, {}, {{"unk_token", "?"}, {"fuse_unk", true}});
  EXPECT_EQ(Encoded(File(fused), "xyaz"), (Ids{0, 1, 0}));
  const json bytes =
      BpeModel(tokens, {}, {{"unk_token", "?"}, {"byte_fallback", true}, {"fuse_unk", true}});
  EXPECT_EQ(Encoded(File(bytes), "a\xC3\xA9"), (Ids{1, 2, 3}));
  EXPECT_EQ(Encoded(File(bytes), "\xC3\xAA"), (Ids{0}));  // one of its bytes has no token
}

TEST(TokenizerBpeTest, PrefixesAndSuffixes) {
  const json model = BpeModel({"a", "##a", "##a.", "a.", "aa", "aaa."}, {"a ##a", "aa ##a."},
                              {{"continuing_subword_prefix", "##"}, {"end_of_word_suffix", "."}});
  EXPECT_EQ(Encoded(File(model), "a"), (Ids{3}));
  EXPECT_EQ(Encoded(File(model), "aaa"), (Ids{5}));
  EXPECT_EQ(Encoded(File(model), "aa"), (Ids{0, 2}));
  EXPECT_EQ(Encoded(File(model), "aaaa"), (Ids{4, 1, 2}));
}

// A merge at a time, the definition: what the scan and the heap must give.
Ids Defined(Ids ids, const std::vector<std::pair<std::pair<int, int>, int>>& merges) {
  while (true) {
    size_t best = merges.size(), place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank].first != std::pair<int, int>(ids[i], ids[i + 1])) continue;
        best = rank;
        place = i;
      }
    }
    if (best == merges.size()) return ids;
    ids[place] = merges[best].second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(TokenizerBpeTest, ShortAndLongWordsAreAsDefined) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::pair<std::pair<int, int>, int>> merges;
    while (tokens.size() < 40) {
      const size_t left = random() % tokens.size(), right = random() % tokens.size();
      const std::string both = tokens[left] + tokens[right];
      if (both.size() > 12 || std::find(tokens.begin(), tokens.end(), both) != tokens.end())
        continue;
      merges.push_back(
          {{static_cast<int>(left), static_cast<int>(right)}, static_cast<int>(tokens.size())});
      tokens.push_back(both);
    }
    // In any order: a token may be made of one that another merge, of a later rank, makes.
    std::shuffle(merges.begin(), merges.end(), random);
    std::vector<json> list;
    for (const auto& [pair, both] : merges) {
      list.push_back(
          {tokens[static_cast<size_t>(pair.first)], tokens[static_cast<size_t>(pair.second)]});
    }
    const json file = File(BpeModel(tokens, list));
    for (const size_t size : {1, 2, 5, 20, 47, 48, 49, 50, 200, 600}) {
      std::string text;
      Ids ids;
      for (size_t i = 0; i < size; ++i) {
        ids.push_back(static_cast<int32_t>(random() % 3));
        text += static_cast<char>('a' + ids.back());
      }
      EXPECT_EQ(Encoded(file, text), Defined(ids, merges)) << text;
    }
  }
}

// Spaces as marks, and the text one word: it is cut in front of marks, where no merge goes across.
TEST(TokenizerBpeTest, CutsAtMarksOnlyWhereNoMergeCrossesThem) {
  const std::string mark = "\xE2\x96\x81";
  const json whole = BpeModel({"a", "b", mark, mark + "a", "b" + mark, mark + mark},
                              {json{mark, "a"}, json{mark, mark}, json{"b", mark}});
  EXPECT_EQ(Encoded(File(whole), "b" + mark + "b" + mark + "a"), (Ids{4, 1, 3}));
  // Cut where there is an unknown token.
  for (const json& more : {json::object(), json{{"unk_token", "b"}}}) {
    const json cut = BpeModel({"a", "b", mark, mark + "a", mark + mark},
                              {json{mark, "a"}, json{mark, mark}}, more);
    EXPECT_EQ(Encoded(File(cut), "b" + mark + mark + mark + "a"), (Ids{1, 4, 3}));
  }
}

TEST(TokenizerBpeTest, AMillionCharactersOfOneWord) {
  const json model = BpeModel({"a", "aa", "aaaa"}, {"a a", "aa aa"});
  EXPECT_EQ(Encoded(File(model), std::string(1 << 20, 'a')), Ids(1 << 18, 2));
}

TEST(TokenizerBpeTest, HostileFiles) {
  const std::vector<std::string> ab = {"a", "b", "ab"};
  ExpectModelRefused(File(BpeModel({"a", "b"}, {"a b"})), kInvalidModel,
                     {"merges[0]", "'a' and 'b'", "'ab', which is not in the vocabulary"});
  ExpectModelRefused(File(BpeModel(ab, {"a c"})), kInvalidModel, {"merges[0]", "'c'"});
  ExpectModelRefused(File(BpeModel(ab, {"a b", json{"a", "b"}})), kInvalidModel,
                     {"merges[1]", "twice"});
  ExpectModelRefused(File(BpeModel({"a", "", "b"}, {json{"a", ""}})), kInvalidModel,
                     {"nothing longer"});
  ExpectModelRefused(File(BpeModel({"a", ""}, {json{"", "a"}})), kInvalidModel, {"nothing longer"});
  ExpectModelRefused(
      File(BpeModel({"a", "##"}, {json{"a", "##"}}, {{"continuing_subword_prefix", "##"}})),
      kInvalidModel, {"nothing longer"});
  for (const json& merge : {json("ab"), json("a b c"), json(1), json{"a"}, json{"a", 1}, json()}) {
    ExpectModelRefused(File(BpeModel(ab, {merge})), kInvalidModel, {"merges[0] is", "two tokens"});
  }
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"unk_token", "?"}})), kInvalidModel,
                     {"the unknown token '?'"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"dropout", 0.1}})), kUnsupportedModel,
                     {"dropout is 0.1"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"vocab", {{"a", 1}, {"b", 1}}}})), kInvalidModel,
                     {"'a' and 'b' both have id 1"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"vocab", {{"a", -1}}}})), kInvalidModel,
                     {"id -1"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"vocab", json::array()}})), kInvalidModel,
                     {"vocab is"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"more", 1}})), kUnsupportedModel, {"'more'"});
  ExpectModelRefused(File(BpeModel(ab, {"a b"}, {{"byte_fallback", true}}), kByteLevel),
                     kUnsupportedModel, {"byte_fallback", "ByteLevel"});
  ExpectModelRefused(File(BpeModel({}, {})), kInvalidModel, {"vocab is empty"});
  EXPECT_EQ(Encoded(File(BpeModel({std::string(1000000, 'x'), "x"}, {})), "xx"), (Ids{1, 1}));
}

TEST(TokenizerBpeTest, MarksMeetWhereWhatIsBetweenThemIsLeftOut) {
  const std::string mark = "\u2581";
  const std::vector<json> merges = {{mark, mark}, {mark, mark + "a"}, {mark, "a"}};
  const std::vector<std::string> tokens = {mark,       mark + mark,       "a",
                                           mark + "a", mark + mark + "a", "<unk>"};
  const std::string text = mark + "\u00e9" + mark;
  EXPECT_EQ(Encoded(File(BpeModel(tokens, merges)), text), (Ids{1}));
  EXPECT_EQ(Encoded(File(BpeModel(tokens, {merges[2], merges[1]})), text + "a"), (Ids{4}));
  // A token stands between them.
  EXPECT_EQ(Encoded(File(BpeModel(tokens, merges, {{"unk_token", "<unk>"}})), text),
            (Ids{0, 5, 0}));
  // Places are counted on, too.
  const Tokenizer bare =
      Taken(internal::TokenizerFactory::FromJson(File(BpeModel({mark}, {})).dump()));
  Tokens tokens_of_text;
  ASSERT_TRUE(bare.Encode("\u20ac" + mark, &tokens_of_text, {.offsets = true}).ok());
  EXPECT_EQ(tokens_of_text.offsets, (std::vector<ByteRange>{{0, 3}}));
}

TEST(TokenizerBpeTest, TokensStandSideBySideWhereBytesAreLeftOut) {
  // As `tokenizers` has it: "9" is left out, and the token of the byte behind it, whose character
  // in the alphabet of bytes has two bytes, takes its place and the next one's.
  json one_word = kByteLevel;
  one_word["use_regex"] = false;
  const Tokenizer tokenizer = Taken(
      internal::TokenizerFactory::FromJson(File(BpeModel({"\u00c3", "a"}, {}), one_word).dump()));
  const auto offsets = [&](const char* text) {
    Tokens tokens;
    EXPECT_TRUE(tokenizer.Encode(text, &tokens, {.offsets = true}).ok());
    return tokens.offsets;
  };
  EXPECT_EQ(offsets("9\u00c5"), (std::vector<ByteRange>{{0, 3}}));
  EXPECT_EQ(offsets("a9\u00c5aa"), (std::vector<ByteRange>{{0, 1}, {1, 4}, {2, 4}, {2, 4}}));
}

// ---- Unigram -----------------------------------------------------------------------------------

TEST(TokenizerUnigramTest, TheBestSumWinsAndTheFirstOfEquals) {
  const std::vector<json> vocab = {{"<unk>", 0}, {"a", -1},     {"b", -1},
                                   {"ab", -1.5}, {"abb", -3.0}, {"bb", -1.5}};
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "ab"), (Ids{3}));
  // abb -3, ab b -2.5, a bb -2.5: the way that was found first, from the leftmost place.
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "abb"), (Ids{1, 5}));
}

TEST(TokenizerUnigramTest, UnknownCharactersAreFused) {
  const std::vector<json> vocab = {{"<unk>", 0},   {"a", -1},      {"xyz", -60},
                                   {"<0x78>", -9}, {"<0xC3>", -9}, {"<0xA9>", -9}};
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "vwa"), (Ids{0, 1}));
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "axx"), (Ids{1, 0}));
  EXPECT_EQ(Encoded(File(UnigramModel(vocab, 0, true)), "xxa\xC3\xA9"), (Ids{3, 3, 1, 4, 5}));
  EXPECT_EQ(Encoded(File(UnigramModel(vocab, 0, true)), "xw"), (Ids{0}));  // w has no byte
  // Three unknown characters cost 3 * 70, the token 60.
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "xyz"), (Ids{2}));
  // The unknown token written out is unknown too, and goes together with what is.
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "w<unk>"), (Ids{0}));
  // Fused unknown characters may spell a token that was too dear for them.
  const std::vector<json> dear = {{"<unk>", 0}, {"a", -1}, {"xy", -100}};
  EXPECT_EQ(Encoded(File(UnigramModel(dear)), "xy"), (Ids{2}));
}

TEST(TokenizerUnigramTest, OfATokenThatIsThereTwiceTheLastCounts) {
  // Its id and its score: "ab" has -4 in the end, its letters -2.5.
  const std::vector<json> vocab = {{"<unk>", 0}, {"ab", -1}, {"a", -1},
                                   {"b", -2},    {"ab", -4}, {"b", -1.5}};
  EXPECT_EQ(Encoded(File(UnigramModel(vocab)), "ab"), (Ids{2, 5}));
  EXPECT_EQ(Encoded(File(UnigramModel({{"<unk>", 0}, {"a", -9}, {"a", -1}})), "a"), (Ids{2}));
  const Tokenizer tokenizer =
      Taken(internal::TokenizerFactory::FromJson(File(UnigramModel(vocab)).dump()));
  EXPECT_EQ(tokenizer.vocab_size(), 6u);
  EXPECT_EQ(tokenizer.TokenToId("b"), 5);
  EXPECT_EQ(tokenizer.IdToToken(3), "b");
}

TEST(TokenizerUnigramTest, HostileFiles) {
  const std::vector<json> good = {{"<unk>", 0}, {"a", -1}};
  ExpectModelRefused(File(UnigramModel({}, 0)), kInvalidModel, {"unk_id is 0", "below 0"});
  ExpectModelRefused(File(UnigramModel(good, 2)), kInvalidModel, {"unk_id is 2", "below 2"});
  ExpectModelRefused(File(UnigramModel(good, nullptr)), kUnsupportedModel, {"unk_id is null"});
  for (const json& item :
       {json("a"), json{"a"}, json{1, "a"}, json{"a", "-1"}, json{"a", nullptr}}) {
    ExpectModelRefused(File(UnigramModel({{"<unk>", 0}, item})), kInvalidModel,
                       {"vocab[1] is", "a token and its score"});
  }
  ExpectModelRefused(File(UnigramModel(good), kByteLevel), kUnsupportedModel, {"ByteLevel"});
  // Numbers that JSON can spell and 64 bits cannot hold, and those that JSON cannot spell.
  for (const char* const score : {"1e999", "-1e999", "NaN", "-Infinity"}) {
    const std::string text = R"({"version":"1.0","model":{"type":"Unigram","unk_id":0,"vocab":)"
                             R"([["<unk>",0],["a",)" +
                             std::string(score) + "]]}}";
    const Result<Tokenizer> tokenizer = internal::TokenizerFactory::FromJson(text);
    EXPECT_FALSE(tokenizer.ok()) << score;
  }
  std::vector<json> deep = good;
  deep.push_back({std::string(4096, 'a'), -1});
  EXPECT_EQ(Encoded(File(UnigramModel(deep)), std::string(8192, 'a')), (Ids{2, 2}));
  deep.push_back({std::string(1000000, 'a'), -1});
  ExpectModelRefused(File(UnigramModel(deep)), kUnsupportedModel,
                     {"vocab[3]", "1000000 bytes", "4096"});
}

// ---- Components --------------------------------------------------------------------------------

TEST(TokenizerComponentsTest, HostileFiles) {
  const json model = BpeModel({"a"}, {});
  const auto normalizer = [&](const json& parts) { return File(model, nullptr, parts); };
  const auto pre = [&](const json& parts) { return File(model, parts); };
  const auto charsmap = [&](const std::string& base64) {
    return normalizer({{"type", "Precompiled"}, {"precompiled_charsmap", base64}});
  };
  ExpectModelRefused(charsmap("!"), kCorruptModel, {"precompiled_charsmap is '!'", "base64"});
  ExpectModelRefused(charsmap("AAA"), kCorruptModel, {"base64"});
  ExpectModelRefused(charsmap("===="), kCorruptModel, {"base64"});
  ExpectModelRefused(charsmap(""), kCorruptModel, {"has 0 bytes"});
  ExpectModelRefused(charsmap("AAAAAA=="), kCorruptModel, {"trie has 0 bytes"});
  ExpectModelRefused(charsmap("/////w=="), kCorruptModel, {"trie has 4294967295 bytes, of 0"});
  ExpectModelRefused(charsmap("BAAAAAAAAAA="), kCorruptModel, {"leads out of it"});  // one unit
  ExpectModelRefused(normalizer({{"type", "Precompiled"}}), kInvalidModel,
                     {"precompiled_charsmap is absent"});
  ExpectModelRefused(
      normalizer({{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", ""}}),
      kUnsupportedModel, {"Regex is 'a+'", "GPT-2"});
  ExpectModelRefused(
      normalizer({{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}}),
      kInvalidModel, {"String is ''"});
  ExpectModelRefused(normalizer({{"type", "Replace"}, {"pattern", "a"}, {"content", ""}}),
                     kInvalidModel, {"pattern is 'a'"});
  ExpectModelRefused(normalizer({{"type", "Strip"}, {"strip_left", true}}), kInvalidModel,
                     {"strip_right"});
  // Each step doubles a text.
  const json doubling = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  const auto doublings = [&](size_t count) {
    return normalizer({{"type", "Sequence"}, {"normalizers", std::vector<json>(count, doubling)}});
  };
  ExpectModelRefused(doublings(40), kUnsupportedModel,
                     {"1099511627776 times as long", "wanted at most 65536 times"});
  EXPECT_EQ(Encoded(doublings(16), "a").size(), 65536u);
  const auto marks = [](const char* mark) {
    return json{{"type", "Metaspace"}, {"replacement", mark}, {"prepend_scheme", "always"}};
  };
  ExpectModelRefused(
      pre({{"type", "Sequence"}, {"pretokenizers", std::vector<json>(40, marks("_"))}}),
      kUnsupportedModel, {"1099511627776 times as long"});
  ExpectModelRefused(normalizer({{"type", "NFC"}, {"more", 1}}), kUnsupportedModel, {"'more'"});
  ExpectModelRefused(pre({{"type", "Split"},
                          {"pattern", {{"Regex", "(?:a|a)*b"}}},
                          {"behavior", "Isolated"},
                          {"invert", false}}),
                     kUnsupportedModel, {"Regex is"});
  ExpectModelRefused(
      pre({{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "isolated"}}),
      kInvalidModel, {"behavior is 'isolated'"});
  ExpectModelRefused(pre({{"type", "Metaspace"}, {"replacement", "ab"}}), kInvalidModel,
                     {"one character"});
  ExpectModelRefused(pre({{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
                     kInvalidModel, {"prepend_scheme is 'last'"});
  ExpectModelRefused(pre({{"type", "Metaspace"},
                          {"replacement", "_"},
                          {"prepend_scheme", "always"},
                          {"add_prefix_space", false}}),
                     kInvalidModel, {"prepend_scheme", "never"});
  ExpectModelRefused(pre({{"type", "Sequence"}, {"pretokenizers", {kByteLevel, kByteLevel}}}),
                     kUnsupportedModel, {"pretokenizers[1]", "behind ByteLevel"});
  json post = File(model);
  post["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", {"a", 0}},
                            {"cls", {"b", 0}},
                            {"trim_offsets", true},
                            {"add_prefix_space", true}};
  ExpectModelRefused(post, kInvalidModel, {"cls", "'b'"});
  post["post_processor"]["cls"] = {"a", 0};
  post["post_processor"] = {{"type", "Sequence"},
                            {"processors", {post["post_processor"], kByteLevel}}};
  ExpectModelRefused(post, kUnsupportedModel, {"processors[1]", "behind a template"});
}

}  // namespace
}  // namespace encore
