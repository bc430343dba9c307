// SPDX-License-Identifier: Apache-2.0
//
// BGE-M3's three kinds of vectors from one folder, beside what FlagEmbedding defines in float64
// (tests/make/m3_folders.py).

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "tests/support/executors.h"
#include "tests/support/torch_zip.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(M3Folder, GivesSparseVectors) {
  const json expected = ExpectedOf("m3");
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("m3")));
  EXPECT_EQ(model.sparse_dimensions(), model.tokenizer().vocab_size());
  EXPECT_EQ(model.dimensions(), model.d_model());
  const SparseVectors found = Taken(model.EncodeSparse(texts));
  ASSERT_EQ(found.row_starts.size(), texts.size() + 1);
  std::vector<double> wanted;
  std::vector<int32_t> indices;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(found.row_starts[i], wanted.size()) << "text " << i;
    const json& row = expected.at("sparse").at(i);
    for (const json& index : row.at("indices")) indices.push_back(index);
    for (const json& value : row.at("values")) wanted.push_back(value);
  }
  ASSERT_GT(wanted.size(), 20u);
  EXPECT_EQ(found.indices, indices);
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, value);
  double worst = 0;
  EXPECT_TRUE(
      Near({found.values.begin(), found.values.end()}, wanted, kHeadTolerance * largest, &worst));

  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 3}));
  SparseOptions options;
  options.executor = pool.executor();
  options.batch_tokens = 7;
  const SparseVectors again = Taken(model.EncodeSparse(texts, options));
  EXPECT_EQ(found.indices, again.indices);
  EXPECT_TRUE(SameBits(found.values, again.values));
  options.max_active_dims = 1;
  const SparseVectors one = Taken(model.EncodeSparse(texts, options));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_LE(one.row_starts[i + 1] - one.row_starts[i], 1u);
  }
  // Dense vectors too.
  EXPECT_TRUE(model.Encode(texts).ok());
}

TEST(M3Folder, GivesVectorsOfTokens) {
  const json expected = ExpectedOf("m3");
  const std::vector<std::string> texts = TextsOf(expected);
  const Result<MultiVectorEncoder> model = MultiVectorEncoder::Open(FolderOf("m3"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->dimensions(), 8u);
  EXPECT_TRUE(model->mean_similarity());
  json rows = json::array();
  size_t wanted_rows = 0;
  const MultiVectors documents = Taken(model->EncodeDocuments(texts));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(documents.row_starts[i], wanted_rows) << "text " << i;
    for (const json& row : expected.at("vectors").at(i)) rows.push_back(row);
    wanted_rows = rows.size();
  }
  ExpectNear(ValuesOf(documents.vectors), rows);
  const MultiVectors queries = Taken(model->EncodeQueries(texts));
  const std::span<const float> values = ValuesOf(documents.vectors);
  const std::span<const float> same = ValuesOf(queries.vectors);
  EXPECT_TRUE(SameBits({values.begin(), values.end()}, {same.begin(), same.end()}));
  EXPECT_EQ(queries.row_starts, documents.row_starts);
  // A text is as near to itself as can be.
  std::vector<float> scores(texts.size() * texts.size());
  ASSERT_TRUE(model
                  ->Similarity(queries.rows(), documents.rows(),
                               MutableView(scores.data(), Shape(texts.size(), texts.size())))
                  .ok());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_NEAR(scores[i * texts.size() + i], 1, 1e-6);
}

// FlagEmbedding asks for no file of sentence-transformers'.
TEST(M3Folder, OpensWithoutModules) {
  const CopiedFolder folder("m3");
  fs::remove(folder.path() + "/modules.json");
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  const TextEncoder usual = Taken(TextEncoder::Open(FolderOf("m3")));
  const Result<SparseVectors> found = model.EncodeSparse({"tea and bread"});
  const Result<SparseVectors> wanted = usual.EncodeSparse({"tea and bread"});
  ASSERT_TRUE(found.ok() && wanted.ok()) << found.status().message();
  EXPECT_EQ(found->indices, wanted->indices);
  EXPECT_EQ(found->values, wanted->values);
  EXPECT_TRUE(MultiVectorEncoder::Open(folder.path()).ok());
}

// Neither head is needed for dense vectors; what is wrong with one is said where it is wanted.
TEST(M3Folder, SaysWhatIsWrongWithAHead) {
  const CopiedFolder folder("m3");
  const auto expect_refused = [&](const std::string& part) {
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    EXPECT_TRUE(model.Encode({"tea"}).ok());
    EXPECT_EQ(model.sparse_dimensions(), 0u);
    const Status sparse = model.EncodeSparse({"tea"}).status();
    EXPECT_TRUE(FailsWith(sparse, {"sparse_linear.pt", part}, kAnyCode));
    bool told = false;
    for (const Decision& decision : model.Describe()) {
      told = told || (decision.what == "sparse vectors" && decision.source == sparse.message());
    }
    EXPECT_TRUE(told);
    EXPECT_TRUE(
        FailsWith(MultiVectorEncoder::Open(folder.path()), {"colbert_linear.pt", part}, kAnyCode));
  };
  const auto write = [&](const std::string& content) {
    folder.Write("sparse_linear.pt", content);
    folder.Write("colbert_linear.pt", content);
  };
  write("none");
  expect_refused("found no zip");
  write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  expect_refused("git-lfs");
  write(StoredZip({{"data.pkl",
                    "\x80\x02"
                    "cposix\nsystem\n" +
                        PickledText("true") + "\x85R."}}));
  expect_refused("'posix system'");
  const auto head = [&](const std::string& name, const std::vector<size_t>& shape, size_t bias) {
    size_t elements = 1;
    for (const size_t size : shape) elements *= size;
    const std::vector<size_t> strides =
        shape.size() == 2 ? std::vector<size_t>{shape[1], 1} : std::vector<size_t>{1};
    write(StoredZip(
        {{"data.pkl",
          PickledDict(PickledText(name) +
                      PickledTensor(PickledStorage("Float", "0", elements), 0, shape, strides) +
                      PickledText("bias") +
                      PickledTensor(PickledStorage("Float", "1", bias), 0, {bias}, {1}))},
         {"data/0", std::string(4 * elements, 0)},
         {"data/1", std::string(4 * bias, 0)}}));
  };
  head("weight", {2, 31}, 2);
  expect_refused("tensor 'weight': found shape [2, 31]; wanted [");
  head("weight", {32}, 1);
  expect_refused("tensor 'weight': found shape [32]");
  head("gain", {1, 32}, 1);
  expect_refused("unknown tensor 'gain'");
  head("weight", {1, 32}, 2);
  expect_refused("tensor 'bias': found shape [2]; wanted [1]");
  fs::remove(folder.path() + "/sparse_linear.pt");
  fs::remove(folder.path() + "/colbert_linear.pt");
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  EXPECT_TRUE(FailsWith(model.EncodeSparse({"tea"}), {"no sparse vectors"}, kAnyCode));
  EXPECT_TRUE(FailsWith(MultiVectorEncoder::Open(folder.path()), {"late interaction"}, kAnyCode));
}

}  // namespace
}  // namespace encore
