// SPDX-License-Identifier: Apache-2.0
//
// Files of a tokenizer that are not as they should be: each is one clear error. And what is told of
// files that contradict each other.

#include <fstream>
#include <string>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

using internal::TokenizerFactory;
using nlohmann::json;

json Good() {
  return json::parse(R"({
    "version": "1.0", "truncation": {"max_length": 128, "strategy": "LongestFirst", "stride": 0},
    "padding": null,
    "added_tokens": [
      {"id": 1, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 5, "content": "<new>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": true, "special": false}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                   "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "b": 3, "##b": 4}}})");
}

// Good() with one place changed.
json With(const std::string& pointer, const json& value) {
  json changed = Good();
  changed[json::json_pointer(pointer)] = value;
  return changed;
}
json Without(const std::string& pointer, const std::string& key) {
  json changed = Good();
  changed[json::json_pointer(pointer)].erase(key);
  return changed;
}

void ExpectRefused(const json& file, ErrorCode code, const std::vector<std::string>& words) {
  SCOPED_TRACE(file.dump());
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromJson(file.dump()), words, code));
}

constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
constexpr ErrorCode kCorrupt = ErrorCode::kCorruptData;

TEST(TokenizerFilesTest, TheGoodOneIsGood) {
  const Tokenizer tokenizer = Taken(TokenizerFactory::FromJson(Good().dump()));
  Tokens tokens;
  ASSERT_TRUE(tokenizer.Encode("AB <NEW>", &tokens).ok());
  EXPECT_EQ(tokens.ids, (std::vector<int32_t>{1, 2, 4, 5}));
  EXPECT_EQ(tokenizer.vocab_size(), 6u);
}

TEST(TokenizerFilesTest, TextThatIsNoJson) {
  for (const char* const text : {"", "{", "[]x", "nul", "{\"a\": \"\xFF\"}", "{\"a\":1,\"a\":2}"}) {
    EXPECT_TRUE(FailsWith(TokenizerFactory::FromJson(text), {}, kCorrupt));
  }
  std::string deep(100000, '[');
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromJson(deep), {"nested"}, kCorrupt));
  const std::string good = Good().dump();
  for (size_t size = 0; size < good.size(); size += 7) {
    EXPECT_FALSE(TokenizerFactory::FromJson(good.substr(0, size)).ok()) << size;
  }
}

TEST(TokenizerFilesTest, TheFileAsAWhole) {
  ExpectRefused(json::array(), kCorrupt, {"tokenizer.json", "wanted an object"});
  ExpectRefused(With("/version", "2.0"), kInvalid, {"version is '2.0'; wanted '1.0'"});
  ExpectRefused(With("/more", 1), kUnsupported, {"'more'"});
  ExpectRefused(Without("", "model"), kInvalid, {"model is absent"});
}

TEST(TokenizerFilesTest, Components) {
  const std::string n = "/normalizer", p = "/pre_tokenizer";
  for (const char* const type : {"Nmt", "ByteLevel", "Bert", ""}) {
    ExpectRefused(With(n, {{"type", type}}), kUnsupported,
                  {"normalizer: type is", "encore supports"});
  }
  for (const char* const type : {"UnicodeScripts", "CharDelimiterSplit", "FixedLength", ""}) {
    ExpectRefused(With(p, {{"type", type}}), kUnsupported, {"pre_tokenizer: type is"});
  }
  ExpectRefused(With(n, 1), kCorrupt, {"normalizer", "wanted an object"});
  ExpectRefused(With(n, json::object()), kInvalid, {"normalizer: type is absent"});
  ExpectRefused(With(n + "/more", 1), kUnsupported, {"normalizer", "'more'"});
  ExpectRefused(With(n + "/lowercase", "yes"), kInvalid, {"lowercase is 'yes'", "true or false"});
  ExpectRefused(Without(n, "lowercase"), kInvalid, {"lowercase is absent"});
  ExpectRefused(With(n + "/strip_accents", 0), kInvalid, {"strip_accents is 0"});
  ExpectRefused(With(n, {{"type", "Sequence"}, {"normalizers", 1}}), kInvalid,
                {"normalizers is 1"});
  ExpectRefused(With(n, {{"type", "Sequence"}, {"normalizers", {{{"type", "Nmt"}}}}}), kUnsupported,
                {"normalizers[0]: type is 'Nmt'"});
  ExpectRefused(With(p, {{"type", "Sequence"}, {"pretokenizers", {nullptr}}}), kCorrupt,
                {"pretokenizers[0]"});
  for (const char* const type : {"WordLevel", "Bpe"}) {
    ExpectRefused(With("/model/type", type), kUnsupported, {"model: type is", "WordPiece"});
  }
  for (const char* const type : {"BertProcessings", "Template"}) {
    ExpectRefused(With("/post_processor", {{"type", type}}), kUnsupported, {"post_processor"});
  }
}

