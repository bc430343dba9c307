// SPDX-License-Identifier: Apache-2.0
//
// The folders of tests/data/heads: static embeddings, token classifiers and sparse encoders, beside
// what sentence-transformers and transformers' pipeline compute in float64. And what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class StaticFolders : public testing::TestWithParam<const char*> {};

TEST_P(StaticFolders, GiveWhatSentenceTransformersGives) {
  const json expected = ExpectedOf(GetParam());
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  EXPECT_FALSE(model.has_encoder());
  const Embeddings found = Taken(model.Encode(texts));
  ExpectNear(ValuesOf(found.vectors), expected.at("vectors"));
  // A text's bits are the same alone and on threads.
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  std::vector<std::string> many;
  for (int i = 0; i < 300; ++i) many.insert(many.end(), texts.begin(), texts.end());
  EncodeOptions options;
  options.executor = pool.executor();
  const Embeddings again = Taken(model.Encode(many, options));
  const size_t size = found.vectors.size_bytes() / sizeof(float);
  EXPECT_TRUE(SameBits(ValuesOf(found.vectors), ValuesOf(again.vectors).subspan(299 * size, size)));
}

INSTANTIATE_TEST_SUITE_P(All, StaticFolders, testing::Values("static_f16", "model2vec"),
                         [](const auto& test) { return std::string(test.param); });

TEST(StaticFolder, CutsWhereTokenizerJsonSays) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("static_f16")));
  EXPECT_EQ(model.max_length(), 12u);
  const std::string text = "One two three. One two three. One two three. One two three.";
  const Embeddings cut = Taken(model.Encode({text}));
  EXPECT_EQ(cut.counts.tokens[0], 12u);
  EXPECT_GT(cut.counts.cut[0], 0u);
}

TEST(StaticFolder, RefusesWhatWantsLayers) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("model2vec")));
  EXPECT_EQ(model.EncodeTokens("tea").status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(model.FindEntities({"tea"}).status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(model.EncodeSparse({"tea"}).status().code(), ErrorCode::kUnsupported);
}

TEST(StaticFolder, RefusesTensorsThatDoNotFit) {
  const CopiedFolder folder("model2vec");
  const SafetensorsFile file =
      Taken(SafetensorsFile::Open(FolderOf("model2vec") + "/model.safetensors"));
  const std::string path = folder.path() + "/model.safetensors";
  Tensor mapping = *file.Read("mapping");
  const Tensor table = *file.Read("embeddings");
  const auto write = [&](const Tensor& rows, const Tensor& places) {
    const std::vector<SafetensorsEntry> entries = {MakeSafetensorsEntry("embeddings", rows),
                                                   MakeSafetensorsEntry("mapping", places)};
    ASSERT_TRUE(WriteSafetensors(path, entries).ok());
  };
  static_cast<int64_t*>(mapping.data())[3] = static_cast<int64_t>(table.shape()[0]);
  write(table, mapping);
  folder.ExpectRefused({"'mapping'", "at 3"});
  static_cast<int64_t*>(mapping.data())[3] = -1;
  write(table, mapping);
  folder.ExpectRefused({"'mapping'", "found -1"});
  write(mapping, mapping);
  folder.ExpectRefused({"'embeddings'", "found I64"});
  folder.Write("model.safetensors", "short");
  folder.ExpectRefused({"model.safetensors"});
}

TEST(StaticFolder, RefusesATokenizerThatIsNotThere) {
  const CopiedFolder folder("static_f16");
  fs::remove(folder.path() + "/tokenizer.json");
  folder.ExpectRefused({"tokenizer.json", "static embeddings"});
}

class TokenFolders : public testing::TestWithParam<std::string> {};

TEST_P(TokenFolders, GiveTheLogitsAndEntitiesOfTransformers) {
  const json expected = ExpectedOf(GetParam());
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  EXPECT_TRUE(model.labels_tokens());
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenLogits found = Taken(model.LabelTokens(texts[i]));
    ExpectNear(ValuesOf(found.logits), expected.at("logits").at(i));
  }
  for (const Aggregation aggregation :
       {Aggregation::kNone, Aggregation::kSimple, Aggregation::kFirst, Aggregation::kAverage,
        Aggregation::kMax}) {
    const std::string name(AggregationName(aggregation));
    LabelOptions options;
    options.aggregation = aggregation;
    options.ignore_labels = {};
    const Entities found = Taken(model.FindEntities(texts, options));
    for (size_t i = 0; i < texts.size(); ++i) {
      const json& wanted = expected.at("entities").at(name).at(i);
      const std::vector<Entity>& entities = found.of_texts[i];
      ASSERT_EQ(entities.size(), wanted.size()) << name << ", text " << i;
      for (size_t e = 0; e < entities.size(); ++e) {
        EXPECT_EQ(entities[e].label, wanted[e].at("label")) << name << ", text " << i;
        EXPECT_EQ(entities[e].place.begin, wanted[e].at("start")) << name << ", text " << i;
        EXPECT_EQ(entities[e].place.end, wanted[e].at("end")) << name << ", text " << i;
        EXPECT_NEAR(entities[e].score, wanted[e].at("score").get<double>(), 2e-6);
      }
    }
  }
  EXPECT_EQ(model.Classify({"tea"}).status().code(), ErrorCode::kUnsupported);
}

