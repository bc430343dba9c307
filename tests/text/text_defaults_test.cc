// SPDX-License-Identifier: Apache-2.0
//
// What sentence-transformers takes from config.json where its own files say nothing: the pooling of
// causal language models, and how many tokens a text may have without a table of positions. And the
// quantizer of pplx-embed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using nlohmann::json;

std::string Decided(const TextEncoder& model, const std::string& what) {
  std::string text;
  for (const Decision& decision : model.Describe()) {
    if (decision.what == what) text += decision.value + " | " + decision.source + "\n";
  }
  return text;
}

std::vector<int32_t> SomeIds(size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>(3 + i * 7 % 110);
  return ids;
}

std::vector<float> VectorOf(const TextEncoder& model, const std::vector<int32_t>& ids) {
  const std::vector<std::vector<int32_t>> all = {ids};
  const Embeddings embeddings = Taken(model.EncodeIds(all));
  const auto* values = static_cast<const float*>(embeddings.vectors.data());
  return {values, values + model.dimensions()};
}

TEST(TextDefaults, CausalLanguageModelsArePooledByTheirLastToken) {
  const std::vector<int32_t> ids = SomeIds(9);
  const auto pooled = [&](const json& members, PoolingMode mode) {
    SCOPED_TRACE(members.dump());
    const TextFolder folder("../models/qwen3");
    folder.PatchJson("config.json", members);
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    const std::string wanted = std::string(PoolingModeName(mode)) + ", without normalization | ";
    EXPECT_EQ(Decided(model, "pooling").substr(0, wanted.size()), wanted);
    const TextEncoder told = Taken(TextEncoder::Open(folder.path(), {.pooling = {mode}}));
    EXPECT_EQ(VectorOf(model, ids), VectorOf(told, ids));
  };
  pooled({{"architectures", {"Qwen3ForCausalLM"}}}, PoolingMode::kLastToken);
  pooled({{"architectures", {"Qwen3ForCausalLM", "Qwen3Model"}}}, PoolingMode::kLastToken);
  pooled({{"architectures", {"Qwen3ForCausalLM"}}, {"is_causal", true}}, PoolingMode::kLastToken);
  pooled({{"architectures", {"Qwen3ForCausalLM"}}, {"is_causal", false}}, PoolingMode::kMean);
  pooled({{"architectures", {"Qwen3Model", "Qwen3ForCausalLM"}}}, PoolingMode::kMean);
  pooled({{"architectures", {"Qwen3Model"}}}, PoolingMode::kMean);
  pooled({{"architectures", json::array()}}, PoolingMode::kMean);
  pooled({{"architectures", nullptr}}, PoolingMode::kMean);
}

TEST(TextDefaults, WithoutATableOfPositionsAFileMayWantLongerTexts) {
  const std::vector<int32_t> ids = SomeIds(800);
  for (const std::string name :
       {"modernbert", "nomic_bert", "gte", "qwen3", "gemma3", "eurobert"}) {
    SCOPED_TRACE(name);
    const TextFolder folder("../models/" + name);
    folder.WriteModules();
    const TextEncoder usual = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(usual.max_length(), 720u);
    EXPECT_EQ(Decided(usual, "maximum length"), "720 | config.json\n");
    folder.WriteJson("sentence_bert_config.json", {{"max_seq_length", 1000}});
    const TextEncoder longer = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(longer.max_length(), 1000u);
    EXPECT_EQ(Decided(longer, "maximum length"), "1000 | sentence_bert_config.json\n");
    // The number of positions is no part of the computation.
    folder.PatchJson("config.json", {{"max_position_embeddings", 4000}});
    const TextEncoder many = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(VectorOf(longer, ids), VectorOf(many, ids));
    const TextEncoder option = Taken(TextEncoder::Open(folder.path(), {.max_length = 5000}));
    EXPECT_EQ(option.max_length(), 5000u);
  }
}

