// SPDX-License-Identifier: Apache-2.0
//
// The bits of a text's vector depend on that text alone: not on the other texts, their order, the
// size of batches, the executor, or what was computed before.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <random>
#include <thread>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

// Texts of all lengths, some of them equal, in no order.
std::vector<std::string> ManyTexts(size_t count) {
  const std::vector<std::string> words = {"the",     "harbour",     "tea",   "Bread",
                                          "letters", "in",          "1998",  "x",
                                          "boats",   "caf\xC3\xA9", "snow,", "?"};
  std::mt19937 random(5);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += words[random() % words.size()] + " ";
    texts.push_back(text);
  }
  return texts;
}

std::vector<float> Row(const Tensor& tensor, size_t row) {
  const size_t width = tensor.shape()[1];
  const auto* data = static_cast<const float*>(tensor.data()) + row * width;
  return std::vector<float>(data, data + width);
}

// Modes that read all rows, the first, and the last; with and without dense layers.
class TextBitsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const TextCases all = TextCases::Read();
    folder_ = MakeFolder(all.Find(GetParam()));
    TextEncoder model = Taken(TextEncoder::Open(folder_->path()));
    model_ = std::make_unique<TextEncoder>(model);
    texts_ = ManyTexts(kSlow ? 40 : 200);  // 200 take minutes there
    for (const std::string& text : texts_) {
      const Embeddings alone = Taken(model_->Encode({text}));
      alone_.push_back(Row(alone.vectors, 0));
    }
  }

  void ExpectTheSame(const std::vector<size_t>& order, const EncodeOptions& options) {
    std::vector<std::string_view> texts;
    for (const size_t i : order) texts.push_back(texts_[i]);
    const Embeddings all = Taken(model_->Encode(texts, options));
    for (size_t i = 0; i < order.size(); ++i) {
      ASSERT_TRUE(SameBits(Row(all.vectors, i), alone_[order[i]])) << "text " << order[i];
    }
  }

  std::vector<size_t> Order(unsigned seed) const {
    std::vector<size_t> order(texts_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937 random(seed);
    if (seed > 0) std::shuffle(order.begin(), order.end(), random);
    return order;
  }

  std::unique_ptr<TextFolder> folder_;
  std::unique_ptr<TextEncoder> model_;
  std::vector<std::string> texts_;
  std::vector<std::vector<float>> alone_;
};

TEST_P(TextBitsTest, AloneAsInAnyBatch) {
  for (const size_t batch_tokens : {1, 7, 64, 500, 100000}) {
    ExpectTheSame(Order(static_cast<unsigned>(batch_tokens)), {.batch_tokens = batch_tokens});
  }
}

TEST_P(TextBitsTest, OnAnyExecutor) {
  const Executors executors;
  for (const Executors::Named& named : executors) {
    SCOPED_TRACE(named.name);
    ExpectTheSame(Order(3), {.executor = named.executor});
    ExpectTheSame(Order(4), {.executor = named.executor, .batch_tokens = 90});
    ExpectTheSame({17}, {.executor = named.executor});
  }
}

TEST_P(TextBitsTest, FromSeveralThreadsAtOnce) {
  std::atomic<size_t> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<size_t> order = Order(t + 10);
      for (size_t i = 0; i < order.size(); i += 1 + t) {
        const std::string_view text = texts_[order[i]];
        const Result<Embeddings> result = model_->Encode({text});
        if (!result.ok() || !SameBits(Row(result->vectors, 0), alone_[order[i]])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_P(TextBitsTest, WhateverTheCallersRoundingMode) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  std::vector<std::string_view> texts(texts_.begin(), texts_.end());
  const Result<Embeddings> all = model_->Encode(texts);
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  ASSERT_TRUE(all.ok()) << all.status().message();
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_TRUE(SameBits(Row(all->vectors, i), alone_[i])) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, TextBitsTest,
                         testing::Values("pool_all", "pool_cls_token", "pool_lasttoken",
                                         "dense_dense_normalize", "prompt_name"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TextBitsOfScoresTest, AloneAsInAnyBatch) {
  const TextFolder folder("reranker");
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  const std::vector<std::string> documents = ManyTexts(100);
  const std::string query = "Where is the bread?";
  ThreadPool pool = *ThreadPool::Create({.threads = 3});
  for (const size_t batch_tokens : {1, 40, 300, 0}) {
    const Scores all = Taken(
        model.Score(query, documents, {.executor = pool.executor(), .batch_tokens = batch_tokens}));
    for (size_t i = 0; i < documents.size(); ++i) {
      const Scores alone = Taken(model.Score(query, {documents[i]}));
      EXPECT_TRUE(SameBits({&all.values[i], 1}, alone.values)) << i;
    }
  }
}

// More texts than are tokenized at once, and the first of two errors.
TEST(TextStreamTest, ManyTextsAreTakenInChunks) {
  const TextFolder folder;
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  std::vector<std::string> texts(20000, "tea");
  texts[9000] = "the bread";
  texts[19999] = "the bread";
  ThreadPool pool = *ThreadPool::Create({.threads = 2});
  const EncodeOptions options{.executor = pool.executor()};
  const Embeddings all = Taken(model.Encode(texts, options));
  const std::vector<float> tea = Row((*model.Encode({"tea"})).vectors, 0);
  const std::vector<float> bread = Row((*model.Encode({"the bread"})).vectors, 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool other = i == 9000 || i == 19999;
    ASSERT_TRUE(SameBits(Row(all.vectors, i), other ? bread : tea)) << i;
    ASSERT_EQ(all.counts.tokens[i], all.counts.tokens[other ? 9000 : 0]);
  }
  texts[15003] = "\xFF";
  texts[15004] = "\xFF";
  texts[18000] = "\xFF";
  for (int run = 0; run < 5; ++run) {
    EXPECT_TRUE(FailsWith(model.Encode(texts, options), {"texts[15003]"}, kAnyCode));
  }
}

}  // namespace
}  // namespace encore
