// SPDX-License-Identifier: Apache-2.0
//
// Calls with texts on threads that have as much stack as text_encoder.h and c_api.h state: a thread
// of that size runs each of them, in each precision, on every SIMD target.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "encore/c_api.h"
#include "encore/text_encoder.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/stack_use.h"
#include "tests/support/targets.h"
#include "tests/support/text_case.h"

#if defined(__linux__)
namespace encore {
namespace {

// text_encoder.h and c_api.h: of the whole thread, whose own data take some of it.
constexpr size_t kStated = size_t{128} << 10;

// Many texts, long words, characters of every kind.
std::vector<std::string> ManyTexts() {
  std::vector<std::string> texts(300, "The c\xC3\xA4t s\xC3\xA9t \xE4\xB8\xAD on [SEP] mat 1998, ");
  texts[1] = std::string(100000, 'x');
  for (int i = 0; i < 9; ++i) texts[2] += texts[2] + texts[0];
  return texts;
}

class TextStackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  }
  void Run(Precision precision, const std::function<void()>& call) {
    size_t& most = most_[static_cast<size_t>(precision)];
    most = std::max(most, StackOf(call, kStated));
  }
  void TearDown() override {
    for (const Precision precision : kPrecisions) {
      std::printf("%.4s: most stack %zu of %zu bytes\n", PrecisionName(precision).data(),
                  most_[static_cast<size_t>(precision)], kStated);
    }
  }

  const std::vector<std::string> texts_ = ManyTexts();
  size_t most_[std::size(kPrecisions)] = {};
};

TEST_F(TextStackTest, CallsOfTextEncoder) {
  const TextFolder sentences;
  const TextFolder reranker("reranker");
  ForEachTarget([&](const std::string& target) {
    for (const Precision precision : kPrecisions) {
      SCOPED_TRACE(target + " " + std::string(PrecisionName(precision)));
      const OpenOptions options{.precision = precision, .amx_bf16 = precision == Precision::kBF16};
      const TextEncoder model = Taken(TextEncoder::Open(sentences.path(), options));
      Run(precision, [&] { EXPECT_TRUE(model.Encode(texts_).ok()); });
      Run(precision, [&] { EXPECT_TRUE(model.EncodeTokens(texts_[2]).ok()); });
      Run(precision, [&] { EXPECT_FALSE(model.Encode({"\xFF"}).ok()); });
      Run(precision, [&] { EXPECT_FALSE(model.Encode({"a"}, {.prompt_name = "none"}).ok()); });
      const TextEncoder scores = Taken(TextEncoder::Open(reranker.path(), options));
      Run(precision, [&] { EXPECT_TRUE(scores.Score("cat?", texts_).ok()); });
      Run(precision, [&] { EXPECT_TRUE(scores.Classify(texts_, texts_).ok()); });
    }
  });
}

TEST_F(TextStackTest, OtherFamilies) {
  const std::vector<std::vector<int32_t>> ids = {{5, 6, 7}, std::vector<int32_t>(30, 9), {4}};
  for (const char* const name : {"jina_bert", "t5", "gemma3_old", "modernbert", "nomic_bert_old",
                                 "qwen3", "mpnet", "eurobert"}) {
    const TextFolder folder(std::string("../models/") + name);
    folder.WriteModules();
    ForEachTarget([&](const std::string& target) {
      for (const Precision precision : kPrecisions) {
        SCOPED_TRACE(name + (" " + target + " ") + std::string(PrecisionName(precision)));
        const TextEncoder model = Taken(TextEncoder::Open(
            folder.path(), {.precision = precision, .amx_bf16 = precision == Precision::kBF16}));
        Run(precision, [&] { EXPECT_TRUE(model.EncodeIds(ids).ok()); });
      }
    });
  }
}

TEST_F(TextStackTest, CallsOfTheCInterface) {
  const TextFolder folder;
  std::vector<encore_text> texts;
  for (const std::string& text : texts_) texts.push_back({text.data(), text.size()});
  std::vector<float> vectors(texts.size() * 32);
  for (const Precision precision : kPrecisions) {
    encore_open_options options = {};
    options.size = sizeof options;
    options.threads = 2;
    options.precision = ENCORE_PRECISION_F32 + static_cast<int32_t>(precision);
    encore_model* model = nullptr;
    ASSERT_EQ(encore_open(folder.path().c_str(), &options, &model), ENCORE_OK)
        << encore_last_error();
    Run(precision, [&] {
      EXPECT_EQ(encore_encode(model, texts.data(), texts.size(), nullptr, vectors.data(),
                              vectors.size(), nullptr, nullptr),
                ENCORE_OK);
    });
    Run(precision, [&] {
      size_t count = 0;
      EXPECT_EQ(encore_tokenize(model, texts[2], nullptr, nullptr, 0, &count, nullptr), ENCORE_OK);
      EXPECT_NE(encore_tokenize(model, {nullptr, 3}, nullptr, nullptr, 0, &count, nullptr),
                ENCORE_OK);
    });
    encore_free(model);
  }
}

}  // namespace
}  // namespace encore
#endif
