// SPDX-License-Identifier: Apache-2.0
//
// Model2Vec's folders without modules.json, beside what model2vec computes
// (tests/make/model2vec_folders.py).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/text/head_folders.h"

namespace encore {
namespace {

using nlohmann::json;

Result<TextEncoder> OpenAlone(const OpenOptions& options = {}) {
  return TextEncoder::Open(FolderOf("model2vec_alone"), options);
}

TEST(Model2VecAlone, GivesWhatModel2VecGives) {
  const json expected = ExpectedOf("model2vec_alone");
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(OpenAlone());
  EXPECT_EQ(model.max_length(), 9u);
  const Embeddings found = Taken(model.Encode(texts));
  ExpectNear(ValuesOf(found.vectors), expected.at("vectors"));
  EXPECT_GT(found.counts.texts_cut, 0u);
}

TEST(Model2VecAlone, LeavesUnknownTokensOut) {
  const TextEncoder model = Taken(OpenAlone());
  const std::string unknown = "\xF0\x9F\x98\x80";
  const Embeddings found = Taken(model.Encode({"tea", "tea " + unknown, unknown}));
  EXPECT_EQ(found.counts.tokens, (std::vector<size_t>{1, 1, 0}));
  const ConstView rows = found.vectors.View<float>();
  for (size_t c = 0; c < rows.dim(1); ++c) {
    EXPECT_EQ(rows(0, c), rows(1, c));
    EXPECT_EQ(rows(2, c), 0.0f);
  }
}

// The tokens' median length is 3 characters, not bytes.
TEST(Model2VecAlone, CutsCharactersBeforeTokens) {
  OpenOptions options;
  options.max_length = 3;
  const TextEncoder model = Taken(OpenAlone(options));
  std::string told;
  for (const Decision& decision : model.Describe()) {
    if (decision.what == "characters of a text") told = decision.value;
  }
  ASSERT_EQ(told, "3 for each of 3 tokens");
  const std::vector<std::string> texts = {"tea tea a", "tea tea and", "e tea tea",
                                          "\xC3\xA9 tea tea"};
  const Embeddings found = Taken(model.Encode(texts));
  const ConstView rows = found.vectors.View<float>();
  bool differ = false;
  for (size_t c = 0; c < rows.dim(1); ++c) {
    EXPECT_EQ(rows(0, c), rows(1, c));
    EXPECT_EQ(rows(2, c), rows(3, c));
    differ = differ || rows(0, c) != rows(2, c);
  }
  EXPECT_TRUE(differ);
  EXPECT_EQ(found.counts.cut, (std::vector<size_t>{0, 1, 0, 0}));
  EncodeOptions strict;
  strict.on_long = OnLong::kError;
  EXPECT_TRUE(model.Encode({texts[0], texts[3]}, strict).ok());
  EXPECT_TRUE(FailsWith(model.Encode({texts[1]}, strict),
                        {"texts[0]: found more than 9 characters"}, kAnyCode));
}

TEST(Model2VecAlone, ReadsItsConfig) {
  const CopiedFolder folder("model2vec_alone");
  const auto length = [&](const std::string& config) {
    folder.Write("config.json", config);
    const Result<TextEncoder> model = TextEncoder::Open(folder.path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? model->max_length() : 12345;
  };
  EXPECT_EQ(length(R"({"model_type": "model2vec"})"), 512u);
  EXPECT_EQ(length(R"({"model_type": "model2vec", "max_length": null})"), 0u);
  EXPECT_EQ(length(R"({"model_type": "model2vec", "max_length": 18446744073709551615})"),
            18446744073709551615u);
  const TextEncoder unbounded = Taken(TextEncoder::Open(folder.path()));
  EXPECT_TRUE(unbounded.Encode({"tea road"}).ok());
  folder.Write("config.json", R"({"model_type": "model2vec", "max_length": 0})");
  folder.ExpectRefused({"config.json", "max_length"});
  folder.Write("config.json", R"({"model_type": "model2vec", "normalize": "yes"})");
  folder.ExpectRefused({"config.json", "normalize"});
  // Not by its own rules, as nothing says that it is one.
  folder.Write("config.json", R"({"architectures": ["StaticModel"]})");
  folder.ExpectRefused({"config.json", "model_type"});
}

TEST(Model2VecAlone, RefusesATableOfOtherTokens) {
  const CopiedFolder folder("model2vec_alone");
  const std::string path = folder.path() + "/tokenizer.json";
  json tokenizer = json::parse(std::ifstream(path));
  const auto size = tokenizer["model"]["vocab"].size();
  tokenizer["model"]["vocab"]["onemore"] = size;
  folder.Write("tokenizer.json", tokenizer.dump());
  folder.ExpectRefused({"vectors; wanted " + std::to_string(size + 1), "mapping"});
  tokenizer["model"]["vocab"].erase("onemore");
  tokenizer["truncation"] = {
      {"direction", "Left"}, {"max_length", 4}, {"strategy", "LongestFirst"}, {"stride", 0}};
  folder.Write("tokenizer.json", tokenizer.dump());
  folder.ExpectRefused({"tokenizer.json", "direction", "Left"});
}

}  // namespace
}  // namespace encore