TEST_P(TokenFolders, LeaveOutWhatIsIgnored) {
  const json expected = ExpectedOf(GetParam());
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  const Entities found = Taken(model.FindEntities(TextsOf(expected)));
  size_t entities = 0;
  for (const std::vector<Entity>& of_text : found.of_texts) {
    for (const Entity& entity : of_text) EXPECT_NE(entity.label, "O");
    entities += of_text.size();
  }
  EXPECT_GT(entities, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, TokenFolders, testing::ValuesIn(FoldersNamed("ner_")),
                         [](const auto& test) { return test.param; });

void ExpectRows(const SparseVectors& found, const json& rows) {
  ASSERT_EQ(found.row_starts.size(), rows.size() + 1);
  double largest = 0;
  for (const json& row : rows) {
    for (const double value : row.at("values")) largest = std::max(largest, std::fabs(value));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto indices = rows[i].at("indices").get<std::vector<int32_t>>();
    const auto values = rows[i].at("values").get<std::vector<double>>();
    const size_t begin = found.row_starts[i];
    const std::vector<int32_t> support(
        found.indices.begin() + static_cast<ptrdiff_t>(begin),
        found.indices.begin() + static_cast<ptrdiff_t>(found.row_starts[i + 1]));
    ASSERT_EQ(support, indices) << "text " << i;
    for (size_t k = 0; k < values.size(); ++k) {
      EXPECT_NEAR(found.values[begin + k], values[k], kHeadTolerance * largest) << "text " << i;
    }
  }
}

class SparseFolders : public testing::TestWithParam<const char*> {};

TEST_P(SparseFolders, GiveWhatSentenceTransformersGives) {
  const json expected = ExpectedOf(GetParam());
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  EXPECT_GT(model.sparse_dimensions(), 0u);
  EXPECT_EQ(model.dimensions(), 0u);
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  for (const json& result : expected.at("results")) {
    SparseOptions options;
    if (result.at("task").is_string()) options.task = result.at("task").get<std::string>();
    const SparseVectors found = Taken(model.EncodeSparse(texts, options));
    EXPECT_EQ(found.columns, model.sparse_dimensions());
    ExpectRows(found, result.at("rows"));
    options.executor = pool.executor();
    options.batch_tokens = 7;
    const SparseVectors again = Taken(model.EncodeSparse(texts, options));
    EXPECT_EQ(found.indices, again.indices);
    EXPECT_TRUE(SameBits(found.values, again.values));
  }
  EXPECT_EQ(model.Encode(texts).status().code(), ErrorCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(All, SparseFolders,
                         testing::Values("splade_bert", "splade_distilbert", "splade_gte",
                                         "router"),
                         [](const auto& test) { return std::string(test.param); });

TEST(SparseFolder, KeepsTheLargest) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("splade_distilbert")));
  const Result<SparseVectors> all = model.EncodeSparse({"a harbour"});
  SparseOptions options;
  options.max_active_dims = 3;
  const Result<SparseVectors> some = model.EncodeSparse({"a harbour"}, options);
  ASSERT_TRUE(all.ok() && some.ok());
  ASSERT_EQ(some->values.size(), 3u);
  EXPECT_TRUE(std::is_sorted(some->indices.begin(), some->indices.end()));
  const float least = *std::min_element(some->values.begin(), some->values.end());
  EXPECT_EQ(std::count_if(all->values.begin(), all->values.end(),
                          [&](float value) { return value >= least; }),
            3);
}