TEST(TextDefaults, ATableOfPositionsEndsTexts) {
  const TextFolder folder("../models/bert");
  folder.WriteModules();
  folder.WriteJson("sentence_bert_config.json", {{"max_seq_length", 1000}});
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  EXPECT_EQ(model.max_length(), 160u);
  EXPECT_NE(Decided(model, "ignored").find("maximum length 1000"), std::string::npos);
  EXPECT_EQ(Decided(model, "maximum length"),
            "160, as the model has no more positions | config.json\n");
  EXPECT_FALSE(TextEncoder::Open(folder.path(), {.max_length = 1000}).ok());
}

// Tokens of pad_token_id need no position of their own: sentence-transformers cuts at the size of
// the table, which is enough for texts that have some.
TEST(TextDefaults, PaddingThatNeedsNoPositionIsTold) {
  const std::string more = "; sentence-transformers takes more where texts have padding";
  for (const auto& [name, length] : {std::pair("mpnet", 718), std::pair("roberta", 154)}) {
    SCOPED_TRACE(name);
    const std::string most = std::to_string(length);
    const TextFolder folder(std::string("../models/") + name);
    folder.WriteModules();
    const TextEncoder usual = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(usual.max_length(), static_cast<size_t>(length));
    EXPECT_EQ(Decided(usual, "maximum length"), most + more + " | config.json\n");
    folder.WriteJson("sentence_bert_config.json", {{"max_seq_length", 1000}});
    const TextEncoder longer = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(Decided(longer, "maximum length"),
              most + ", as the model has no more positions" + more + " | config.json\n");
    folder.WriteJson("sentence_bert_config.json", {{"max_seq_length", length}});
    const TextEncoder enough = Taken(TextEncoder::Open(folder.path()));
    EXPECT_EQ(Decided(enough, "maximum length"), most + " | sentence_bert_config.json\n");
  }
}

// st_quantize.FlexibleQuantizer by its definition, on vectors that are large enough to be cut off.
TEST(TextDefaults, PplxsQuantizerGivesWholeNumbers) {
  const TextFolder folder("../models/qwen3_pplx");
  folder.WriteModules({});
  const std::vector<std::vector<int32_t>> ids = {SomeIds(1), SomeIds(7), SomeIds(60)};
  const TextEncoder plain = Taken(TextEncoder::Open(folder.path()));
  const Embeddings means = Taken(plain.EncodeIds(ids));
  json modules = folder.ReadJson("modules.json");
  modules.push_back({{"idx", 2},
                     {"name", "2"},
                     {"path", ""},
                     {"type", "st_quantize.FlexibleQuantizer"},
                     {"kwargs", {"quantization"}}});
  folder.WriteJson("modules.json", modules);
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  EXPECT_EQ(Decided(model, "quantize"),
            "127 tanh(x) to whole numbers of -127 .. 127 | modules.json\n");
  const Embeddings found = Taken(model.EncodeIds(ids));
  const auto* x = static_cast<const float*>(means.vectors.data());
  const auto* q = static_cast<const float*>(found.vectors.data());
  float largest = 0;
  for (size_t i = 0; i < ids.size() * model.dimensions(); ++i) {
    const double exact = 127 * std::tanh(static_cast<double>(x[i]));
    EXPECT_NEAR(q[i], exact, 0.5 + 1e-4) << i;
    EXPECT_EQ(q[i], std::floor(q[i])) << i;
    largest = std::max(largest, std::fabs(q[i]));
  }
  EXPECT_GT(largest, 100);
  // A call may want them normalized all the same.
  const Embeddings units = Taken(model.EncodeIds(ids, {.normalize = true}));
  const auto* u = static_cast<const float*>(units.vectors.data());
  double squares = 0;
  for (size_t i = 0; i < model.dimensions(); ++i) squares += static_cast<double>(q[i]) * q[i];
  for (size_t i = 0; i < model.dimensions(); ++i) {
    EXPECT_NEAR(u[i], q[i] / std::sqrt(squares), 1e-6) << i;
  }
}

}  // namespace
}  // namespace encore
