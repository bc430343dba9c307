// SPDX-License-Identifier: Apache-2.0
//
// What is read out of attention weights, on weights made by hand.

#include "tools/encore/model_attention.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/encore/attend_report.h"

namespace encore::tool {
namespace {

// One layer of two heads over these words between [CLS] and [SEP]; words from `second` on are the
// other text.
ModelAttention Made(const std::vector<std::string>& words, size_t second = 1000) {
  ModelAttention attention;
  attention.model = "made";
  attention.text = "text";
  attention.tokens.push_back({"[CLS]", 100, true, false});
  for (size_t i = 0; i < words.size(); ++i) {
    attention.tokens.push_back({words[i], static_cast<int32_t>(words[i][0]), false, i >= second});
  }
  attention.tokens.push_back({"[SEP]", 101, true, false});
  attention.heads = 2;
  const size_t n = attention.size();
  Result<Tensor> weights = Tensor::Create(DType::kF32, {size_t{2}, n, n});
  EXPECT_TRUE(weights.ok());
  attention.weights.push_back(*std::move(weights));
  return attention;
}

void Set(ModelAttention* attention, size_t head, size_t from, size_t to, float weight) {
  attention->weights[0].View<float>()(head, from, to) = weight;
}

double ShareOf(const AttentionHabits& habits, const std::vector<double>& shares,
               const std::string& kind) {
  for (size_t k = 0; k < habits.kinds.size(); ++k) {
    if (habits.kinds[k] == kind) return shares[k];
  }
  ADD_FAILURE() << "no kind " << kind;
  return -1;
}

TEST(AttentionHabitsTest, EveryTokenIsOfOneKind) {
  // [CLS] a b a [SEP]: 0 1 2 3 4
  ModelAttention attention = Made({"a", "b", "a"});
  for (size_t from = 0; from < 5; ++from) Set(&attention, 1, from, 4, 1);  // all to [SEP]
  // Head 1 by another pattern: a -> itself and the next, b -> previous, a(3) -> a(1) and [CLS].
  Set(&attention, 0, 0, 2, 1);  // a special token's row does not count
  Set(&attention, 0, 1, 1, 0.75f);
  Set(&attention, 0, 1, 2, 0.25f);
  Set(&attention, 0, 2, 1, 1);
  Set(&attention, 0, 3, 1, 0.5f);
  Set(&attention, 0, 3, 0, 0.5f);
  Set(&attention, 0, 4, 4, 1);
  const AttentionHabits habits = FindHabits(attention);
  // "other words" and "other text" are nobody's here.
  EXPECT_EQ(habits.kinds, (std::vector<std::string>{"[CLS]", "[SEP]", "itself", "previous", "next",
                                                    "same word"}));
  const std::vector<double>& head = habits.heads[0][0];
  EXPECT_DOUBLE_EQ(ShareOf(habits, head, "[CLS]"), 0.5 / 3);
  EXPECT_DOUBLE_EQ(ShareOf(habits, head, "itself"), 0.75 / 3);
  EXPECT_DOUBLE_EQ(ShareOf(habits, head, "previous"), 1.0 / 2);  // the first word has none
  EXPECT_DOUBLE_EQ(ShareOf(habits, head, "next"), 0.25 / 2);
  EXPECT_DOUBLE_EQ(ShareOf(habits, head, "same word"), 0.5 / 2);
  EXPECT_DOUBLE_EQ(ShareOf(habits, habits.heads[0][1], "[SEP]"), 1);
  // A layer's shares are those of all weight.
  EXPECT_DOUBLE_EQ(ShareOf(habits, habits.layers[0], "[SEP]"), 0.5);
  EXPECT_DOUBLE_EQ(ShareOf(habits, habits.layers[0], "previous"), 1.0 / 6);
  double sum = 0;
  for (double share : habits.layers[0]) sum += share;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(AttentionHabitsTest, ATextOfAPairIsTold) {
  ModelAttention attention = Made({"a", "b", "c", "d"}, 2);
  attention.pair = true;
  for (size_t from = 0; from < 6; ++from) {
    Set(&attention, 0, from, 0, 1);
    Set(&attention, 1, from, from <= 2 ? 4 : 1, 1);  // to the far word of the other text
  }
  const AttentionHabits habits = FindHabits(attention);
  // b and c are next to each other: a neighbour comes before the other text.
  EXPECT_DOUBLE_EQ(ShareOf(habits, habits.heads[0][1], "other text"), 1);
  EXPECT_EQ(HeadsWithHabit(habits, 0, 0.5, 9).size(), 1u);  // [CLS], by the first head
  EXPECT_EQ(HeadsWithHabit(habits, 0, 0.0, 9).size(), 2u);
  EXPECT_EQ(HeadsWithHabit(habits, 0, 0.0, 1)[0].head, 0u);
}

TEST(AttentionHabitsTest, LinksAreBetweenWords) {
  ModelAttention attention = Made({"a", "b", "c"});
  Set(&attention, 0, 1, 1, 0.9f);  // itself
  Set(&attention, 0, 1, 0, 0.8f);  // special
  Set(&attention, 0, 0, 2, 0.8f);
  Set(&attention, 0, 3, 1, 0.4f);
  Set(&attention, 0, 1, 2, 0.5f);
  const std::vector<Link> links = StrongestLinks(attention, attention.layer(0)[0], 2);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].from, 1u);
  EXPECT_EQ(links[0].to, 2u);
  EXPECT_EQ(links[1].from, 3u);
  EXPECT_EQ(links[1].to, 1u);
  const Tensor mean = MeanOfHeads(attention.layer(0));
  EXPECT_EQ(mean.View<float>()(1, 2), 0.25f);
}

TEST(AttentionHabitsTest, NoWordsNoKinds) {
  const ModelAttention attention = Made({});
  const AttentionHabits habits = FindHabits(attention);
  EXPECT_TRUE(habits.kinds.empty());
  EXPECT_EQ(ModelAttentionToJson(attention, habits, {})["weights"].size(), 1u);
}

TEST(ModelAttentionTest, LabelsThatComeAgainAreNumbered) {
  EXPECT_EQ(Made({"a", "b", "a", "a"}).Labels(),
            (std::vector<std::string>{"[CLS]", "a", "b", "a(2)", "a(3)", "[SEP]"}));
}

}  // namespace
}  // namespace encore::tool
