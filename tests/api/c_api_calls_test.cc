// SPDX-License-Identifier: Apache-2.0
//
// What C's calls are given since version 8: threads of the host's or with names and cores, stats,
// progress, background; and the model's owners and memory.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/c_api.h"
#include "encore/cpu.h"
#include "encore/text_encoder.h"
#include "tests/api/c_api_case.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

std::vector<std::string> SomeTexts() {
  std::vector<std::string> texts = TextCases::Read().texts;
  while (texts.size() < 60) texts.push_back(texts[texts.size() / 2]);
  return texts;
}

class CApiCallsTest : public CApiTest {
 protected:
  void SetUp() override {
    CApiTest::SetUp();
    texts_ = SomeTexts();
    views_ = Views(texts_);
    vectors_.resize(texts_.size() * kD);
  }
  encore_status Encode(const encore_model* model, const encore_call_options* call = nullptr,
                       size_t batch_tokens = 0) {
    auto options = Sized<encore_encode_options>();
    options.call = call;
    options.batch_tokens = batch_tokens;
    return encore_encode(model, views_.data(), views_.size(), &options, vectors_.data(),
                         vectors_.size(), nullptr, nullptr);
  }
  // The bits of the C++ interface.
  void ExpectRight() const {
    const auto model = TextEncoder::Open(folder());
    ASSERT_TRUE(model.ok()) << model.status();
    const auto found = model->Encode(texts_);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(std::memcmp(vectors_.data(), found->vectors.data(), vectors_.size() * 4), 0);
  }

  std::vector<std::string> texts_;
  std::vector<encore_text> views_;
  std::vector<float> vectors_;
};

// A host's pool of no threads.
struct Loop {
  std::atomic<int> loops{0};
  std::atomic<size_t> most{0};
  static void Run(void* pool, size_t count, void (*body)(void*, size_t), void* context) {
    Loop& self = *static_cast<Loop*>(pool);
    self.loops++;
    self.most = std::max(self.most.load(), count);
    for (size_t i = 0; i < count; ++i) body(context, i);
  }
};

TEST_F(CApiCallsTest, TheHostsLoopRunsEverything) {
  Loop loop;
  auto options = Sized<encore_open_options>();
  options.threads = 3;
  options.parallel_for = Loop::Run;
  options.pool = &loop;
  const Model model(folder(), &options);
  const int before = loop.loops;
  ASSERT_EQ(Encode(model), ENCORE_OK) << encore_last_error();
  ExpectRight();
  EXPECT_GT(loop.loops, before);
  EXPECT_EQ(loop.most, 3u);

  encore_model* none = nullptr;
  options.thread_name = "mine";
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"parallel_for", "thread_name"});
  options.thread_name = nullptr;
  options.threads = -1;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"threads", "-1"});
}

struct Started {
  std::atomic<int> sum{0};
  std::string name;
  static void Run(void* context, int32_t thread) {
    Started& self = *static_cast<Started*>(context);
#if defined(__linux__)
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    self.name = name;
#endif
    self.sum += thread;
  }
};

TEST_F(CApiCallsTest, ThreadsHaveANameCoresAndAStart) {
  Started started;
  auto options = Sized<encore_open_options>();
  options.threads = 2;
  options.thread_name = "embed";
  options.on_start = Started::Run;
  options.on_start_context = &started;
  {
    const Model model(folder(), &options);
    ASSERT_EQ(Encode(model), ENCORE_OK) << encore_last_error();
    ExpectRight();
  }
  EXPECT_EQ(started.sum, 1);
#if defined(__linux__)
  EXPECT_EQ(started.name, "embed");
#endif
  const int32_t cores[] = {1 << 20, 0};
  encore_model* none = nullptr;
  options.cores = cores;
  options.core_count = 1;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"cores[0]", "1048576"});
  options.core_count = 2;
  options.threads = 1;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"cores", "2"});
  options.cores = nullptr;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"cores", "NULL"});
}

