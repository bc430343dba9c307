// SPDX-License-Identifier: Apache-2.0
//
// CallStats and CallProgress of every call on texts.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/support/executors.h"
#include "tests/support/text_case.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> ManyTexts(size_t count) {
  const std::vector<std::string> few = TextCases::Read().texts;
  std::vector<std::string> many;
  while (many.size() < count) many.push_back(few[many.size() % few.size()]);
  return many;
}

size_t Total(const std::vector<size_t>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), size_t{0});
}

int64_t Sum(const CallStats& stats) {
  return stats.tokenizing + stats.embedding + stats.layers + stats.pooling + stats.waiting;
}

// The parts of a call are no more than all of it, and in one of several a good share of it: a
// thread may lose its core just outside of what a call counts.
template <typename Call>
void ExpectPartsOf(int64_t share, const Call& call) {
  CallStats stats;
  int64_t wall = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Clock::time_point begin = Clock::now();
    stats = call();
    wall = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    EXPECT_LE(Sum(stats), wall);
    if (Sum(stats) >= wall / share) return;
  }
  EXPECT_GE(Sum(stats), wall / share);
}

TextEncoder OpenOrFail(const std::string& folder, const OpenOptions& options = {}) {
  Result<TextEncoder> model = TextEncoder::Open(folder, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(CallStatsTest, TimesAddUpToTheCallsOnEveryExecutor) {
  const TextFolder folder;
  const TextEncoder model = OpenOrFail(folder.path());
  const std::vector<std::string> texts = ManyTexts(600);
  const Result<Embeddings> want = model.Encode(texts);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    CallStats stats;
    stats.texts = 7;  // of an earlier call
    const Result<Embeddings> found = model.Encode(texts, {.executor = executor, .stats = &stats});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(std::memcmp(found->vectors.data(), want->vectors.data(), want->vectors.size_bytes()),
              0);
    ExpectPartsOf(2, [&, &executor = executor] {
      CallStats of_call;
      EXPECT_TRUE(model.Encode(texts, {.executor = executor, .stats = &of_call}).ok());
      return of_call;
    });
    for (const int64_t time : {stats.tokenizing, stats.embedding, stats.layers, stats.pooling}) {
      EXPECT_GT(time, 0);
    }
    // A thread may lose its core in either for long, but not in all calls.
    for (int call = 0; call < 20 && stats.layers <= stats.embedding; ++call) {
      ASSERT_TRUE(model.Encode(texts, {.executor = executor, .stats = &stats}).ok());
    }
    EXPECT_GT(stats.layers, stats.embedding);
    EXPECT_EQ(stats.texts, texts.size());
    EXPECT_EQ(stats.tokens, Total(found->counts.tokens));
    EXPECT_GT(stats.scratch_bytes, stats.tokens);
    EXPECT_LT(stats.helpers, static_cast<size_t>(executor.threads()));
    if (executor.threads() == 1) {
      EXPECT_EQ(stats.waiting, 0);
    } else {
      EXPECT_GT(stats.waiting, 0);
    }
  }
}

// A pool's threads may come late to one call, but not to all.
TEST(CallStatsTest, CountsTheThreadsThatHelped) {
  const TextFolder folder;
  const TextEncoder model = OpenOrFail(folder.path());
  const std::vector<std::string> texts = ManyTexts(600);
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    size_t most = 0;
    const bool may_help = executor.threads() > 1 && name != "host loop 5";
    for (int call = 0; call < (may_help ? 200 : 2) && most == 0; ++call) {
      CallStats stats;
      ASSERT_TRUE(model.Encode(texts, {.executor = executor, .stats = &stats}).ok());
      most = std::max(most, stats.helpers);
    }
    EXPECT_EQ(most > 0, may_help);
  }
}

// Runs the call with stats and progress, which must fit each other.
void ExpectStats(
    const std::string& name, size_t texts, bool has_layers,
    const std::function<Status(CallStats*, std::function<void(const CallProgress&)>)>& call) {
  SCOPED_TRACE(name);
  CallStats stats;
  std::vector<CallProgress> seen;
  const std::thread::id caller = std::this_thread::get_id();
  ExpectPartsOf(4, [&] {
    seen.clear();
    const Status status = call(&stats, [&](const CallProgress& progress) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      seen.push_back(progress);
    });
    EXPECT_TRUE(status.ok()) << status;
    return stats;
  });
  EXPECT_EQ(stats.layers > 0, has_layers);
  EXPECT_GT(stats.tokenizing, 0);
  EXPECT_GT(stats.pooling, 0);
  EXPECT_EQ(stats.texts, texts);
  ASSERT_FALSE(seen.empty());
  size_t before = 0;
  for (const CallProgress& progress : seen) {
    EXPECT_GT(progress.texts, before);
    before = progress.texts;
    EXPECT_EQ(progress.all_texts, texts);
    EXPECT_LE(progress.tokens, progress.all_tokens);
  }
  EXPECT_EQ(seen.back().texts, texts);
  EXPECT_EQ(seen.back().tokens, seen.back().all_tokens);
  EXPECT_EQ(seen.back().tokens, stats.tokens);
  EXPECT_GT(stats.tokens, 0u);
  EXPECT_GT(stats.scratch_bytes, 0u);
}

template <typename Options>
Options Watched(CallStats* stats, const std::function<void(const CallProgress&)>& progress) {
  Options options;
  options.batch_tokens = 64;
  options.stats = stats;
  options.progress = progress;
  return options;
}

#define ENCORE_CALL(Options, expression)                                            \
  [&](CallStats* stats, const std::function<void(const CallProgress&)>& progress) { \
    const auto options = Watched<Options>(stats, progress);                         \
    return (expression).status();                                                   \
  }