TEST(TokenizerFilesTest, Models) {
  const std::string m = "/model";
  ExpectRefused(With(m + "/unk_token", "[unk]"), kInvalid, {"model", "'[unk]'"});
  ExpectRefused(With(m + "/unk_token", nullptr), kInvalid, {"unk_token is null"});
  ExpectRefused(With(m + "/max_input_chars_per_word", -1), kInvalid, {"is -1"});
  ExpectRefused(With(m + "/max_input_chars_per_word", 1.5), kInvalid, {"is 1.5"});
  ExpectRefused(With(m + "/dropout", 0.1), kUnsupported, {"'dropout'"});
  ExpectRefused(With(m + "/vocab", json::array()), kInvalid, {"vocab is an array"});
  ExpectRefused(With(m + "/vocab", json::object()), kInvalid, {"unknown token"});
  ExpectRefused(With(m + "/vocab/a", 3), kInvalid, {"'a'", "'b'", "both have id 3"});
  for (const json& id :
       {json(-1), json(1.5), json("7"), json(nullptr), json(1u << 23), json(uint64_t{1} << 63)}) {
    ExpectRefused(With(m + "/vocab/a", id), kInvalid, {"'a' with id", "wanted a whole number"});
  }
  json gaps = Without("", "added_tokens");
  gaps["model"]["vocab"]["b"] = 5000000;  // are fine
  EXPECT_TRUE(TokenizerFactory::FromJson(gaps.dump()).ok());
}

TEST(TokenizerFilesTest, AddedTokensOfBadFiles) {
  const std::string a = "/added_tokens";
  ExpectRefused(With(a, 1), kInvalid, {"added_tokens is 1"});
  ExpectRefused(With(a + "/0", 1), kCorrupt, {"added_tokens[0]"});
  ExpectRefused(With(a + "/0/content", ""), kInvalid, {"content is ''"});
  ExpectRefused(With(a + "/0/id", 2), kInvalid, {"'[CLS]' has id 2; wanted 1"});
  ExpectRefused(With(a + "/1/id", 6), kInvalid, {"'<new>' has id 6; wanted 5"});
  ExpectRefused(With(a + "/1/id", uint64_t{1} << 40), kInvalid, {"id is 1099511627776"});
  ExpectRefused(With(a + "/1/lstrip", 1), kInvalid, {"lstrip is 1"});
  ExpectRefused(With(a + "/1/more", 1), kUnsupported, {"added_tokens[1]", "'more'"});
  ExpectRefused(With(a + "/1/content", "[CLS]"), kInvalid, {"'[CLS]' is there twice"});
  ExpectRefused(With(a + "/1/content", std::string(5000, 'x')), kUnsupported, {"5000 bytes"});
  ExpectRefused(With(a + "/1/content", "\xE2\x80\x8B"), kInvalid, {"nothing once normalized"});
  json two = Good();
  two["added_tokens"].push_back(two["added_tokens"][1]);
  two["added_tokens"][2]["content"] = "<NEW>";
  two["added_tokens"][2]["id"] = 6;
  ExpectRefused(two, kInvalid, {"'<new>'", "'<NEW>'", "the same once normalized"});
  // The next id is the vocabulary's size, which another token has here.
  json taken = Good();
  taken["model"]["vocab"]["b"] = 5;
  ExpectRefused(taken, kInvalid, {"id 5 belongs to another token"});
}

