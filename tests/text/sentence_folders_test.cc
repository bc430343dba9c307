// SPDX-License-Identifier: Apache-2.0
//
// The whole folders of tests/data/sentences, in the spelling in which their models are published,
// from texts to vectors: token ids, and what sentence-transformers computes in float64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"

namespace encore {
namespace {

using nlohmann::json;

// Of the largest magnitude. Two or three layers of f32 leave as much as 6e-7.
constexpr double kFolderTolerance = 1e-6;

class SentenceFolders : public testing::TestWithParam<const char*> {
 protected:
  SentenceFolders() : path_(std::string(ENCORE_TEST_DATA_DIR "/sentences/") + GetParam()) {
    expected_ = json::parse(std::ifstream(path_ + "/expected.json"));
    texts_ = expected_.at("texts").get<std::vector<std::string>>();
  }

  std::string path_;
  json expected_;
  std::vector<std::string> texts_;
};

TEST_P(SentenceFolders, GiveWhatSentenceTransformersGives) {
  const TextEncoder model = Taken(TextEncoder::Open(path_));
  ASSERT_TRUE(model.has_tokenizer());
  double worst = 0;
  for (const json& result : expected_.at("results")) {
    EncodeOptions options;
    if (!result.at("prompt_name").is_null()) {
      options.prompt_name = result.at("prompt_name").get<std::string>();
    }
    SCOPED_TRACE(options.prompt_name.value_or("no prompt"));
    const Embeddings found = Taken(model.Encode(texts_, options));
    ASSERT_EQ(found.vectors.shape(), Shape(texts_.size(), result.at("vectors").at(0).size()));
    EXPECT_EQ(found.counts.tokens, result.at("tokens").get<std::vector<size_t>>());
    std::vector<double> expected;
    double largest = 0;
    for (const json& row : result.at("vectors")) {
      for (const double value : row) {
        expected.push_back(value);
        largest = std::max(largest, std::fabs(value));
      }
    }
    const auto* data = static_cast<const float*>(found.vectors.data());
    const std::vector<float> vectors(data, data + expected.size());
    EXPECT_TRUE(Near(vectors, expected, kFolderTolerance * largest, &worst));

    // The ids that the vectors were computed from give the same.
    const auto ids = result.at("ids").get<std::vector<std::vector<int32_t>>>();
    const Embeddings of_ids = Taken(model.EncodeIds(ids));
    const auto* same = static_cast<const float*>(of_ids.vectors.data());
    EXPECT_TRUE(SameBits(vectors, {same, vectors.size()}));
  }
  std::printf("%-16s largest difference %.1e of the largest magnitude\n", GetParam(),
              worst * kFolderTolerance);
}

// A published folder has nothing that encore leaves out but what does not count.
TEST_P(SentenceFolders, LeaveNothingOut) {
  const TextEncoder model = Taken(TextEncoder::Open(path_));
  for (const Decision& decision : model.Describe()) {
    // Qwen3's tokenizer has more positions than its model, as published.
    if (decision.value.starts_with("maximum length")) continue;
    EXPECT_NE(decision.what, "ignored") << decision.value << " (" << decision.source << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(All, SentenceFolders,
                         testing::Values("gte", "qwen3_embedding", "embedding_gemma", "sentence_t5",
                                         "clip", "siglip2", "siglip", "embedding_gemma2"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace encore
