// SPDX-License-Identifier: Apache-2.0
//
// The folders of tests/data/late, from texts to ids, vectors of tokens and scores, beside what
// sentence-transformers computes in float64; bits that depend on a text alone; folders that are
// refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-6;  // of the largest magnitude
const std::string kData = std::string(ENCORE_TEST_DATA_DIR) + "/late/";

struct Task {
  const char* name;
  TextTask task;
};
constexpr Task kTasks[] = {
    {"query", TextTask::kQuery}, {"document", TextTask::kDocument}, {"none", TextTask::kNone}};

std::vector<std::string> LateTextsOf(const json& expected) {
  std::vector<std::string> texts;
  for (const json& one : expected) texts.push_back(one.at("text"));
  return texts;
}

std::vector<float> Floats(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return std::vector<float>(data, data + tensor.size_bytes() / sizeof(float));
}

class LateFolders : public testing::TestWithParam<const char*> {
 protected:
  LateFolders() : path_(kData + GetParam()) {
    expected_ = json::parse(std::ifstream(path_ + "/expected.json"));
  }

  std::string path_;
  json expected_;
};

TEST_P(LateFolders, GiveWhatSentenceTransformersGives) {
  const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(path_));
  double worst = 0;
  for (const auto& [name, task] : kTasks) {
    SCOPED_TRACE(name);
    const json& wanted = expected_.at(name);
    const MultiVectors found = Taken(model.Encode(LateTextsOf(wanted), {}, task));
    std::vector<double> rows;
    std::vector<size_t> starts = {0};
    double largest = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found.counts.tokens[i], wanted[i].at("ids").size());
      for (const json& row : wanted[i].at("rows")) {
        for (const double value : row) {
          rows.push_back(value);
          largest = std::max(largest, std::fabs(value));
        }
      }
      starts.push_back(starts.back() + wanted[i].at("rows").size());
    }
    EXPECT_EQ(found.row_starts, starts);
    ASSERT_EQ(found.vectors.shape(), Shape(starts.back(), model.dimensions()));
    EXPECT_TRUE(Near(Floats(found.vectors), rows, kTolerance * largest, &worst));
  }
  std::printf("%-10s largest difference %.1e of the largest magnitude\n", GetParam(),
              worst * kTolerance);
}

TEST_P(LateFolders, ScoreAsSentenceTransformersDoes) {
  const Result<MultiVectorEncoder> model = MultiVectorEncoder::Open(path_);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Result<MultiVectors> queries = model->EncodeQueries(LateTextsOf(expected_.at("query")));
  const Result<MultiVectors> documents =
      model->EncodeDocuments(LateTextsOf(expected_.at("document")));
  ASSERT_TRUE(queries.ok() && documents.ok());
  const json& wanted = expected_.at("scores");
  std::vector<float> scores(wanted.size() * wanted[0].size());
  ASSERT_TRUE(model
                  ->Similarity(queries->rows(), documents->rows(),
                               MutableView(scores.data(), Shape(wanted.size(), wanted[0].size())))
                  .ok());
  for (size_t q = 0; q < wanted.size(); ++q) {
    const std::vector<double> row = wanted[q];
    double largest = 1;
    for (const double score : row) largest = std::max(largest, score);
    EXPECT_TRUE(
        Near(std::span(scores).subspan(q * row.size(), row.size()), row, kTolerance * largest));
  }
}

TEST_P(LateFolders, ATextsBitsDependOnItAlone) {
  const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(path_));
  const Executors executors;
  for (const auto& [name, task] : kTasks) {
    SCOPED_TRACE(name);
    std::vector<std::string> texts = LateTextsOf(expected_.at(name));
    std::vector<float> alone;
    for (const std::string& text : texts) {
      const MultiVectors one = Taken(model.Encode({text}, {}, task));
      const std::vector<float> rows = Floats(one.vectors);
      alone.insert(alone.end(), rows.begin(), rows.end());
    }
    for (const auto& [executor_name, executor] : executors) {
      SCOPED_TRACE(executor_name);
      for (const size_t batch_tokens : {size_t{0}, size_t{1}, size_t{30}}) {
        const MultiVectors all =
            Taken(model.Encode(texts, {.executor = executor, .batch_tokens = batch_tokens}, task));
        EXPECT_TRUE(SameBits(Floats(all.vectors), alone));
      }
    }
  }
  // More texts than are tokenized at once.
  const std::vector<std::string> many(9000, "tea");
  const Result<MultiVectors> one = model.EncodeDocuments({"tea"});
  const Result<MultiVectors> all = model.EncodeDocuments(many);
  ASSERT_TRUE(one.ok() && all.ok());
  const std::vector<float> row = Floats(one->vectors);
  const std::vector<float> rows = Floats(all->vectors);
  ASSERT_EQ(rows.size(), 9000 * row.size());
  for (const size_t i : {size_t{0}, size_t{8191}, size_t{8192}, size_t{8999}}) {
    EXPECT_TRUE(SameBits(std::span(rows).subspan(i * row.size(), row.size()), row));
  }
}