TEST_F(CApiCallsTest, WeightsAreCopiedAndMatricesKept) {
  auto options = Sized<encore_open_options>();
  options.precision = ENCORE_PRECISION_INT8;
  const size_t keep[] = {0, 2, 1, 3};
  options.keep = keep;
  options.keep_count = 2;
  options.copy_weights = 1;
  const Model model(folder(), &options);
  ASSERT_EQ(Encode(model), ENCORE_OK) << encore_last_error();
  const auto expected = TextEncoder::Open(
      folder(), {.precision = Precision::kInt8,
                 .keep = {{0, LayerMatrix::kLinear1}, {1, LayerMatrix::kLinear2}}});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto found = expected->Encode(texts_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(std::memcmp(vectors_.data(), found->vectors.data(), vectors_.size() * 4), 0);
  const auto all = TextEncoder::Open(folder(), {.precision = Precision::kInt8});
  ASSERT_TRUE(all.ok()) << all.status();
  const auto without = all->Encode(texts_);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_NE(std::memcmp(vectors_.data(), without->vectors.data(), vectors_.size() * 4), 0);
  // A copied model does not look at the file again.
  folder_.Write("model.safetensors", "nothing");
  EXPECT_EQ(Encode(model), ENCORE_OK) << encore_last_error();

  encore_model* none = nullptr;
  const size_t wrong[] = {0, 4};
  options.keep = wrong;
  options.keep_count = 1;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"keep[0][1]", "4"});
  options.keep = nullptr;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"keep", "NULL"});
}

TEST_F(CApiCallsTest, AnAdapterThatIsNotThereIsRefused) {
  auto options = Sized<encore_open_options>();
  options.task = "retrieval.query";
  encore_model* none = nullptr;
  ExpectFailure(encore_open(folder().c_str(), &options, &none), ENCORE_INVALID_ARGUMENT,
                {"retrieval.query"});
}

struct Seen {
  std::vector<encore_call_progress> all;
  encore_stop* stop = nullptr;
  static void Run(void* context, const encore_call_progress* progress) {
    Seen& self = *static_cast<Seen*>(context);
    self.all.push_back(*progress);
    if (self.stop != nullptr) encore_stop_set(self.stop, 1);
  }
};

TEST_F(CApiCallsTest, StatsAndProgressOfACall) {
  const Model model(folder());
  Seen seen;
  auto stats = Sized<encore_call_stats>();
  stats.texts = 99;
  auto call = Sized<encore_call_options>();
  call.stats = &stats;
  call.progress = Seen::Run;
  call.progress_context = &seen;
  call.background = 1;
  ASSERT_EQ(Encode(model, &call, 64), ENCORE_OK) << encore_last_error();
  ExpectRight();
  EXPECT_EQ(stats.size, sizeof stats);
  EXPECT_EQ(stats.texts, texts_.size());
  EXPECT_GT(stats.tokens, texts_.size());
  EXPECT_GT(stats.scratch_bytes, 0u);
  for (const int64_t time : {stats.tokenizing, stats.embedding, stats.layers, stats.pooling}) {
    EXPECT_GT(time, 0);
  }
  ASSERT_GT(seen.all.size(), 2u);
  EXPECT_LT(seen.all[0].texts, texts_.size());
  EXPECT_EQ(seen.all.back().texts, texts_.size());
  EXPECT_EQ(seen.all.back().all_texts, texts_.size());
  EXPECT_EQ(seen.all.back().tokens, stats.tokens);
  EXPECT_EQ(seen.all.back().all_tokens, stats.tokens);

  ASSERT_EQ(encore_stop_new(&seen.stop), ENCORE_OK);
  call.stop = seen.stop;
  seen.all.clear();
  ExpectFailure(Encode(model, &call, 64), ENCORE_CANCELLED, {"stop"});
  EXPECT_EQ(seen.all.size(), 1u);
  EXPECT_GT(stats.texts, 0u);
  EXPECT_LT(stats.texts, texts_.size());
  encore_stop_free(seen.stop);
}

