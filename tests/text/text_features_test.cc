// SPDX-License-Identifier: Apache-2.0
//
// Models that make vectors of texts themselves, CLIP and SigLIP: which token's state counts, how
// texts are padded, and what is refused. tests/data/sentences has what is computed.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"
#include "tests/support/model_folder.h"

namespace encore {
namespace {

using nlohmann::json;

constexpr const char kClip[] = ENCORE_TEST_DATA_DIR "/models/clip";
constexpr const char kSiglip2[] = ENCORE_TEST_DATA_DIR "/sentences/siglip2";

std::vector<float> Floats(const Result<Embeddings>& found) {
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (!found.ok()) return {};
  const auto* data = static_cast<const float*>(found->vectors.data());
  return {data, data + found->vectors.size_bytes() / sizeof(float)};
}

std::string ErrorOf(const ModelFolder& folder, const OpenOptions& options = {}) {
  const Result<TextEncoder> model = TextEncoder::Open(folder.File(""), options);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : std::string(model.status().message());
}

bool Has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

TEST(TextFeatures, ClipsVectorIsTheFirstEnds) {
  const ModelFolder folder(kClip);
  json config = folder.Config();
  const auto vector = [&](const std::vector<int32_t>& ids) {
    const Result<TextEncoder> model = TextEncoder::Open(folder.File(""));
    EXPECT_TRUE(model.ok()) << model.status().message();
    const std::vector<std::vector<int32_t>> batch = {ids};
    return Floats(model->EncodeIds(batch));
  };
  config["text_config_dict"]["eos_token_id"] = 7;
  folder.SetConfig(config);
  EXPECT_TRUE(SameBits(vector({3, 7, 9, 7, 4}), vector({3, 7})));
  EXPECT_FALSE(SameBits(vector({3, 7, 9}), vector({3, 9})));
  EXPECT_TRUE(SameBits(vector({3, 5, 9}), vector({3})));  // without an end
  config["text_config_dict"]["eos_token_id"] = 2;
  folder.SetConfig(config);
  EXPECT_TRUE(SameBits(vector({3, 9, 7, 9, 2}), vector({3, 9})));
}

TEST(TextFeatures, TokensHaveNoVectorsAndPoolingIsNone) {
  const ModelFolder folder(kSiglip2);
  const TextEncoder model = Taken(TextEncoder::Open(folder.File("")));
  EXPECT_EQ(model.EncodeTokens("tea").status().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(Has(ErrorOf(folder, {.pooling = {PoolingMode::kMean}}), "option pooling"));
  folder.Write("modules.json", json::array({{{"idx", 0},
                                             {"name", "0"},
                                             {"path", ""},
                                             {"type", "sentence_transformers.models.Transformer"}},
                                            {{"idx", 1},
                                             {"name", "1"},
                                             {"path", "1_Pooling"},
                                             {"type", "sentence_transformers.models.Pooling"}}})
                                   .dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "makes a vector of each text"));
}

TEST(TextFeatures, PaddingIsTheModels) {
  const ModelFolder folder(kSiglip2);
  const auto vectors = [&] {
    const Result<TextEncoder> model = TextEncoder::Open(folder.File(""));
    EXPECT_TRUE(model.ok()) << model.status().message();
    const Result<Embeddings> found = model->Encode({"tea", "The harbour"});
    EXPECT_EQ(found->counts.tokens, (std::vector<size_t>{40, 40}));
    return Floats(found);
  };
  const std::vector<float> seen = vectors();
  // A folder that says less is padded all the same, and told.
  const std::string settings = folder.File("sentence_bert_config.json");
  json changed = json::parse(std::ifstream(settings));
  changed.erase("processing_kwargs");
  folder.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(SameBits(vectors(), seen));
  const TextEncoder model = Taken(TextEncoder::Open(folder.File("")));
  bool told = false;
  for (const Decision& decision : model.Describe()) {
    told |= decision.what == "padding" && Has(decision.value, "longest text");
  }
  EXPECT_TRUE(told);
  changed["max_seq_length"] = 20;
  folder.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "max_seq_length"));
  changed.erase("max_seq_length");
  changed["processing_kwargs"] = {{"text", {{"padding", "max_length"}, {"max_length", 39}}}};
  folder.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "processing_kwargs: texts have 39"));
  changed["processing_kwargs"] = {{"text", {{"padding", true}}}};
  folder.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "processing_kwargs"));
  changed.erase("processing_kwargs");
  folder.Write("sentence_bert_config.json", changed.dump());

  const std::string file = folder.File("tokenizer_config.json");
  json tokenizer = json::parse(std::ifstream(file));
  tokenizer["model_input_names"] = {"input_ids", "attention_mask"};
  folder.Write("tokenizer_config.json", tokenizer.dump());
  EXPECT_FALSE(SameBits(vectors(), seen));
  tokenizer["padding_side"] = "left";
  folder.Write("tokenizer_config.json", tokenizer.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "padding_side"));
  tokenizer.erase("padding_side");  // the class's own is the left one
  folder.Write("tokenizer_config.json", tokenizer.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "Siglip2Tokenizer"));
}

// A model of texts, images and sounds takes texts as they are; sentence-transformers would make
// messages of them where it can.
TEST(TextFeatures, OtherSidesOfAModelMayBeNamed) {
  const ModelFolder folder(ENCORE_TEST_DATA_DIR "/sentences/embedding_gemma2");
  const Result<TextEncoder> opened = TextEncoder::Open(folder.File(""));
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  const std::string settings = folder.File("sentence_bert_config.json");
  json changed = json::parse(std::ifstream(settings));
  changed["modality_config"]["message"] = changed["modality_config"]["text"];
  folder.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(Has(ErrorOf(folder), "a member 'text', and none 'message'"));
  // A model of texts alone has no others.
  changed["modality_config"].erase("message");
  const ModelFolder texts(ENCORE_TEST_DATA_DIR "/sentences/embedding_gemma");
  texts.Write("sentence_bert_config.json", changed.dump());
  EXPECT_TRUE(Has(ErrorOf(texts), "an object with the one member 'text'"));
}

}  // namespace
}  // namespace encore
