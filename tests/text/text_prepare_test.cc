// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder::Prepare, and scratch of the caller's: results stay as they are, and a call after
// Prepare meets no page for the first time.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "engine/base/workspace_use.h"
#include "tests/support/compare.h"
#include "tests/support/text_case.h"
#include "tests/support/text_models.h"

namespace encore {
namespace {

const std::vector<std::string>& SomeTexts() {
  static const std::vector<std::string> texts = {"tea", "the bread, the bread", "",
                                                 "a b c d e f g"};
  return texts;
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data());
  return std::vector<float>(data, data + tensor.size_bytes() / sizeof(float));
}

void Append(const std::vector<float>& more, std::vector<float>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

// What a model's calls give, those that it has, in this scratch.
std::vector<float> ResultsOf(const TextEncoder& model, Scratch* scratch) {
  std::vector<float> all;
  const std::vector<std::vector<int32_t>> ids = {{1, 2, 3}, {1}};
  if (const auto found = model.EncodeIds(ids, {.scratch = scratch}); found.ok()) {
    Append(FloatsOf(found->vectors), &all);
  }
  if (const auto found = model.Encode(SomeTexts(), {.scratch = scratch}); found.ok()) {
    Append(FloatsOf(found->vectors), &all);
  }
  if (const auto found = model.EncodeSparse(SomeTexts(), {.scratch = scratch}); found.ok()) {
    Append(found->values, &all);
  }
  if (const auto found = model.Score("a", SomeTexts(), {.scratch = scratch}); found.ok()) {
    Append(found->values, &all);
  }
  if (const auto found = model.Classify(SomeTexts(), {.scratch = scratch}); found.ok()) {
    Append(FloatsOf(found->values), &all);
  }
  if (const auto found = model.LabelTokens("tea", {.scratch = scratch}); found.ok()) {
    Append(FloatsOf(found->logits), &all);
  }
  if (const auto found = model.EncodeTokens("tea", {.scratch = scratch}); found.ok()) {
    Append(FloatsOf(found->vectors), &all);
  }
  return all;
}

std::vector<float> ResultsOf(const MultiVectorEncoder& model, Scratch* scratch) {
  std::vector<float> all;
  for (const TextTask task : {TextTask::kQuery, TextTask::kDocument}) {
    const auto found = model.Encode(SomeTexts(), {.scratch = scratch}, task);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (found.ok()) Append(FloatsOf(found->vectors), &all);
  }
  return all;
}

template <typename Model>
void ExpectSameBits(const TextModelCase& one, const ThreadPool& pool, Scratch* shared) {
  const Result<Model> plain = Model::Open(one.path, one.options);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  const std::vector<float> wanted = ResultsOf(*plain, nullptr);
  EXPECT_FALSE(wanted.empty());
  EXPECT_TRUE(SameBits(ResultsOf(*plain, shared), wanted)) << "in one scratch of all models";
  for (const Executor& executor : {Executor(), pool.executor()}) {
    const Result<Model> prepared = Model::Open(one.path, one.options);
    ASSERT_TRUE(prepared.ok());
    const Status status = prepared->Prepare(200, executor);
    ASSERT_TRUE(status.ok()) << status.message();
    const size_t kept = prepared->Memory().scratch;
    EXPECT_GT(kept, 0u);
    EXPECT_LE(kept, prepared->WorkspaceBytes(200, executor.threads()));
    EXPECT_TRUE(SameBits(ResultsOf(*prepared, nullptr), wanted)) << "prepared";
    prepared->TrimMemory();
    EXPECT_EQ(prepared->Memory().scratch, 0u);
    EXPECT_TRUE(SameBits(ResultsOf(*prepared, nullptr), wanted)) << "trimmed";
  }
}

TEST(TextPrepareTest, NoResultDependsOnIt) {
  const Result<ThreadPool> pool = ThreadPool::Create({.threads = 2});
  ASSERT_TRUE(pool.ok());
  Scratch shared;
  for (const TextModelCase& one : TextModelCases()) {
    SCOPED_TRACE(one.name);
    if (one.late) {
      ExpectSameBits<MultiVectorEncoder>(one, *pool, &shared);
    } else {
      ExpectSameBits<TextEncoder>(one, *pool, &shared);
    }
  }
}

TEST(TextPrepareTest, AScratchServesOneCallAtATime) {
  const TextModelCases cases;
  const Result<TextEncoder> model = TextEncoder::Open(cases.begin()->path);
  ASSERT_TRUE(model.ok());
  Scratch scratch;
  {
    const internal::WorkspaceUse another(scratch);
    const Status status = model->Encode({"tea"}, {.scratch = &scratch}).status();
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "the scratch is in use by another call; wanted one for each call at the same time");
    EXPECT_EQ(model->Prepare(10, {}, &scratch).message(), status.message());
  }
  EXPECT_TRUE(model->Encode({"tea"}, {.scratch = &scratch}).ok());
}

TEST(TextPrepareTest, RefusesWhatItCannotKeep) {
  const TextModelCases cases;
  OpenOptions options;
  options.kept_bytes = 1000;
  const Result<TextEncoder> model = TextEncoder::Open(cases.begin()->path, options);
  ASSERT_TRUE(model.ok());
  const Status status = model->Prepare(40);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("kept_bytes is 1000; wanted at least "))
      << status.message();
  Scratch scratch;
  EXPECT_TRUE(model->Prepare(40, {}, &scratch).ok());
  EXPECT_EQ(model->Prepare(0).message(), "max_tokens is 0; wanted at least 1");
  EXPECT_EQ(model->WorkspaceBytes(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(model->Prepare(SIZE_MAX).code(), ErrorCode::kInvalidArgument);
}

TEST(TextPrepareTest, ATouchedFileDoesNoHarmAfterIt) {
  const TextFolder folder;
  const std::string path = folder.File("model.safetensors");
  const auto touch = [&](int seconds_ago) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
  };
  touch(100);
  const Result<TextEncoder> model = TextEncoder::Open(folder.path());
  const Result<TextEncoder> not_prepared = TextEncoder::Open(folder.path());
  ASSERT_TRUE(model.ok() && not_prepared.ok());
  ASSERT_TRUE(model->Prepare(40).ok());
  touch(50);
  EXPECT_TRUE(model->Encode({"tea"}).ok());
  EXPECT_TRUE(model->Prepare(40).ok());
  EXPECT_EQ(not_prepared->Encode({"tea"}).status().code(), ErrorCode::kIo);
  std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary).put('\0');
  EXPECT_EQ(model->Encode({"tea"}).status().code(), ErrorCode::kIo);
}

TEST(TextPrepareTest, MoreTokensAndThreadsNeedMore) {
  for (const TextModelCase& one : TextModelCases()) {
    if (one.late) continue;
    SCOPED_TRACE(one.name);
    const Result<TextEncoder> model = TextEncoder::Open(one.path, one.options);
    ASSERT_TRUE(model.ok());
    size_t before = 0;
    for (const size_t tokens : {size_t{1}, size_t{100}, size_t{10000}}) {
      const size_t bytes = model->WorkspaceBytes(tokens, 1);
      EXPECT_GT(bytes, before);
      EXPECT_GE(model->WorkspaceBytes(tokens, 4), bytes);
      before = bytes;
    }
  }
}

}  // namespace
}  // namespace encore
