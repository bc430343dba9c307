// SPDX-License-Identifier: Apache-2.0
//
// Texts in the order of their bytes: those that differ within eight bytes, behind them, and by a
// zero at the end.

#include "engine/tokenizer/sort_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace encore::inline v0_1::internal {
namespace {

TEST(SortTexts, HasTheOrderOfPairs) {
  std::mt19937 random(7);
  std::set<std::string> drawn = {"", std::string(1, '\0'), std::string(8, '\0'),
                                 std::string(9, '\0')};
  while (drawn.size() < 3000) {
    std::string text(random() % 2 == 0 ? "" : "of eight");
    for (size_t size = random() % 12; size > 0; --size) text += "\0a\x7F\x80\xFF"[random() % 5];
    drawn.insert(text);
  }
  std::vector<std::pair<std::string_view, uint32_t>> texts;
  for (const std::string& text : drawn) {
    for (size_t copy = random() % 3; copy > 0; --copy) texts.emplace_back(text, random() % 100);
  }
  std::shuffle(texts.begin(), texts.end(), random);
  auto wanted = texts;
  std::sort(wanted.begin(), wanted.end());
  ASSERT_NE(texts, wanted);
  SortTexts(&texts);
  EXPECT_EQ(texts, wanted);
  SortTexts(&texts);
  EXPECT_EQ(texts, wanted);
}

}  // namespace
}  // namespace encore::internal