TEST(TokenizerFilesTest, Templates) {
  const std::string t = "/post_processor";
  ExpectRefused(With(t + "/single/0/SpecialToken/id", "[SEP]"), kInvalid, {"id is '[SEP]'"});
  ExpectRefused(With(t + "/single/0", {{"Other", 1}}), kInvalid, {"single[0]"});
  ExpectRefused(With(t + "/single/0/SpecialToken/type_id", 256), kInvalid, {"type_id is 256"});
  ExpectRefused(With(t + "/single/1/Sequence/id", "C"), kInvalid, {"id is 'C'"});
  ExpectRefused(With(t + "/single/1/Sequence/id", "B"), kUnsupported, {"single", "wanted A once"});
  ExpectRefused(With(t + "/pair", json::array()), kUnsupported, {"pair", "A and B once each"});
  ExpectRefused(With(t + "/pair/1/Sequence/id", "A"), kUnsupported, {"2 times A"});
  ExpectRefused(With(t + "/special_tokens/[CLS]/ids/0", 2), kInvalid, {"'[CLS]' has id 2"});
  ExpectRefused(With(t + "/special_tokens/[CLS]/ids/0", -2), kInvalid, {"'[CLS]' has id -2"});
  ExpectRefused(With(t + "/special_tokens/[CLS]/ids/0", 99), kInvalid, {"'[CLS]' has id 99"});
  ExpectRefused(
      With(t + "/special_tokens/[CLS]", {{"id", "[CLS]"}, {"ids", {99}}, {"tokens", {""}}}),
      kInvalid, {"'' has id 99"});
  ExpectRefused(With(t + "/special_tokens/[CLS]/ids", json::array()), kInvalid, {"as many"});
  ExpectRefused(With(t + "/special_tokens/[CLS]/tokens/0", 1), kInvalid, {"tokens has 1"});
  const json bert = {{"type", "BertProcessing"}, {"sep", {"b", 3}}, {"cls", {"[CLS]", 1}}};
  EXPECT_TRUE(TokenizerFactory::FromJson(With(t, bert).dump()).ok());
  json bad = bert;
  bad["sep"] = {"b", 4};
  ExpectRefused(With(t, bad), kInvalid, {"sep", "'b' has id 4"});
  bad["sep"] = {"b"};
  ExpectRefused(With(t, bad), kInvalid, {"sep", "a token and its id"});
  bad.erase("sep");
  ExpectRefused(With(t, bad), kInvalid, {"sep is absent"});
}

// Whether a decision says so.
bool Tells(const Tokenizer& tokenizer, const std::string& what, const std::string& value,
           const std::string& source) {
  for (const Decision& d : tokenizer.Describe()) {
    if (d.what == what && d.value == value && d.source.find(source) != std::string::npos)
      return true;
  }
  return false;
}

TEST(TokenizerFilesTest, TellsWhatContradicts) {
  const Tokenizer tokenizer = Taken(TokenizerFactory::FromJson(Good().dump(), {}, R"({
    "do_lower_case": false, "strip_accents": false, "tokenize_chinese_chars": false,
    "unk_token": "<unk>", "sep_token": {"content": "[SEP]"}, "model_max_length": 77,
    "added_tokens_decoder": {"9": {"content": "<nine>", "special": true}}})"));
  EXPECT_EQ(tokenizer.model_max_length(), 77u);
  EXPECT_TRUE(Tells(tokenizer, "truncation", "ignored", "tokenizer.json"));
  EXPECT_TRUE(Tells(tokenizer, "lower case", "yes", "says do_lower_case false"));
  EXPECT_TRUE(Tells(tokenizer, "accents removed", "yes", "says strip_accents false"));
  EXPECT_TRUE(
      Tells(tokenizer, "Chinese characters apart", "yes", "says tokenize_chinese_chars false"));
  EXPECT_TRUE(Tells(tokenizer, "unknown token", "[UNK]", "says unk_token '<unk>'"));
  EXPECT_TRUE(Tells(tokenizer, "template", "without '[SEP]'", "says sep_token '[SEP]'"));
  EXPECT_TRUE(Tells(tokenizer, "added tokens", "'<nine>' is 6", "a file says 9"));
  // Of the vocabulary, and yet not in the template.
  const Tokenizer known = Taken(
      TokenizerFactory::FromJson(Good().dump(), {}, R"({"cls_token": "[CLS]", "sep_token": "b"})"));
  EXPECT_TRUE(Tells(known, "template", "without 'b'", "says sep_token 'b'"));
  EXPECT_FALSE(Tells(known, "template", "without '[CLS]'", "says"));
  EXPECT_TRUE(Tells(tokenizer, "template", "[CLS]:0 A:0", "post_processor"));
  const Tokenizer agreed =
      Taken(TokenizerFactory::FromJson(Good().dump(), {}, R"({"do_lower_case": true})"));
  for (const Decision& d : agreed.Describe()) {
    EXPECT_EQ(d.source.find("says"), std::string::npos) << d.what << ": " << d.source;
  }
}