// One without modules.json, whose model has no head.
TEST(SparseFolder, SaysThatThereIsNoHead) {
  EXPECT_TRUE(
      FailsWith(TextEncoder::Open(ENCORE_TEST_DATA_DIR "/text/base", {.language_head = true}),
                {"model.safetensors: found no tensor 'cls.predictions.transform.dense.weight'; "
                 "wanted the head of a masked language model"},
                ErrorCode::kUnsupported));
}

// Files have no copy of the table of words where the two are tied.
TEST(SparseFolder, SaysThatTheTableOfWordsIsNotTied) {
  for (const char* name : {"splade_bert", "mlm_modernbert", "mlm_eurobert"}) {
    SCOPED_TRACE(name);
    const CopiedFolder folder(name);
    json config = json::parse(std::ifstream(folder.path() + "/config.json"));
    config["tie_word_embeddings"] = false;
    folder.Write("config.json", config.dump());
    EXPECT_TRUE(FailsWith(TextEncoder::Open(folder.path(), {.language_head = true}),
                          {"model.safetensors: ", "tie_word_embeddings is not true", ".weight'"},
                          kAnyCode));
  }
}

TEST(SparseFolder, RefusesOtherTasksAndRouters) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("router")));
  SparseOptions options;
  options.task = "passage";
  EXPECT_EQ(model.EncodeSparse({"tea"}, options).status().code(), ErrorCode::kInvalidArgument);
  const CopiedFolder folder("router");
  const std::string file = folder.path() + "/router_config.json";
  json config = json::parse(std::ifstream(file));
  config["structure"]["query"] = config["structure"]["document"];
  folder.Write("router_config.json", config.dump());
  folder.ExpectRefused({"router_config.json", "another Router"});
  folder.Write("router_config.json", "{}");
  folder.ExpectRefused({"router_config.json", "types"});
}

TEST(SparseFolder, RefusesPoolingWithoutALanguageModel) {
  const CopiedFolder folder("splade_bert");
  folder.Write("sentence_bert_config.json", "{}");
  folder.ExpectRefused({"SpladePooling", "fill-mask"});
}

// Without modules.json the same model gives vectors of both kinds.
TEST(SparseFolder, IsOpenedWithoutModules) {
  const CopiedFolder folder("splade_bert");
  fs::remove(folder.path() + "/modules.json");
  OpenOptions options;
  const TextEncoder plain = Taken(TextEncoder::Open(folder.path(), options));
  EXPECT_EQ(plain.sparse_dimensions(), 0u);
  options.language_head = true;
  const TextEncoder model = Taken(TextEncoder::Open(folder.path(), options));
  const SparseVectors sparse = Taken(model.EncodeSparse({"tea"}));
  EXPECT_TRUE(model.Encode({"tea"}).ok());
  // The largest logit of the text's tokens is where the vector says.
  const TokenLogits logits = Taken(model.PredictTokens("tea", std::vector<size_t>{0, 1, 2}));
  const ConstView rows = logits.logits.View<float>();
  ASSERT_FALSE(sparse.indices.empty());
  for (size_t i = 0; i < sparse.indices.size(); ++i) {
    const auto j = static_cast<size_t>(sparse.indices[i]);
    const float largest = std::max({rows(0, j), rows(1, j), rows(2, j)});
    EXPECT_NEAR(sparse.values[i], std::log1p(largest), 1e-6);
  }
  EXPECT_EQ(model.PredictTokens("tea", std::vector<size_t>{3}).status().code(),
            ErrorCode::kInvalidArgument);
}

