// SPDX-License-Identifier: Apache-2.0
//
// What calls allocate after TextEncoder::Prepare: nothing, where the caller has memory for the
// results and a scratch; else what any later call does.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/text_models.h"

namespace encore {
namespace {

constexpr size_t kTokens = 1024;

std::string Words(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += i % 3 == 0 ? "bread, " : "the ";
  return text;
}

// Calls of at most kTokens tokens in every model of these folders: few and many, long and short
// texts.
std::vector<std::vector<std::string>> Calls() {
  return {{Words(12)}, {"a"}, {"tea", Words(4), "", "the bread"}, std::vector<std::string>(8, "b")};
}

size_t Sum(const Counts& counts) { return counts.operator_news + counts.mallocs; }

TEST(TextAllocations, NoneWithRowsAndScratch) {
  const Result<ThreadPool> pool = ThreadPool::Create({.threads = 2});
  ASSERT_TRUE(pool.ok());
  size_t models = 0;
  for (const TextModelCase& one : TextModelCases()) {
    if (one.late) continue;
    SCOPED_TRACE(one.name);
    const Result<TextEncoder> model = TextEncoder::Open(one.path, one.options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    if (model->dimensions() == 0 || !model->has_tokenizer()) continue;
    ++models;
    for (const Executor& executor : {Executor(), pool->executor()}) {
      Scratch scratch;
      const Status prepared = model->Prepare(kTokens, executor, &scratch);
      ASSERT_TRUE(prepared.ok()) << prepared.message();
      const size_t bytes = scratch.size_bytes();
      EXPECT_LE(bytes, model->WorkspaceBytes(kTokens, executor.threads()));
      std::vector<float> rows(8 * model->dimensions());
      TextCounts counts;
      counts.tokens.reserve(8);
      counts.cut.reserve(8);
      for (const std::vector<std::string>& texts : Calls()) {
        const MutableView view(rows.data(), Shape(texts.size(), model->dimensions()));
        const EncodeOptions options{.executor = executor, .scratch = &scratch};
        Status status;
        const Counts taken =
            CountAllocations([&] { status = model->Encode(texts, view, &counts, options); });
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(Sum(taken), 0u) << texts.size() << " texts, " << executor.threads() << " threads";
      }
      EXPECT_EQ(scratch.size_bytes(), bytes);
    }
  }
  EXPECT_GE(models, 15u);
}

TEST(TextAllocations, ARowsCallTakesSomeWithoutPrepare) {
  const TextModelCases cases;
  const Result<TextEncoder> model = TextEncoder::Open(cases.begin()->path);
  ASSERT_TRUE(model.ok());
  std::vector<float> rows(model->dimensions());
  const MutableView view(rows.data(), Shape(1, model->dimensions()));
  Scratch scratch;
  Status status;
  const Counts taken = CountAllocations(
      [&] { status = model->Encode({"the bread"}, view, nullptr, {.scratch = &scratch}); });
  EXPECT_TRUE(status.ok());
  EXPECT_GT(Sum(taken), 0u);
}

// The calls that a model has.
Status AllCalls(const TextEncoder& model, const std::vector<std::string>& texts) {
  const auto allow = [](const Status& status) {
    return status.code() == ErrorCode::kUnsupported ? Status() : status;
  };
  for (const Status& status : std::array{
           allow(model.Encode(texts).status()), allow(model.EncodeSparse(texts).status()),
           allow(model.FindEntities(texts).status()), allow(model.Score("a", texts).status())}) {
    if (!status.ok()) return status;
  }
  return {};
}

TEST(TextAllocations, TheFirstCallTakesWhatLaterOnesDo) {
  for (const TextModelCase& one : TextModelCases()) {
    SCOPED_TRACE(one.name);
    Result<TextEncoder> text = Status(ErrorCode::kUnsupported, "");
    Result<MultiVectorEncoder> late = Status(ErrorCode::kUnsupported, "");
    if (one.late) {
      late = MultiVectorEncoder::Open(one.path, one.options);
      ASSERT_TRUE(late.ok()) << late.status().message();
    } else {
      text = TextEncoder::Open(one.path, one.options);
      ASSERT_TRUE(text.ok()) << text.status().message();
    }
    const Status prepared = one.late ? late->Prepare(kTokens) : text->Prepare(kTokens);
    ASSERT_TRUE(prepared.ok()) << prepared.message();
    for (const std::vector<std::string>& texts : Calls()) {
      std::array<size_t, 2> taken = {};
      for (size_t& count : taken) {
        Status status;
        count = Sum(CountAllocations([&] {
          status = one.late ? late->EncodeDocuments(texts).status() : AllCalls(*text, texts);
        }));
        EXPECT_TRUE(status.ok()) << status.message();
      }
      EXPECT_EQ(taken[0], taken[1]) << texts.size() << " texts";
    }
  }
}

}  // namespace
}  // namespace encore