// Calls with other options and results fill the stats too.
TEST_F(CApiCallsTest, StatsOfEveryCall) {
  auto stats = Sized<encore_call_stats>();
  auto call = Sized<encore_call_options>();
  call.stats = &stats;
  const encore_text text = Text("the cat sat");
  float value = 0;
  encore_rows* rows = nullptr;
  auto scores = Sized<encore_score_options>();
  scores.call = &call;
  auto labels = Sized<encore_label_options>();
  labels.call = &call;
  auto encode = Sized<encore_encode_options>();
  encode.call = &call;
  const auto expect = [&](const char* name, encore_status status) {
    SCOPED_TRACE(name);
    EXPECT_EQ(status, ENCORE_OK) << encore_last_error();
    EXPECT_EQ(stats.texts, 1u);
    EXPECT_GT(stats.layers, 0);
    stats = Sized<encore_call_stats>();
    encore_rows_free(rows);
    rows = nullptr;
  };
  const TextFolder reranker_folder("reranker");
  const Model reranker(reranker_folder.path());
  expect("score", encore_score(reranker, text, &text, 1, &scores, &value, 1, nullptr, nullptr));
  expect("classify",
         encore_classify(reranker, &text, nullptr, 1, &scores, &value, 1, nullptr, nullptr));
  const std::string data = ENCORE_TEST_DATA_DIR;
  const Model names(data + "/heads/ner_bert");
  expect("entities", encore_find_entities(names, &text, 1, &labels, &rows));
  auto open = Sized<encore_open_options>();
  open.language_head = 1;
  const Model masked(data + "/heads/splade_bert", &open);
  const size_t first = 0;
  expect("predict", encore_predict_tokens(masked, text, &first, 1, &labels, &rows));
  expect("sparse", encore_encode_sparse(masked, &text, 1, &encode, &rows));
  open = Sized<encore_open_options>();
  open.kind = ENCORE_KIND_MULTI_VECTOR;
  const Model late(data + "/late/stanford", &open);
  expect("multi", encore_encode_multi(late, &text, 1, &encode, &rows));
}

TEST_F(CApiCallsTest, StructsOfOtherVersions) {
  const Model model(folder());
  // Call options as version 7 had them, with nothing behind.
  struct {
    size_t size;
    const encore_stop* stop;
    double seconds;
  } seven = {sizeof seven, nullptr, 3600};
  EXPECT_EQ(Encode(model, reinterpret_cast<const encore_call_options*>(&seven)), ENCORE_OK);
  // Stats of a later version: what this one does not know becomes 0.
  struct {
    encore_call_stats known;
    int64_t added;
  } later = {};
  later.known.size = sizeof later;
  later.added = 5;
  auto call = Sized<encore_call_options>();
  call.stats = &later.known;
  ASSERT_EQ(Encode(model, &call), ENCORE_OK) << encore_last_error();
  EXPECT_EQ(later.known.size, sizeof later);
  EXPECT_EQ(later.known.texts, texts_.size());
  EXPECT_EQ(later.added, 0);
  later.known.size = 3;
  ExpectFailure(Encode(model, &call), ENCORE_INVALID_ARGUMENT,
                {"call.stats.size is 3", "encore_call_stats"});
  call = Sized<encore_call_options>();
  call.background = 2;
  ExpectFailure(Encode(model, &call), ENCORE_INVALID_ARGUMENT, {"background", "2"});
  call.background = 0;
  call.reserved = 1;
  ExpectFailure(Encode(model, &call), ENCORE_INVALID_ARGUMENT, {"reserved"});
  struct {
    encore_call_options known;
    int64_t added;
  } newer = {};
  newer.known.size = sizeof newer;
  EXPECT_EQ(Encode(model, &newer.known), ENCORE_OK);
  newer.added = 1;
  ExpectFailure(Encode(model, &newer.known), ENCORE_UNSUPPORTED, {"encore_call_options"});
}