// The query's side of a Router by itself, with weights in a tensor and by token.
TEST(SparseFolder, OfStaticWeightsOpensAlone) {
  const CopiedFolder folder("router");
  const std::string query = folder.path() + "/query_0_SparseStaticEmbedding/";
  std::ofstream(query + "modules.json") << R"([{"idx": 0, "name": "0", "path": "", "type":
      "sentence_transformers.sparse_encoder.models.SparseStaticEmbedding"}])";
  const json expected = ExpectedOf("router");
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder router = Taken(TextEncoder::Open(folder.path()));
  const SparseVectors wanted = Taken(router.EncodeSparse(texts, {.task = "query"}));
  const auto expect_same = [&] {
    const TextEncoder model = Taken(TextEncoder::Open(query));
    EXPECT_FALSE(model.has_encoder());
    EXPECT_EQ(model.dimensions(), 0u);
    EXPECT_EQ(model.d_model(), 0u);
    EXPECT_EQ(model.sparse_dimensions(), wanted.columns);
    for (const char* task : {"", "query", "document"}) {
      SparseOptions options;
      if (*task != 0) options.task = task;
      const SparseVectors found = Taken(model.EncodeSparse(texts, options));
      EXPECT_EQ(found.indices, wanted.indices);
      EXPECT_EQ(found.values, wanted.values);
      EXPECT_EQ(found.row_starts, wanted.row_starts);
    }
    EXPECT_EQ(model.Encode({"tea"}).status().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(model.EncodeTokens("tea").status().code(), ErrorCode::kUnsupported);
    EXPECT_EQ(model.Classify({"tea"}).status().code(), ErrorCode::kUnsupported);
  };
  expect_same();

  const SafetensorsFile file = Taken(SafetensorsFile::Open(query + "model.safetensors"));
  const Tensor weights = Taken(file.Read("weight"));
  const json tokenizer = json::parse(std::ifstream(query + "tokenizer.json"));
  json idf = {{"no such token", 9.5}};  // the unknown token's, until its own comes
  const auto add = [&](const std::string& token, size_t id) {
    const float weight = static_cast<const float*>(weights.data())[id];
    if (weight != 0 || token == "[UNK]") idf[token] = weight;
  };
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) add(token, id);
  for (const json& token : tokenizer["added_tokens"]) add(token["content"], token["id"]);
  // nlohmann's objects are sorted: the one that is not there is moved to the front.
  std::string text = "{\"no such token\": 9.5";
  for (const auto& [token, weight] : idf.items()) {
    if (token != "no such token") text += ", " + json(token).dump() + ": " + weight.dump();
  }
  std::ofstream(query + "idf.json") << text << "}";
  std::ofstream(query + "config.json") << R"({"frozen": true, "path": "idf.json"})";
  fs::remove(query + "model.safetensors");
  expect_same();
  const Status of_task = TextEncoder::Open(query, {.task = "retrieval.query"}).status();
  EXPECT_NE(of_task.message().find("no adapters"), std::string::npos) << of_task.message();

  const auto refused = [&](const char* name, const std::string& content, const char* part) {
    std::ofstream(query + name) << content;
    const Status status = TextEncoder::Open(query).status();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused("idf.json", R"({"tea": "much"})", "'tea' is");
  refused("idf.json", R"({"tea": 1e300})", "in the range of f32");
  refused("idf.json", "[1]", "wanted an object");
  refused("config.json", R"({"path": "/somewhere/idf.json"})", "a file beside config.json");
  refused("config.json", R"({"path": "none.json"})", "none.json");
}

}  // namespace
}  // namespace encore