TEST(TokenizerFilesTest, TokenizerConfigsThatAreBad) {
  const auto refused = [](const std::string& config, const std::vector<std::string>& words) {
    EXPECT_TRUE(FailsWith(TokenizerFactory::FromJson(Good().dump(), {}, config), words, kInvalid));
  };
  refused(R"({"do_lower_case": 1})", {"tokenizer_config.json: do_lower_case is 1"});
  refused(R"({"model_max_length": -1})", {"model_max_length is -1"});
  refused(R"({"model_max_length": 1.5})", {"model_max_length is 1.5"});
  refused(R"({"unk_token": ["a"]})", {"unk_token is an array of 1"});
  refused(R"({"added_tokens_decoder": []})", {"added_tokens_decoder is an array"});
  refused(R"({"added_tokens_decoder": {"x": {}}})", {"found the key 'x'"});
  refused(R"({"added_tokens_decoder": {"1": {}}})", {"content is absent"});
}

TEST(TokenizerFilesTest, VocabTxt) {
  const std::string lines = "[PAD]\r\n[UNK]\r\n[CLS]\n[SEP] \n\na\nb\na\n\xC3\xA9\n##b";
  const Tokenizer tokenizer = Taken(TokenizerFactory::FromVocab(lines));
  EXPECT_EQ(tokenizer.TokenToId("a"), 7);  // the last of equal lines
  EXPECT_EQ(tokenizer.TokenToId("##b"), 9);
  EXPECT_EQ(tokenizer.vocab_size(), 10u);
  Tokens tokens;
  ASSERT_TRUE(tokenizer.Encode("\xC3\x89 ab[SEP]", &tokens).ok());
  EXPECT_EQ(tokens.ids, (std::vector<int32_t>{2, 1, 7, 9, 3, 3}));
  const auto encode = [&](const std::string& config, std::string_view text) {
    const Result<Tokenizer> opened = TokenizerFactory::FromVocab(lines, {}, config);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_TRUE(opened->Encode(text, &tokens, {.add_special_tokens = false}).ok());
    return tokens.ids;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(encode(R"({"strip_accents": false})", "\xC3\x89 A"), (Ids{8, 7}));
  EXPECT_EQ(encode(R"({"do_lower_case": false})", "\xC3\xA9 A"), (Ids{8, 1}));
  EXPECT_EQ(encode(R"({"unk_token": "b"})", "x"), (Ids{6}));
  EXPECT_EQ(encode(R"({"added_tokens_decoder": {"6": {"content": "b", "special": true}}})", "ab"),
            (Ids{7, 6}));
  // Special tokens that the vocabulary lacks come after it.
  const Tokenizer small = Taken(TokenizerFactory::FromVocab("[UNK]\n[CLS]\n[SEP]\na\n"));
  ASSERT_TRUE(small.Encode("a[MASK][PAD]", &tokens, {.add_special_tokens = false}).ok());
  EXPECT_EQ(tokens.ids, (Ids{3, 5, 4}));
}

TEST(TokenizerFilesTest, VocabTxtThatIsBad) {
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromVocab(""), {"vocab.txt", "'[UNK]'"}, kInvalid));
  EXPECT_TRUE(
      FailsWith(TokenizerFactory::FromVocab("[UNK]\n[CLS]\n"), {"sep_token '[SEP]'"}, kInvalid));
  EXPECT_TRUE(
      FailsWith(TokenizerFactory::FromVocab("[UNK]\n[SEP]\n"), {"cls_token '[CLS]'"}, kInvalid));
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromVocab("[UNK]\n\xC0\x80\n"), {"byte 6 is not UTF-8"},
                        kCorrupt));
  const std::string good = "[UNK]\n[CLS]\n[SEP]\na\n";
  EXPECT_TRUE(
      TokenizerFactory::FromVocab(good, {}, R"({"tokenizer_class": "BertTokenizer"})").ok());
  EXPECT_TRUE(
      FailsWith(TokenizerFactory::FromVocab(good, {}, R"({"tokenizer_class": "T5Tokenizer"})"),
                {"tokenizer_class", "'T5Tokenizer'", "vocab.txt"}, kUnsupported));
  EXPECT_TRUE(
      FailsWith(TokenizerFactory::FromVocab(good, {}, R"({"tokenizer_class": "MPNetTokenizer"})"),
                {"cls_token '<s>' of MPNetTokenizer is not in the vocabulary"}, kInvalid));
  const Tokenizer other = Taken(TokenizerFactory::FromVocab(
      good, {}, R"({"added_tokens_decoder": {"2": {"content": "a"}}})"));
  EXPECT_TRUE(Tells(other, "added tokens", "'a' is 3", "a file says 2"));
}