TEST_F(CApiCallsTest, AModelLivesAsLongAsItsLastOwner) {
  encore_model* model = nullptr;
  ASSERT_EQ(encore_open(folder().c_str(), nullptr, &model), ENCORE_OK);
  EXPECT_EQ(encore_retain(nullptr), nullptr);
  std::vector<std::thread> owners;
  for (int i = 0; i < 8; ++i) {
    owners.emplace_back([owned = encore_retain(model)] {
      const encore_text text = Text("the cat sat");
      float vector[kD];
      EXPECT_EQ(encore_encode(owned, &text, 1, nullptr, vector, kD, nullptr, nullptr), ENCORE_OK);
      encore_free(owned);
    });
  }
  EXPECT_EQ(encore_retain(model), model);
  encore_free(model);
  for (std::thread& owner : owners) owner.join();
  ASSERT_EQ(Encode(model), ENCORE_OK) << encore_last_error();  // the second of this thread's
  ExpectRight();
  encore_free(model);
}

TEST_F(CApiCallsTest, ItsMemoryIsPreparedCountedAndTrimmed) {
  auto open = Sized<encore_open_options>();
  open.kept_bytes = size_t{64} << 20;
  const Model model(folder(), &open);
  auto memory = Sized<encore_model_memory>();
  ASSERT_EQ(encore_memory(model, &memory), ENCORE_OK) << encore_last_error();
  EXPECT_GT(memory.mapped, 0u);
  EXPECT_GT(memory.packed, 0u);
  ASSERT_EQ(encore_prepare(model, 256), ENCORE_OK) << encore_last_error();
  ASSERT_EQ(encore_memory(model, &memory), ENCORE_OK);
  EXPECT_GT(memory.scratch, 0u);
  ASSERT_EQ(encore_trim_memory(model), ENCORE_OK) << encore_last_error();
  ASSERT_EQ(encore_memory(model, &memory), ENCORE_OK);
  EXPECT_EQ(memory.scratch, 0u);
  open.kept_bytes = 1;
  const Model small(folder(), &open);
  ExpectFailure(encore_prepare(small, 256), ENCORE_INVALID_ARGUMENT, {"kept_bytes"});
  memory.size = 1;
  ExpectFailure(encore_memory(model, &memory), ENCORE_INVALID_ARGUMENT, {"encore_model_memory"});
  ExpectFailure(encore_memory(model, nullptr), ENCORE_INVALID_ARGUMENT, {"memory", "NULL"});
  ExpectFailure(encore_memory(nullptr, &memory), ENCORE_INVALID_ARGUMENT, {"model"});
  ExpectFailure(encore_prepare(nullptr, 1), ENCORE_INVALID_ARGUMENT, {"model"});
  ExpectFailure(encore_trim_memory(nullptr), ENCORE_INVALID_ARGUMENT, {"model"});
}

TEST_F(CApiCallsTest, AScoreHasAPrompt) {
  const TextFolder reranker_folder("reranker");
  const Model model(reranker_folder.path());
  const auto expected = TextEncoder::Open(reranker_folder.path());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const encore_text text = Text("the cat sat");
  auto options = Sized<encore_score_options>();
  options.prompt = "dogs dogs ";
  float score = 0;
  ASSERT_EQ(encore_score(model, text, &text, 1, &options, &score, 1, nullptr, nullptr), ENCORE_OK);
  const auto prompted = expected->Score("the cat sat", {"the cat sat"}, {.prompt = "dogs dogs "});
  const auto plain = expected->Score("the cat sat", {"the cat sat"});
  ASSERT_TRUE(prompted.ok() && plain.ok());
  EXPECT_EQ(score, prompted->values[0]);
  EXPECT_NE(score, plain->values[0]);
  options.prompt_name = "no such prompt";
  ExpectFailure(encore_score(model, text, &text, 1, &options, &score, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"prompt"});
  static_assert(ENCORE_LONG_ERROR == ENCORE_LONG_REFUSE);
}

}  // namespace
}  // namespace encore
