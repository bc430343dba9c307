// SPDX-License-Identifier: Apache-2.0
//
// Difficult texts through small tokenizers: ids, type ids, offsets and what was cut are those of
// Hugging Face's `tokenizers` (tests/data/tokenizer/, made by
// tests/make/make_tokenizer_fixtures.py).

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
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

json ReadJson(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// Of a pair: the second text's tokens are the first ones of those that it has alone, as many as are
// not cut. The first text's are before or behind them.
void ExpectSecond(const Tokenizer& tokenizer, const json& wanted, TokenizeOptions options,
                  const Tokens& tokens) {
  Tokens first;
  Tokens second;
  options.max_length = 0;
  options.add_special_tokens = false;
  options.offsets = true;
  ASSERT_TRUE(tokenizer.Encode(wanted["text"].get<std::string>(), &first, options).ok());
  ASSERT_TRUE(tokenizer.Encode(wanted["pair"].get<std::string>(), &second, options).ok());
  ASSERT_LE(tokens.second_begin, tokens.second_end) << wanted;
  ASSERT_LE(tokens.second_end, tokens.ids.size()) << wanted;
  const size_t kept = tokens.second_end - tokens.second_begin;
  ASSERT_LE(kept, second.ids.size()) << wanted;
  const auto is_at = [](const auto& part, size_t count, const auto& all, size_t at) {
    return std::equal(part.begin(), part.begin() + static_cast<ptrdiff_t>(count),
                      all.begin() + static_cast<ptrdiff_t>(at));
  };
  EXPECT_TRUE(is_at(second.ids, kept, tokens.ids, tokens.second_begin)) << wanted;
  EXPECT_TRUE(is_at(second.offsets, kept, tokens.offsets, tokens.second_begin)) << wanted;
  const size_t of_first = first.ids.size() + second.ids.size() - tokens.cut - kept;
  EXPECT_LE(of_first, first.ids.size()) << wanted;
  EXPECT_LE(of_first, std::max(tokens.second_begin, tokens.ids.size() - tokens.second_end));
}

void ExpectCase(const Tokenizer& tokenizer, const json& wanted, bool offsets, Tokens* tokens) {
  const TokenizeOptions options = {.max_length = wanted.value("max_length", size_t{0}),
                                   .add_special_tokens = wanted.value("special", true),
                                   .plain_text = wanted.value("plain", false),
                                   .offsets = offsets};
  const std::string text = wanted["text"];
  const std::string pair = wanted.value("pair", "");
  const Status status = wanted.contains("pair") ? tokenizer.EncodePair(text, pair, tokens, options)
                                                : tokenizer.Encode(text, tokens, options);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tokens->ids, wanted["ids"].get<std::vector<int32_t>>()) << wanted;
  EXPECT_EQ(tokens->type_ids, wanted["types"].get<std::vector<uint8_t>>()) << wanted;
  EXPECT_EQ(tokens->cut, wanted["cut"].get<size_t>()) << wanted;
  std::vector<ByteRange> places;
  for (const json& place : wanted["offsets"]) places.push_back({place[0], place[1]});
  if (!offsets) places.clear();
  EXPECT_EQ(tokens->offsets, places) << wanted;
  if (!wanted.contains("pair")) {
    EXPECT_EQ(tokens->second_end, 0u) << wanted;
  } else if (offsets) {
    ExpectSecond(tokenizer, wanted, options, *tokens);
  }
}

TEST(TokenizerFixtureTest, EverythingIsAsTokenizersHasIt) {
  size_t cases = 0;
  Tokens tokens;
  for (const auto& entry : std::filesystem::directory_iterator(ENCORE_TEST_DATA_DIR "/tokenizer")) {
    const json file = ReadJson(entry.path());
    SCOPED_TRACE(entry.path().filename().string());
    const Tokenizer tokenizer = Taken(internal::TokenizerFactory::FromJson(
        file["tokenizer"].dump(), {.lowercase = file["lowercase"]}));
    for (const json& wanted : file["cases"]) {
      ExpectCase(tokenizer, wanted, false, &tokens);
      ExpectCase(tokenizer, wanted, true, &tokens);
      ++cases;
    }
  }
  EXPECT_GT(cases, 1900u);  // all of them were there
}

}  // namespace
}  // namespace encore