TEST(CallStatsTest, OfEveryCallOfAnEncoder) {
  const std::vector<std::string> texts = ManyTexts(40);
  const TextFolder base;
  const TextEncoder dense = OpenOrFail(base.path());
  const std::vector<std::vector<int32_t>> ids = {{1, 2, 3}, {4, 5}};
  ExpectStats("Encode", 40, true, ENCORE_CALL(EncodeOptions, dense.Encode(texts, options)));
  ExpectStats("EncodeIds", 2, true, ENCORE_CALL(EncodeOptions, dense.EncodeIds(ids, options)));
  ExpectStats("EncodeTokens", 1, true,
              ENCORE_CALL(EncodeOptions, dense.EncodeTokens(texts[0], options)));
  const TextFolder ranks("reranker");
  const TextEncoder ranker = OpenOrFail(ranks.path());
  ExpectStats("Score", 40, true, ENCORE_CALL(ScoreOptions, ranker.Score("who?", texts, options)));
  ExpectStats("Classify", 40, true, ENCORE_CALL(ScoreOptions, ranker.Classify(texts, options)));
  ExpectStats("Classify pairs", 40, true,
              ENCORE_CALL(ScoreOptions, ranker.Classify(texts, texts, options)));
  ExpectStats("ClassifyIds", 2, true,
              ENCORE_CALL(ScoreOptions, ranker.ClassifyIds(ids, {}, options)));
  const TextEncoder names = OpenOrFail(FolderOf("ner_bert"));
  ExpectStats("FindEntities", 40, true,
              ENCORE_CALL(LabelOptions, names.FindEntities(texts, options)));
  ExpectStats("LabelTokens", 1, true,
              ENCORE_CALL(LabelOptions, names.LabelTokens(texts[0], options)));
  const TextEncoder masked = OpenOrFail(FolderOf("splade_bert"), {.language_head = true});
  const std::vector<size_t> first = {0};
  ExpectStats("PredictTokens", 1, true,
              ENCORE_CALL(LabelOptions, masked.PredictTokens(texts[0], first, options)));
  ExpectStats("EncodeSparse", 40, true,
              ENCORE_CALL(SparseOptions, masked.EncodeSparse(texts, options)));
  const TextEncoder m3 = OpenOrFail(FolderOf("m3"));
  ExpectStats("EncodeSparse by tokens", 40, true,
              ENCORE_CALL(SparseOptions, m3.EncodeSparse(texts, options)));
  const auto late = MultiVectorEncoder::Open(std::string(ENCORE_TEST_DATA_DIR) + "/late/stanford");
  ASSERT_TRUE(late.ok()) << late.status();
  ExpectStats("multi vectors", 40, true,
              ENCORE_CALL(EncodeOptions, late->Encode(texts, options, TextTask::kDocument)));
}

// The head's tasks make products of their own, whose time is not waited for.
TEST(CallStatsTest, NestedProductsCountOnce) {
  const TextEncoder masked = OpenOrFail(FolderOf("splade_bert"), {.language_head = true});
  const std::vector<std::string> texts = ManyTexts(100);
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    CallStats stats;
    const Clock::time_point begin = Clock::now();
    ASSERT_TRUE(masked.EncodeSparse(texts, {.executor = executor, .stats = &stats}).ok());
    const int64_t wall =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    EXPECT_GE(stats.waiting, 0);
    EXPECT_LT(stats.pooling, wall);
  }
}

TEST(CallStatsTest, WithoutLayersThereIsNoTimeInThem) {
  const std::vector<std::string> texts = ManyTexts(600);
  const TextEncoder means = OpenOrFail(FolderOf("model2vec"));
  ExpectStats("static embeddings", 600, false,
              ENCORE_CALL(EncodeOptions, means.Encode(texts, options)));
  const TextEncoder router = OpenOrFail(FolderOf("router"));
  ExpectStats("sparse weights", 600, false, [&](CallStats* stats, const auto& progress) {
    auto options = Watched<SparseOptions>(stats, progress);
    options.task = "query";
    return router.EncodeSparse(texts, options).status();
  });
}

TEST(CallStatsTest, ProgressMayStopTheCall) {
  const TextFolder folder;
  const TextEncoder model = OpenOrFail(folder.path());
  const std::vector<std::string> texts = ManyTexts(200);
  for (const auto& named : Executors()) {
    const Executor& executor = named.executor;
    SCOPED_TRACE(named.name);
    std::atomic<bool> stop = false;
    CallStats stats;
    size_t calls = 0;
    const auto status =
        model
            .Encode(texts, {.executor = executor.WithStop(&stop),
                            .batch_tokens = 64,
                            .stats = &stats,
                            .progress =
                                [&](const CallProgress& progress) {
                                  calls++;
                                  EXPECT_LT(progress.tokens, progress.all_tokens);
                                  // Another call of the same model and threads.
                                  EXPECT_TRUE(model.Encode({"a"}, {.executor = executor}).ok());
                                  stop = calls == 3;
                                }})
            .status();
    EXPECT_EQ(status.code(), ErrorCode::kCancelled) << status;
    EXPECT_EQ(calls, 3u);
    EXPECT_GT(stats.texts, 0u);
    EXPECT_LT(stats.texts, texts.size());
  }
}

TEST(CallStatsTest, OfAFailedCallAsFarAsItCame) {
  const TextFolder folder;
  const TextEncoder model = OpenOrFail(folder.path());
  CallStats stats;
  stats.layers = 5;
  EXPECT_FALSE(model.Encode({"a", "\xFF"}, {.stats = &stats}).ok());
  EXPECT_GT(stats.tokenizing, 0);
  EXPECT_EQ(stats.layers, 0);
  EXPECT_EQ(stats.texts, 0u);
}

}  // namespace
}  // namespace encore