TEST_P(LateFolders, AreNotTextEncoders) {
  EXPECT_TRUE(FailsWith(TextEncoder::Open(path_), {"MultiVectorEncoder"}, ErrorCode::kUnsupported));
}

INSTANTIATE_TEST_SUITE_P(All, LateFolders, testing::Values("own", "windows", "pylate", "stanford"),
                         [](const auto& test) { return std::string(test.param); });

TEST(MultiVectorEncoderTest, RefusesFoldersOfTextEncoder) {
  EXPECT_TRUE(
      FailsWith(MultiVectorEncoder::Open(std::string(ENCORE_TEST_DATA_DIR) + "/sentences/gte"),
                {"TextEncoder"}, ErrorCode::kUnsupported));
}

// A copy of a folder, with files changed.
class HostileLateFolder : public testing::Test {
 protected:
  void Copy(const std::string& name) {
    std::filesystem::copy(kData + name, folder_.path(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
  }
  void Refused(const std::string& file, const json& members, const std::string& word) {
    std::ifstream in(folder_.File(file));
    const json was = json::parse(in);
    json changed = was;
    changed.update(members);
    std::ofstream(folder_.File(file)) << changed.dump();
    const Result<MultiVectorEncoder> model = MultiVectorEncoder::Open(folder_.path());
    EXPECT_FALSE(model.ok()) << word;
    if (!model.ok()) {
      const std::string& sentence = model.status().message();
      EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
      EXPECT_EQ(sentence.find('\n'), std::string::npos);
    }
    std::ofstream(folder_.File(file)) << was.dump();
  }

  TemporaryFolder folder_;
};

TEST_F(HostileLateFolder, OfSentenceTransformers) {
  Copy("own");
  const auto expansion = [](const json& value) { return json{{"query_expansion", value}}; };
  const std::string settings = "sentence_bert_config.json";
  Refused(settings, expansion({{"strategy", "twice"}, {"length", 9}}), "query_expansion");
  Refused(settings, expansion({{"strategy", "fixed"}}), "query_expansion");
  Refused(settings, expansion({{"strategy", "fixed"}, {"length", 0}}), "query_expansion");
  Refused(settings, expansion({{"strategy", "min"}, {"length", 9}, {"more", 1}}),
          "query_expansion");
  Refused(settings, expansion({{"strategy", "min"}, {"length", 9}, {"token", "none such"}}),
          "'none such'");
  Refused(settings, expansion({{"strategy", "min"}, {"length", 81}}), "80");
  Refused(settings, {{"query_length", 11}}, "wanted at least 12");
  Refused(settings, {{"document_length", 0}}, "document_length");
  Refused(settings, {{"document_length", 1}}, "documents is 1");
  Refused("2_MultiVectorMask/config.json", {{"skiplist_words", {1}}}, "skiplist_words");
  Refused("2_MultiVectorMask/config.json", {{"keep_only_token_ids", {-1}}}, "keep_only_token_ids");
  Refused("2_MultiVectorMask/config.json", {{"threshold", 2}}, "'threshold'");
  Refused("1_Dense/config.json", {{"module_input_name", "sentence_embedding"}},
          "module_input_name");
  Refused("1_Dense/config.json", {{"module_output_name", "other"}}, "module_output_name");
  Refused("tokenizer_config.json", {{"padding_side", "left"}}, "padding_side");
  Refused("config_sentence_transformers.json", {{"model_type", "SentenceTransformer"}},
          "late interaction");
  json modules;
  std::ifstream(folder_.File("modules.json")) >> modules;
  const json was = modules;
  for (const char* const kind : {"Pooling", "SpladePooling"}) {
    modules = was;
    modules[1]["type"] = std::string("sentence_transformers.models.") + kind;
    std::ofstream(folder_.File("modules.json")) << modules;
    EXPECT_TRUE(FailsWith(MultiVectorEncoder::Open(folder_.path()), {"is out of order", "Dense"},
                          kAnyCode));
  }
  modules = json::array({was[0], was[1]});
  modules[0]["type"] = "sentence_transformers.models.StaticEmbedding";
  modules[1]["type"] = "pylate.models.Dense.Dense";
  std::ofstream(folder_.File("modules.json")) << modules;
  EXPECT_TRUE(FailsWith(MultiVectorEncoder::Open(folder_.path()), {"module 0"}, kAnyCode));
  std::ofstream(folder_.File("modules.json")) << was;
  const MultiVectorEncoder good = Taken(MultiVectorEncoder::Open(folder_.path()));
  EXPECT_TRUE(FailsWith(good.EncodeQueries({"tea"}, {.max_length = 20}),
                        {"max_length is 20", "wanted 12"}, kAnyCode));
  EXPECT_TRUE(good.EncodeQueries({"tea"}, {.max_length = 12}).ok());
  EXPECT_TRUE(good.EncodeDocuments({"tea"}, {.max_length = 20}).ok());
  EXPECT_TRUE(FailsWith(good.EncodeDocuments({"tea"}, {.dimensions = 4}),
                        {"dimensions is 4", "wanted 0"}, kAnyCode));
  EXPECT_TRUE(FailsWith(good.EncodeDocuments({"tea"}, {.prompt_name = "none such"}),
                        {"'none such'"}, kAnyCode));
  EXPECT_TRUE(FailsWith(MultiVectorEncoder::Open(folder_.path(), {.pooling = {PoolingMode::kMean}}),
                        {"option pooling", "wanted none"}, kAnyCode));
}

// "min" cuts at max_seq_length and fills up behind it. A prompt "passage" is not that of documents.
TEST_F(HostileLateFolder, CutsBeforeItExpands) {
  Copy("own");
  std::ofstream(folder_.File("sentence_bert_config.json")) << json{
      {"max_seq_length", 7},
      {"query_expansion", {{"strategy", "min"}, {"length", 12}}}}.dump();
  std::ofstream(folder_.File("config_sentence_transformers.json"))
      << json{{"model_type", "MultiVectorEncoder"}, {"prompts", {{"passage", "boats "}}}}.dump();
  const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(folder_.path()));
  EXPECT_EQ(model.max_length(TextTask::kQuery), 7u);
  EXPECT_FALSE(model.has_own_length(TextTask::kQuery));
  const std::string text = "The harbour lies between two hills, and boats come in.";
  for (const size_t length : {7, 5, 9}) {
    const MultiVectors found = Taken(model.EncodeQueries({text}, {.max_length = length}));
    EXPECT_EQ(found.row_starts.back(), 12u);
    EXPECT_EQ(found.counts.cut[0], 23 - length);
  }
  const Result<MultiVectors> documents = model.EncodeDocuments({text});
  const Result<MultiVectors> plain = model.EncodeDocuments({text}, {.prompt = ""});
  ASSERT_TRUE(documents.ok() && plain.ok());
  EXPECT_TRUE(SameBits(Floats(documents->vectors), Floats(plain->vectors)));
}

// Without model_type, sentence-transformers takes a folder of PyLate's for one whose punctuation
// has rows, unless it has a marker of queries or documents.
TEST_F(HostileLateFolder, OfPyLateWithoutMarkers) {
  Copy("pylate");
  const auto rows = [&](const json& settings) -> size_t {
    std::ofstream(folder_.File("config_sentence_transformers.json")) << settings.dump();
    const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(folder_.path()));
    const Result<MultiVectors> found = model.EncodeDocuments({"tea."}, {.prompt = ""});
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? found->row_starts.back() : 0;
  };
  EXPECT_EQ(rows({{"prompts", json::object()}}), 5u);
  EXPECT_EQ(rows({{"document_prefix", ""}}), 4u);
  EXPECT_EQ(rows({{"model_type", "ColBERT"}}), 4u);
  EXPECT_EQ(rows({{"model_type", "ColBERT"}, {"skiplist_words", json::array()}}), 5u);
}

TEST_F(HostileLateFolder, OfStanford) {
  Copy("stanford");
  // The projection is the model's own tensor, and is read: nothing tells that it is ignored.
  const MultiVectorEncoder whole = Taken(MultiVectorEncoder::Open(folder_.path()));
  for (const Decision& decision : whole.Describe()) {
    EXPECT_EQ(decision.value.find("'linear.weight'"), std::string::npos) << decision.value;
  }
  Refused("artifact.metadata", {{"doc_maxlen", "many"}}, "doc_maxlen");
  Refused("artifact.metadata", {{"query_maxlen", 200}}, "80");
  std::filesystem::copy_file(std::string(ENCORE_TEST_DATA_DIR) + "/text/base/model.safetensors",
                             folder_.File("other.safetensors"));
  std::filesystem::remove(folder_.File("artifact.metadata"));
  const MultiVectorEncoder plain = Taken(MultiVectorEncoder::Open(folder_.path()));
  EXPECT_EQ(plain.max_length(TextTask::kQuery), 32u);
}

}  // namespace
}  // namespace encore