// Every token is found in the raw text, and what is left is one unknown token a word.
TEST(TokenizerFilesTest, VocabTxtOfEsm) {
  const std::string vocab = "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\nLA\n<mask>\n";
  const std::string esm = R"({"tokenizer_class": "EsmTokenizer"})";
  const Tokenizer opened = Taken(TokenizerFactory::FromVocab(vocab, {}, esm));
  Tokens tokens;
  ASSERT_TRUE(opened.Encode("LLAAl<mask> jj\x1Ck A", &tokens, {}).ok());
  EXPECT_EQ(tokens.ids, (std::vector<int32_t>{0, 4, 6, 5, 3, 7, 3, 3, 5, 2}));
  ASSERT_TRUE(opened.EncodePair("A", "", &tokens, {}).ok());
  EXPECT_EQ(tokens.ids, (std::vector<int32_t>{0, 5, 2, 2}));
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromVocab(vocab + "A B\n", {}, esm),
                        {"tokenizer_class is EsmTokenizer", "'A B'", "white space"}, kUnsupported));
  EXPECT_TRUE(FailsWith(TokenizerFactory::FromVocab(vocab, {.lowercase = true}, esm),
                        {"EsmTokenizer", "lower case"}, kUnsupported));
  EXPECT_TRUE(FailsWith(
      TokenizerFactory::FromVocab(
          vocab, {}, R"({"tokenizer_class": "EsmTokenizer", "split_special_tokens": true})"),
      {"EsmTokenizer", "split_special_tokens"}, kUnsupported));
}

TEST(TokenizerFilesTest, DescribeTellsTheNormalizersSteps) {
  const json steps = {{{"type", "NFKD"}}, {{"type", "Lowercase"}}};
  const Tokenizer tokenizer = Taken(TokenizerFactory::FromJson(
      With("/normalizer", {{"type", "Sequence"}, {"normalizers", steps}}).dump()));
  const auto decided = [&](const std::string& what) {
    std::string values;
    for (const Decision& decision : tokenizer.Describe()) {
      if (decision.what == what) values += decision.value + ";";
    }
    return values;
  };
  EXPECT_EQ(decided("Unicode normalization"), "NFKD;");
  EXPECT_EQ(decided("lower case"), "yes;");
}

TEST(TokenizerFilesTest, Folders) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.File(name), std::ios::binary) << text;
  };
  const std::string path = folder.path().string();
  EXPECT_TRUE(FailsWith(Tokenizer::Open(path + "/none"), {"none"}, ErrorCode::kNotFound));
  EXPECT_TRUE(FailsWith(Tokenizer::Open(path), {path, "neither tokenizer.json nor vocab.txt"},
                        ErrorCode::kNotFound));
  write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nzz\n");
  Result<Tokenizer> tokenizer = Tokenizer::Open(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->TokenToId("zz"), 3);
  write("tokenizer.json", Good().dump());  // counts before vocab.txt
  tokenizer = Tokenizer::Open(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->TokenToId("zz"), std::nullopt);
  write("tokenizer_config.json", "{\"do_lower_case\": \"x\"}");
  EXPECT_TRUE(
      FailsWith(Tokenizer::Open(path), {path, "tokenizer_config.json", "do_lower_case"}, kInvalid));
  write("tokenizer_config.json", "{");
  EXPECT_TRUE(FailsWith(Tokenizer::Open(path), {"tokenizer_config.json"}, kCorrupt));
  write("tokenizer_config.json", "{}");
  write("tokenizer.json", "{");
  EXPECT_TRUE(FailsWith(Tokenizer::Open(path), {path, "tokenizer.json"}, kCorrupt));
}

}  // namespace
}  // namespace encore
