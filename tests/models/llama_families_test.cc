// SPDX-License-Identifier: Apache-2.0
//
// config.json of the families with Llama's layers: causality and windows, scalings, voyage's linear
// layer, UltraBERT's head.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/models/family.h"
#include "tests/support/model_folder.h"

namespace encore {
namespace {

using internal::TextModel;
using nlohmann::json;

std::vector<LayerConfig> LayersOf(ModelFolder& folder) {
  const Result<TextModel> model = folder.Open();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? model->encoder().config().layers : std::vector<LayerConfig>();
}

// Windows and causality of a folder's layers after changes of its keys.
struct Reach {
  std::string folder;
  std::vector<std::pair<std::string, json>> keys;
  bool causal;
  std::vector<std::optional<size_t>> windows;  // of each layer
};

TEST(LlamaFamilies, DecodersSeeWhatTheirKeysSay) {
  using O = std::optional<size_t>;
  const O all = std::nullopt;
  const std::vector<Reach> cases = {
      {"mistral", {}, true, {O(19), O(19)}},
      {"mistral", {{"is_causal", false}}, false, {O(20), O(20)}},
      {"mistral", {{"sliding_window", nullptr}}, true, {all, all}},
      {"llama", {{"is_causal", false}}, false, {all, all}},
      {"llama_bidirec", {{"is_causal", true}}, false, {all, all}},
      {"qwen2", {{"layer_types", nullptr}}, true, {all, O(19)}},
      {"qwen2", {{"layer_types", nullptr}, {"max_window_layers", 0}}, true, {O(19), O(19)}},
      {"qwen2", {{"layer_types", nullptr}, {"use_sliding_window", false}}, true, {all, all}},
      {"qwen2", {{"layer_types", nullptr}, {"sliding_window", nullptr}}, true, {all, all}},
      {"qwen2_gte", {}, false, {all, O(20)}},
      {"qwen3_pplx", {}, false, {all, all}},
      {"qwen3_voyage", {}, false, {all, all}},
      {"gemma3_causal", {}, true, {O(19), all, O(19)}},
      {"gemma3_causal", {{"is_causal", false}}, false, {O(20), all, O(20)}},
      {"gemma3_causal", {{"use_bidirectional_attention", true}}, false, {O(10), all, O(10)}},
      {"gemma3_causal", {{"layer_types", nullptr}}, true, {O(19), O(19), O(19)}},
      {"ultrabert", {}, false, {O(20), O(20), all}},
      {"ultrabert", {{"layer_types", nullptr}}, false, {O(20), O(20), all}},
      {"ultrabert_old_3", {{"attention_windows", {0, 7, 7}}}, false, {all, O(7), O(7)}},
  };
  for (const Reach& wanted : cases) {
    ModelFolder folder(kModels + wanted.folder);
    std::string changes;
    for (const auto& [key, value] : wanted.keys) {
      folder.SetKey(key, value);
      changes += " " + key + "=" + value.dump();
    }
    SCOPED_TRACE(wanted.folder + changes);
    const std::vector<LayerConfig> layers = LayersOf(folder);
    ASSERT_EQ(layers.size(), wanted.windows.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(layers[i].causal, wanted.causal);
      EXPECT_EQ(layers[i].window, wanted.windows[i]) << i;
    }
  }
}

// transformers ignores these; whoever wrote them may have meant something.
TEST(LlamaFamilies, KeysOfTheirRelativesAreRefused) {
  for (const auto& [name, key, value] : std::vector<std::tuple<std::string, std::string, json>>{
           {"mistral", "layer_types", {"full_attention", "full_attention"}},
           {"mistral", "attention_bias", true},
           {"llama", "sliding_window", 20},
           {"llama", "use_bidirectional_attention", true},
           {"qwen2", "attention_bias", false},
           {"qwen3", "use_bidirectional_attention", true},
           {"ultrabert", "max_window_layers", 1},
       }) {
    ModelFolder folder(kModels + name);
    folder.SetKey(key, value);
    EXPECT_TRUE(FailsWith(folder.Open(), {"'" + key + "'"})) << name;
  }
}

TEST(LlamaFamilies, AbsentHeadsOfKeysAreThoseOfTheClass) {
  for (const auto& [name, absent] :
       {std::pair{"mistral", size_t{8}}, {"qwen2", size_t{32}}, {"qwen3", size_t{32}}}) {
    ModelFolder folder(kModels + name);
    folder.RemoveKey("num_key_value_heads");
    const std::string message = folder.Open().status().message();  // there are 4 heads
    EXPECT_NE(message.find("num_key_value_heads"), std::string::npos) << message;
    // 8 and 32 divide 64 heads: the plan is made, though no weights fit it.
    folder.SetKey("num_attention_heads", 64);
    folder.SetKey("hidden_size", 1024);
    const internal::Folder opened = Taken(internal::Folder::Open(folder.File("")));
    std::vector<Decision> decisions;
    const internal::ModelSpec plan =
        Taken(internal::ReadModelConfig(opened, /*ignore_unknown_keys=*/false, &decisions));
    EXPECT_EQ(plan.encoder.layers.at(0).num_kv_heads, absent) << name;
  }
  ModelFolder llama(kModels + "llama");
  llama.SetKey("num_key_value_heads", nullptr);  // as many as heads, which the file has not
  EXPECT_NE(llama.Open().status().message().find("k_proj"), std::string::npos);
}

TEST(LlamaFamilies, VoyagesWidthIsTheNumberOfLabels) {
  ModelFolder folder(kModels + "qwen3_voyage");
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(model.d_model(), 32u);
  EXPECT_EQ(model.hidden_width(), 40u);
  EXPECT_FALSE(model.has_head());
  EXPECT_EQ(folder.Decided("projection"), "linear, of each token to 40 elements");
  folder.SetKey("num_labels", 41);
  EXPECT_NE(folder.Open().status().message().find("'linear.weight'"), std::string::npos);
  folder.RemoveKey("num_labels");  // then there are two
  EXPECT_TRUE(FailsWith(folder.Open(), {"wanted [2, 32]"}, kAnyCode));
}

TEST(LlamaFamilies, UltraBertsHeadIsOneMatrix) {
  ModelFolder first(kModels + "ultrabert_old_3");
  EXPECT_EQ((*first.Open()).head_rows(), OutputRows::kFirst);
  EXPECT_EQ(first.Decided("head"), "3 labels: classifier(first token)");
  ModelFolder mean(kModels + "ultrabert_1");
  EXPECT_EQ((*mean.Open()).head_rows(), OutputRows::kAll);
  EXPECT_EQ(mean.Decided("head"), "1 label: classifier(mean of the tokens)");
}

TEST(LlamaFamilies, DecodersScoreTheLastTokenThatIsNotPadding) {
  ModelFolder folder(kModels + "llama_3");
  EXPECT_EQ((*folder.Open()).head_rows(), OutputRows::kLast);
  EXPECT_EQ(folder.Decided("head"), "3 labels: score(last token that is not 119)");
  const std::vector<int32_t> ids = {5, 119, 7, 119, 119, 119, 6};
  const std::vector<size_t> ends = {0, 2, 5, 6}, others = {0, 3, 7};
  const auto rows = [&](const TextModel& model, const std::vector<size_t>& starts) {
    return model.head_rows({.ids = ids, .type_ids = {}, .seq_starts = starts});
  };
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(rows(model, ends), OutputRows::kAll);
  EXPECT_EQ(rows(model, others), OutputRows::kLast);
  EXPECT_EQ(model.head_place(ids), 6u);
  EXPECT_EQ(model.head_place(std::span(ids).first(6)), 2u);
  EXPECT_EQ(model.head_place(std::span(ids).subspan(3, 3)), 0u);  // nothing but padding
  for (const json& id : {json(nullptr), json(-1)}) {
    folder.SetKey("pad_token_id", id);
    EXPECT_EQ(rows(*folder.Open(), ends), OutputRows::kLast);
  }
  EXPECT_EQ(folder.Decided("head"), "3 labels: score(last token that is not -1)");
  folder.SetKey("pad_token_id", "119");
  EXPECT_TRUE(FailsWith(folder.Open(), {"pad_token_id is"}, kAnyCode));
  folder.RemoveKey("pad_token_id");  // then there is none
  EXPECT_EQ(rows(*folder.Open(), ends), OutputRows::kLast);
  EXPECT_EQ(folder.Decided("head"), "3 labels: score(last token)");
  ModelFolder gemma(kModels + "gemma3_1");
  gemma.RemoveKey("pad_token_id");  // then it is 0
  ASSERT_TRUE(gemma.Open().ok());
  EXPECT_EQ(gemma.Decided("head"), "1 label: score(last token that is not 0)");
}

// Llama 3's: of the pairs, fast ones are as they are, slow ones divided by the factor.
TEST(LlamaFamilies, Llama3ScalesSlowPairsOnly) {
  ModelFolder folder(kModels + "eurobert_old");
  folder.SetKey("rope_theta", 10000);
  const std::vector<double> plain = {1, 0.1, 0.01, 0.001};
  // Within 1,000 tokens they turn 159, 15.9, 1.59 and 0.159 times.
  folder.SetKey("rope_scaling", {{"rope_type", "llama3"},
                                 {"factor", 8},
                                 {"low_freq_factor", 1},
                                 {"high_freq_factor", 4},
                                 {"original_max_position_embeddings", 1000}});
  const std::vector<double> scaled = LayersOf(folder).at(0).rotary->inverse_frequencies;
  ASSERT_EQ(scaled.size(), 4u);
  const double fastness = (1000 * 0.01 / (2 * 3.14159265358979323846) - 1) / 3;
  EXPECT_NEAR(scaled[0], plain[0], 1e-12);
  EXPECT_NEAR(scaled[1], plain[1], 3e-8 * plain[1]);
  EXPECT_NEAR(scaled[2], plain[2] / 8 * (1 - fastness) + plain[2] * fastness, 1e-9);
  EXPECT_NEAR(scaled[3], plain[3] / 8, 3e-8 * plain[3]);
}

// The head of NVIDIA's rerankers, and why there is none.
TEST(LlamaFamilies, RerankersOfBothSidesPoolAndDivide) {
  ModelFolder sums(kModels + "llama_bidirec");
  sums.SetKey("pooling", "weighted_avg");
  EXPECT_TRUE(sums.Open().ok());
  sums.SetKey("architectures", {"LlamaBidirectionalForSequenceClassification"});
  EXPECT_EQ(sums.Open().status().code(), ErrorCode::kUnsupported);
  sums.SetKey("temperature", 0);
  EXPECT_EQ(sums.Open().status().code(), ErrorCode::kInvalidArgument);
  ModelFolder t5(kModels + "t5");
  t5.SetKey("architectures", {"T5ForSequenceClassification"});
  EXPECT_TRUE(FailsWith(t5.Open(), {"encore does not support that of t5: it reads the decoder's"},
                        kAnyCode));
}

}  // namespace
}  // namespace encore
