// SPDX-License-Identifier: Apache-2.0
//
// Modules behind the pooling that have settings of their own: LayerNorm and Dropout. What they
// compute is in the cases of tests/data/text.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using nlohmann::json;

TEST(TextModules, UnfitNormsAndDropoutsAreRefused) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("layer_norm"));
  const auto refused = [&](const std::string& file, const json& value, const std::string& word) {
    const json before = folder->ReadJson(file);
    folder->WriteJson(file, value);
    EXPECT_TRUE(FailsWith(TextEncoder::Open(folder->path()), {file, word}, kAnyCode));
    folder->WriteJson(file, before);
  };
  refused("3_LayerNorm/config.json", {{"dimension", 31}}, "32");
  refused("3_LayerNorm/config.json", json::object(), "dimension");
  refused("3_LayerNorm/config.json", {{"dimension", 32}, {"eps", 1e-3}}, "'eps'");
  refused("2_Dropout/config.json", {{"dropout", 1.5}}, "dropout");
  refused("2_Dropout/config.json", {{"dropout", 0.1}, {"p", 1}}, "'p'");
  std::filesystem::remove(folder->File("2_Dropout/config.json"));  // which has a default
  EXPECT_TRUE(TextEncoder::Open(folder->path()).ok());
  std::filesystem::copy(folder->File("model.safetensors"),
                        folder->File("3_LayerNorm/model.safetensors"),
                        std::filesystem::copy_options::overwrite_existing);
  const Status status = TextEncoder::Open(folder->path()).status();
  EXPECT_NE(status.message().find("norm.weight"), std::string::npos) << status.message();
}

// An option in place of the folder's pooling counts all tokens.
TEST(TextModules, AnOptionsPoolingCountsThePrompt) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("prompt_left_out"));
  OpenOptions options;
  options.pooling = {PoolingMode::kMean};
  const TextEncoder model = Taken(TextEncoder::Open(folder->path(), options));
  EncodeOptions prompt;
  prompt.prompt_name = "query";
  const Result<Embeddings> found = model.Encode({"tea"}, prompt);
  EncodeOptions none;
  none.prompt = "";
  const Result<Embeddings> wanted = model.Encode({"Which road: tea"}, none);
  ASSERT_TRUE(found.ok() && wanted.ok());
  for (size_t i = 0; i < model.dimensions(); ++i) {
    EXPECT_EQ(found->vectors.View<float>()(0, i), wanted->vectors.View<float>()(0, i));
  }
}

// Ids have no prompt: all of them count, whatever the folder's default prompt is, or says wrongly.
TEST(TextModules, IdsHaveNoDefaultPrompt) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("prompt_left_out"));
  const std::vector<std::vector<int32_t>> ids = {{2, 5, 6, 7, 3}};
  const auto encode = [&](const char* default_prompt) {
    json config = folder->ReadJson("config_sentence_transformers.json");
    config["default_prompt_name"] = default_prompt == nullptr ? json() : json(default_prompt);
    folder->WriteJson("config_sentence_transformers.json", config);
    Result<TextEncoder> model = TextEncoder::Open(folder->path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    Result<Embeddings> found = model->EncodeIds(ids);
    EXPECT_TRUE(found.ok()) << found.status().message();
    const float* const row = std::as_const(found->vectors).View<float>().data();
    return std::vector<float>(row, row + model->dimensions());
  };
  const std::vector<float> wanted = encode(nullptr);
  EXPECT_EQ(encode("query"), wanted);
  EXPECT_EQ(encode("no such prompt"), wanted);
}

}  // namespace
}  // namespace encore
