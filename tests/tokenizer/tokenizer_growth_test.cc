// SPDX-License-Identifier: Apache-2.0
//
// Tokenizing takes time that grows like the text: every kind of tokenizer, on texts that repeat
// what makes some step look far ahead or back. Time is that of the thread, the least of some tries.

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/results.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

using nlohmann::json;

// Three doublings: eight times the time where it is linear, 64 times where it is quadratic. Caches
// and a heap's logarithm are in the bound.
constexpr size_t kShort = ENCORE_TEST_ASAN || ENCORE_TEST_TSAN ? 1024 : size_t{16} << 10;
constexpr size_t kTimes = 8;
constexpr double kBound = 18;
constexpr int kTries = 6;

// clang-format off
constexpr std::string_view kRepeated[] = {
    "\u2581", "word  word  ", " ", "  a", "\t", "\n", "\r\n", " \n", " \t", "a", "ab ",
    "a b\u2581", "\u2581a", " \u2581", "\u2581 ", "\u2581\u2581b ", "1", "!", "a-", "' ", "'s",
    "\u00e9", "e\u0301", "\u0301\u0323", "\u0344", "\u0130", "\ufdfa", "\u4e2d",
    "\u1100\u1161\u11a8", "\u0e33", "\u0915\u094d", "\U0001F468\u200d", "\U0001F1E9", "\u00ad",
    "\ufffd", "\u0378", {"\0", 1}, "<", "<s>", " <mask> ", "[SEP]", "##", "thequickbrownfox",
    "\n\n\n\n\n\n"};
// clang-format on

std::string Repeated(std::string_view part, size_t size) {
  std::string text;
  while (text.size() < size) text += part;
  return text;
}

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double SecondsOf(const Tokenizer& tokenizer, const std::string& text,
                 const TokenizeOptions& options, Tokens* tokens) {
  const double begin = ThreadSeconds();
  EXPECT_TRUE(tokenizer.Encode(text, tokens, options).ok());
  return ThreadSeconds() - begin;
}

void ExpectLinear(const Tokenizer& tokenizer, std::string_view part, const TokenizeOptions& options,
                  Tokens* tokens) {
  const std::string short_text = Repeated(part, kShort),
                    long_text = Repeated(part, kShort * kTimes);
  double least_short = std::numeric_limits<double>::infinity(), least_long = least_short;
  for (int i = 0; i < kTries; ++i) {
    least_short = std::min(least_short, SecondsOf(tokenizer, short_text, options, tokens));
    least_long = std::min(least_long, SecondsOf(tokenizer, long_text, options, tokens));
    if (least_long < kBound * least_short) return;
  }
  ADD_FAILURE() << json(part).dump() << (options.offsets ? " with offsets" : "") << ": "
                << least_long * 1e3 << " ms for " << kTimes << " times what takes "
                << least_short * 1e3 << " ms";
}

json Parsed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// Every shape of the fixtures, and what no fixture has.
std::map<std::string, json> Kinds() {
  std::map<std::string, json> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(ENCORE_TEST_DATA_DIR "/tokenizer")) {
    kinds[entry.path().stem().string()] = Parsed(entry.path())["tokenizer"];
  }
  json white = kinds.at("shape_t5");
  const auto token = [&](const std::string& content, bool lstrip, bool rstrip) {
    const size_t id = white["model"]["vocab"].size();
    white["model"]["vocab"].push_back({content, -1.0});
    white["added_tokens"].push_back({{"id", id},
                                     {"content", content},
                                     {"special", false},
                                     {"normalized", false},
                                     {"single_word", false},
                                     {"lstrip", lstrip},
                                     {"rstrip", rstrip}});
  };
  token(" ", false, true);
  token("\t", true, false);
  token("\n", true, true);
  kinds["tokens of white space"] = white;
  json split = kinds.at("shape_bge_m3");
  split["normalizer"] = nullptr;
  split["pre_tokenizer"]["prepend_scheme"] = "first";
  kinds["marks as they come"] = split;
  return kinds;
}

TEST(TokenizerGrowthTest, TimeGrowsLikeTheText) {
  if (kSanitized) GTEST_SKIP() << "times of a sanitizer";
  const std::map<std::string, json> kinds = Kinds();
  ASSERT_GT(kinds.size(), 25u);
  Tokens tokens;
  for (const auto& [name, file] : kinds) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = Taken(internal::TokenizerFactory::FromJson(file.dump()));
    // With offsets or without, by turns.
    bool offsets = false;
    for (std::string_view part : kRepeated) {
      ExpectLinear(tokenizer, part, {.max_length = 128, .offsets = offsets}, &tokens);
      offsets = !offsets;
    }
  }
}

}  // namespace
}  // namespace encore
