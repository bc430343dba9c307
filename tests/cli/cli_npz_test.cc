// SPDX-License-Identifier: Apache-2.0
//
// `encore embed` to .npz: sparse vectors and vectors of tokens are the library's, in a zip whose
// sizes and checksums are right.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

const std::string kHeadFolders = std::string(ENCORE_TEST_DATA_DIR "/heads/");
const std::string kLateFolder = std::string(ENCORE_TEST_DATA_DIR "/late/own");

uint64_t NumberAt(const std::string& bytes, size_t at, size_t count) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, count);
  return number;
}

// A bit at a time, as the definition has it.
uint32_t Checksum(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

struct NpyArray {
  std::string type;
  std::string shape;
  std::string bytes;

  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
};

std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

// By the directory at the end of the file, as readers of zip64 find it.
std::map<std::string, NpyArray> ReadNpz(const std::string& file) {
  std::map<std::string, NpyArray> arrays;
  const size_t locator = file.size() - 22 - 20;
  EXPECT_EQ(file.substr(locator, 4), "PK\x06\x07");
  const size_t end = NumberAt(file, locator + 8, 8);
  EXPECT_EQ(file.substr(end, 4), "PK\x06\x06");
  size_t at = NumberAt(file, end + 48, 8);
  EXPECT_EQ(at + NumberAt(file, end + 40, 8), end);
  for (size_t i = 0; i < NumberAt(file, end + 32, 8); ++i) {
    EXPECT_EQ(file.substr(at, 4), "PK\x01\x02");
    const size_t name_bytes = NumberAt(file, at + 28, 2);
    const std::string name = file.substr(at + 46, name_bytes);
    const size_t size = NumberAt(file, at + 46 + name_bytes + 4, 8);
    const size_t header = NumberAt(file, at + 46 + name_bytes + 20, 8);
    EXPECT_EQ(file.substr(header, 4), "PK\x03\x04");
    // The same in both headers: the checksum, and zip64's sizes.
    EXPECT_EQ(file.substr(at + 16, 4), file.substr(header + 14, 4));
    EXPECT_EQ(NumberAt(file, header + 30 + name_bytes + 4, 8), size);
    const std::string npy = file.substr(header + 30 + name_bytes + 20, size);
    EXPECT_EQ(npy.size(), size);
    EXPECT_EQ(NumberAt(file, at + 16, 4), Checksum(npy)) << name;
    EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    const size_t text_bytes = NumberAt(npy, 8, 2);
    const std::string text = npy.substr(10, text_bytes);
    EXPECT_EQ((10 + text_bytes) % 64, 0u);
    arrays[name] = {Between(text, "'descr': '", "'"), Between(text, "'shape': ", ", }"),
                    npy.substr(10 + text_bytes)};
    at += 46 + name_bytes + 28;
  }
  EXPECT_EQ(at, end);
  return arrays;
}

class CliNpzTest : public CliTest {
 protected:
  CliNpzTest() {
    // Several times what is computed at once.
    for (int i = 0; i < 700; ++i) {
      texts_.push_back("the harbour " + std::to_string(i) + (i % 3 == 0 ? " and bread" : ""));
    }
    texts_[5].clear();
    std::string input;
    for (const std::string& text : texts_) input += text + "\n";
    WriteFile(Path("x"), input);
  }

  std::vector<std::string> Arguments(const std::string& model,
                                     const std::vector<std::string>& more = {},
                                     const std::string& output = "v.npz") const {
    std::vector<std::string> arguments = {"embed",   "--model",  model,       "--input",
                                          Path("x"), "--output", Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::vector<std::string> texts_;
};

TEST_F(CliNpzTest, SparseVectorsAreThoseOfTheLibrary) {
  for (const auto& [name, more] :
       {std::pair("splade_bert", std::vector<std::string>{}),
        std::pair("m3", std::vector<std::string>{"--vectors", "sparse"})}) {
    const TextEncoder model = Taken(TextEncoder::Open(kHeadFolders + name));
    const SparseVectors wanted = Taken(model.EncodeSparse(texts_));
    const CliResult result = Encore(Arguments(kHeadFolders + name, more));
    ASSERT_EQ(result.status, 0) << result.err;
    const std::map<std::string, NpyArray> found = ReadNpz(ReadFile(Path("v.npz")));
    ASSERT_EQ(found.size(), 5u);
    EXPECT_EQ(found.at("format.npy").bytes, "csr");
    EXPECT_EQ(found.at("format.npy").type, "|S3");
    EXPECT_EQ(found.at("format.npy").shape, "()");
    EXPECT_EQ(found.at("shape.npy").type, "<i8");
    EXPECT_EQ(found.at("shape.npy").shape, "(2,)");
    EXPECT_EQ(found.at("shape.npy").As<int64_t>(),
              (std::vector<int64_t>{700, static_cast<int64_t>(wanted.columns)}));
    const std::string entries = "(" + std::to_string(wanted.values.size()) + ",)";
    EXPECT_EQ(found.at("data.npy").type, "<f4");
    EXPECT_EQ(found.at("data.npy").shape, entries);
    EXPECT_EQ(found.at("data.npy").As<float>(), wanted.values);
    EXPECT_EQ(found.at("indices.npy").type, "<i4");
    EXPECT_EQ(found.at("indices.npy").shape, entries);
    EXPECT_EQ(found.at("indices.npy").As<int32_t>(), wanted.indices);
    EXPECT_EQ(found.at("indptr.npy").type, "<i4");
    EXPECT_EQ(found.at("indptr.npy").shape, "(701,)");
    EXPECT_EQ(found.at("indptr.npy").As<int32_t>(),
              std::vector<int32_t>(wanted.row_starts.begin(), wanted.row_starts.end()));
  }
}

TEST_F(CliNpzTest, VectorsOfTokensAreThoseOfTheLibrary) {
  struct Case {
    std::string model;
    std::vector<std::string> more;
    TextTask task;
  };
  for (const Case& tried : {Case{kLateFolder, {}, TextTask::kNone},
                            Case{kLateFolder, {"--task", "query"}, TextTask::kQuery},
                            Case{kLateFolder, {"--task", "document"}, TextTask::kDocument},
                            Case{kHeadFolders + "m3", {"--vectors", "tokens"}, TextTask::kNone}}) {
    const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(tried.model));
    const MultiVectors wanted = Taken(model.Encode(texts_, {}, tried.task));
    const CliResult result = Encore(Arguments(tried.model, tried.more));
    ASSERT_EQ(result.status, 0) << result.err;
    const std::map<std::string, NpyArray> found = ReadNpz(ReadFile(Path("v.npz")));
    ASSERT_EQ(found.size(), 2u);
    const NpyArray& vectors = found.at("vectors.npy");
    EXPECT_EQ(vectors.type, "<f4");
    EXPECT_EQ(vectors.shape, "(" + std::to_string(wanted.row_starts.back()) + ", " +
                                 std::to_string(model.dimensions()) + ")");
    EXPECT_EQ(vectors.bytes, std::string(static_cast<const char*>(wanted.vectors.data()),
                                         wanted.vectors.size_bytes()));
    EXPECT_EQ(found.at("row_starts.npy").type, "<i8");
    EXPECT_EQ(found.at("row_starts.npy").shape, "(701,)");
    EXPECT_EQ(found.at("row_starts.npy").As<int64_t>(),
              std::vector<int64_t>(wanted.row_starts.begin(), wanted.row_starts.end()));
  }
}

TEST_F(CliNpzTest, VectorsOfTokensInFewerBytesAreThoseOfTheLibrary) {
  const MultiVectorEncoder model = Taken(MultiVectorEncoder::Open(kLateFolder));
  const MultiVectors rows = Taken(model.Encode(texts_));
  for (const auto& [type, name, numpy] :
       {std::tuple(DType::kBF16, "bf16", "<u2"), std::tuple(DType::kI8, "int8", "|i1")}) {
    const StoredVectors wanted = Taken(StoreVectors(rows.vectors.View<float>(), type));
    const CliResult result = Encore(Arguments(kLateFolder, {"--output-type", name}));
    ASSERT_EQ(result.status, 0) << result.err;
    const std::map<std::string, NpyArray> found = ReadNpz(ReadFile(Path("v.npz")));
    ASSERT_EQ(found.size(), type == DType::kI8 ? 3u : 2u);
    const auto bytes_of = [](const Tensor& tensor) {
      return std::string(static_cast<const char*>(tensor.data()), tensor.size_bytes());
    };
    const NpyArray& vectors = found.at("vectors.npy");
    EXPECT_EQ(vectors.type, numpy);
    EXPECT_EQ(vectors.shape, "(" + std::to_string(rows.row_starts.back()) + ", " +
                                 std::to_string(model.dimensions()) + ")");
    EXPECT_EQ(vectors.bytes, bytes_of(wanted.vectors));
    if (type != DType::kI8) continue;
    EXPECT_EQ(found.at("scales.npy").type, "<f4");
    EXPECT_EQ(found.at("scales.npy").shape, "(" + std::to_string(rows.row_starts.back()) + ",)");
    EXPECT_EQ(found.at("scales.npy").bytes, bytes_of(wanted.scales));
  }
}

TEST_F(CliNpzTest, AnEmptyInputGivesNoRows) {
  WriteFile(Path("x"), "");
  ASSERT_EQ(Encore(Arguments(kHeadFolders + "splade_bert")).status, 0);
  EXPECT_EQ(ReadNpz(ReadFile(Path("v.npz"))).at("indptr.npy").As<int32_t>(),
            std::vector<int32_t>{0});
  ASSERT_EQ(Encore(Arguments(kLateFolder)).status, 0);
  EXPECT_EQ(ReadNpz(ReadFile(Path("v.npz"))).at("vectors.npy").shape, "(0, 8)");
}

TEST_F(CliNpzTest, RefusesWhatDoesNotFit) {
  const auto expect_refused = [&](const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& words) {
    ExpectRefused(arguments, words);
    EXPECT_EQ(Files(), std::vector<std::string>{"x"});
  };
  expect_refused(Arguments(kHeadFolders + "splade_bert", {"--resume"}), {"--resume", "sparse"});
  expect_refused(Arguments(kHeadFolders + "splade_bert", {}, "v.npy"),
                 {"--output", ".npz", "sparse"});
  expect_refused(Arguments(kLateFolder, {"--resume"}), {"--resume", "tokens"});
  expect_refused(Arguments(kLateFolder, {"--max-active-dims", "2"}),
                 {"--max-active-dims", "tokens"});
  expect_refused(Arguments(kLateFolder, {}, "v.jsonl"), {"--output", ".npz"});
  expect_refused(Arguments(kLateFolder, {"--output-type", "f16"}),
                 {"--output-type", "f32, bf16 or int8"});
  expect_refused(Arguments(kHeadFolders + "m3", {"--output-type", "bf16"}, "v.npy"),
                 {"--output-type", "f32, f16, int8 or ubinary"});
  expect_refused(Arguments(kLateFolder, {"--vectors", "dense"}), {"--model", "late interaction"});
  expect_refused(Arguments(kHeadFolders + "m3"), {"--output", ".npy"});  // dense by default
  expect_refused(Arguments(kHeadFolders + "ner_bert", {"--vectors", "sparse"}), {"sparse"});
  expect_refused(Arguments(kHeadFolders + "ner_bert", {"--vectors", "tokens"}),
                 {"late interaction"});
}

}  // namespace
}  // namespace encore
