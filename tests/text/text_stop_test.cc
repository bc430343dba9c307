// SPDX-License-Identifier: Apache-2.0
//
// Calls on texts that are stopped, at any moment and on every executor; and the ones after them.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/support/executors.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> TextsToStop() {
  const std::vector<std::string> few = TextCases::Read().texts;
  std::vector<std::string> many;
  while (many.size() < 600) many.insert(many.end(), few.begin(), few.end());
  return many;
}

// Of models that have computed nothing yet, so that no earlier call's results are there.
TEST(TextStopTest, EveryCallReturnsTheStop) {
  const std::vector<std::string> texts = TextsToStop();
  const TextFolder base;
  const TextFolder reranker("reranker");
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    std::atomic<bool> stop = true;
    const Executor stopped = executor.WithStop(&stop);
    const Result<TextEncoder> model =
        TextEncoder::Open(base.path(), {.executor = stopped});  // opening is not stopped
    ASSERT_TRUE(model.ok()) << model.status();
    const EncodeOptions encode{.executor = stopped};
    EXPECT_EQ(model->Encode(texts, encode).status().code(), ErrorCode::kCancelled);
    EXPECT_EQ(model->EncodeTokens(texts[0], encode).status().code(), ErrorCode::kCancelled);
    EXPECT_EQ(model->Encode({texts[0]}, encode).status().code(), ErrorCode::kCancelled);
    const TextEncoder scores = Taken(TextEncoder::Open(reranker.path()));
    EXPECT_EQ(scores.Score("a query", texts, {.executor = stopped}).status().code(),
              ErrorCode::kCancelled);
    const TextEncoder m3 = Taken(TextEncoder::Open(FolderOf("m3")));
    EXPECT_EQ(m3.EncodeSparse(texts, {.executor = stopped}).status().code(), ErrorCode::kCancelled);
    const TextEncoder names = Taken(TextEncoder::Open(FolderOf("ner_bert")));
    EXPECT_EQ(names.FindEntities(texts, {.executor = stopped}).status().code(),
              ErrorCode::kCancelled);
    const MultiVectorEncoder late =
        Taken(MultiVectorEncoder::Open(std::string(ENCORE_TEST_DATA_DIR) + "/late/stanford"));
    EXPECT_EQ(late.Encode(texts, encode, TextTask::kDocument).status().code(),
              ErrorCode::kCancelled);
  }
}

TEST(TextStopTest, StoppedAtAnyMomentTheNextCallIsRight) {
  const TextFolder folder;
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  const std::vector<std::string> texts = TextsToStop();
  const Embeddings want = Taken(model.Encode(texts));
  const auto same = [&](const Result<Embeddings>& found) {
    return found.ok() &&
           std::memcmp(found->vectors.data(), want.vectors.data(), want.vectors.size_bytes()) == 0;
  };
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    int stopped = 0;
    for (int step = 0; step < (kSlow ? 3 : 8); ++step) {
      const auto deadline = Clock::now() + std::chrono::microseconds(700 * step);
      const Result<Embeddings> found =
          model.Encode(texts, {.executor = executor.WithDeadline(deadline)});
      if (found.ok()) {
        EXPECT_TRUE(same(found));
      } else {
        EXPECT_EQ(found.status().code(), ErrorCode::kDeadlineExceeded) << found.status();
        stopped++;
      }
      ASSERT_TRUE(same(model.Encode(texts, {.executor = executor})));
    }
    EXPECT_GT(stopped, 0);
  }
}

}  // namespace
}  // namespace encore
