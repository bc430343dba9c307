// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers over a small vocabulary of many scripts.

#include "tests/fuzz/fixed_tokenizers.h"

#include <string>
#include <string_view>

#include "engine/tokenizer/tokenizer_factory.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

constexpr std::string_view kTokens[] = {"[PAD]",     "[UNK]",     "[CLS]",
                                        "[SEP]",     "[MASK]",    "the",
                                        "##ing",     "##s",       "un",
                                        "##believ",  "##able",    "don",
                                        "##t",       "'",         ".",
                                        ",",         "-",         "!",
                                        "(",         ")",         "[",
                                        "]",         "cafe",      "caf\\u00e9",
                                        "##\\u00e9", "e\\u0301",  "\\u0301",
                                        "##\\u0301", "\\u00fc",   "##\\u00fcber",
                                        "\\u0430",   "##\\u0439", "\\u0438",
                                        "##\\u0438", "\\u4e2d",   "\\u56fd",
                                        "##\\u56fd", "\\u304b",   "##\\u304b",
                                        "\\u304c",   "\\u3099",   "\\u1100",
                                        "##\\u1161", "##\\u11a8", "\\uac01",
                                        "\\u0e01",   "\\u05d0",   "\\u0627",
                                        "\\u0905",   "##\\u093e", "\\ud83d\\ude00",
                                        "##\\u200d", "\\ufe0f",   "\\u2014",
                                        "\\ufffd",   "##\\ufffd", "\\u00df",
                                        "\\u03c3",   "##\\u03c2", "i",
                                        "##i",       "ab",        "##ab",
                                        "abc",       "##bcd"};

// tokenizer.json's members that hold the vocabulary: every ASCII letter and digit, alone and inside
// a word, behind the tokens above.
std::string Model(std::string_view settings) {
  std::string json = R"("model":{"type":"WordPiece","unk_token":"[UNK]",)";
  json += settings;
  json += R"("vocab":{)";
  size_t id = 0;
  const auto add = [&](const std::string& token) {
    json += (id == 0 ? "\"" : ",\"") + token + "\":" + std::to_string(id);
    ++id;
  };
  for (const std::string_view token : kTokens) add(std::string(token));
  for (const char c : std::string_view("abcdefghjklmnopqrstuvwxyz0123456789ABCXYZ")) {
    add(std::string(1, c));
    if (c != 's' && c != 't') add("##" + std::string(1, c));
  }
  return json + "}}";
}

std::string AddedToken(size_t id, std::string_view content, std::string_view true_flags) {
  std::string json = "{\"id\":" + std::to_string(id) + ",\"content\":\"" + std::string(content);
  json += '"';
  for (const std::string_view flag : {"special", "normalized", "single_word", "lstrip", "rstrip"}) {
    const bool on = true_flags.find(flag) != std::string_view::npos;
    json += ",\"" + std::string(flag) + "\":" + (on ? "true" : "false");
  }
  return json + "}";
}

std::string Special() {
  std::string json;
  for (size_t id = 0; id < 5; ++id)
    json += (id ? "," : "") + AddedToken(id, kTokens[id], "special");
  return json;
}

// Behind the special ones; ids go on where the vocabulary ends.
std::string Others(size_t id) {
  return "," + AddedToken(id, "<mask>", "special lstrip") + "," +
         AddedToken(id + 1, "<end>", "special rstrip") + "," +
         AddedToken(id + 2, "New York", "normalized single_word") + "," +
         AddedToken(id + 3, "\\u00c9t\\u00e9", "normalized lstrip rstrip") + "," +
         AddedToken(id + 4, "ing", "") + "," + AddedToken(id + 5, "ingots", "rstrip single_word");
}

std::string Bert(bool clean, bool chinese, std::string_view strip, bool lower) {
  const auto word = [](bool value) { return value ? "true" : "false"; };
  return std::string(R"({"type":"BertNormalizer","clean_text":)") + word(clean) +
         R"(,"handle_chinese_chars":)" + word(chinese) + R"(,"strip_accents":)" +
         std::string(strip) + R"(,"lowercase":)" + word(lower) + "}";
}

constexpr std::string_view kBertTemplate =
    R"({"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]})";
constexpr std::string_view kBertWords = R"({"type":"BertPreTokenizer"})";
constexpr std::string_view kBertModel =
    R"("continuing_subword_prefix":"##","max_input_chars_per_word":100,)";

Tokenizer Make(const std::string& added, std::string_view normalizer, std::string_view words,
               std::string_view post_processor, std::string_view model_settings) {
  std::string json = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  json += added;
  json.append(R"(],"normalizer":)").append(normalizer);
  json.append(R"(,"pre_tokenizer":)").append(words);
  json.append(R"(,"post_processor":)").append(post_processor);
  json += R"(,"decoder":null,)" + Model(model_settings) + "}";
  const Result<Tokenizer> tokenizer = internal::TokenizerFactory::FromJson(json);
  ENCORE_FUZZ_CHECK(tokenizer.ok(), tokenizer.status().message());
  return *tokenizer;
}

std::vector<Tokenizer> MakeAll() {
  std::vector<Tokenizer> all;
  const auto bert = [&all](const std::string& normalizer, const std::string& added = Special()) {
    all.push_back(Make(added, normalizer, kBertWords, kBertTemplate, kBertModel));
  };
  bert(Bert(true, true, "null", true));
  bert(Bert(true, true, "null", false));
  bert(Bert(false, false, "false", true));
  bert(Bert(true, false, "true", false));
  const size_t next = all[0].vocab_size();
  bert(Bert(true, true, "null", true), Special() + Others(next));
  bert(Bert(false, true, "false", false), Special() + Others(next));
  all.push_back(Make("", "null", "null", "null",
                     R"("continuing_subword_prefix":"##","max_input_chars_per_word":1000,)"));
  all.push_back(Make(Special() + Others(next),
                     R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"Lowercase"},)"
                     R"({"type":"StripAccents"}]})",
                     R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
                     R"({"type":"Whitespace"}]})",
                     kBertTemplate,
                     R"("continuing_subword_prefix":"##","max_input_chars_per_word":3,)"));
  return all;
}

}  // namespace

const std::vector<Tokenizer>& FixedTokenizers() {
  static const std::vector<Tokenizer>* const all = new std::vector<Tokenizer>(MakeAll());
  return *all;
}

}  // namespace encore::fuzz
