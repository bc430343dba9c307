// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save: what torch itself wrote, files made by hand, and all that is refused. No
// pickle is ever run, so a hostile one is a file like any other.

#include "engine/io/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/torch_pickle.h"
#include "tests/support/results.h"
#include "tests/support/torch_zip.h"

namespace encore {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

Result<NamedTensors> ReadTorch(const std::string& file) {
  const std::vector<char> exact(file.begin(), file.end());  // a sanitizer sees one byte too many
  return internal::ReadTorchFile(std::as_bytes(std::span(exact)));
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.size_bytes() / sizeof(float)};
}

std::string FloatBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string PickleOf(const std::string& tensor) {
  return PickledDict(PickledText("weight") + tensor);
}

// A matrix [2, 3] in one storage of `elements`.
std::string PickledMatrix(const std::string& kind, size_t elements, size_t offset = 0,
                          const std::vector<size_t>& shape = {2, 3},
                          const std::vector<size_t>& strides = {3, 1}) {
  return PickleOf(PickledTensor(PickledStorage(kind, "0", elements), offset, shape, strides));
}

void ExpectRefused(const std::string& file, const std::string& part) {
  EXPECT_TRUE(FailsWith(ReadTorch(file), {part}, kAnyCode));
}
void ExpectPickleRefused(const std::string& pickle, const std::string& part) {
  ExpectRefused(StoredZip({{"data.pkl", pickle}, {"data/0", FloatBytes({1, 2, 3, 4, 5, 6})}}),
                part);
}

TEST(TorchFile, GivesTensorsInThreeTypes) {
  const std::vector<float> values = {1, -2, 0.5f, 3, 4, 65504};
  const std::string f16("\x00\x3c\x00\xc0\x00\x38\x00\x42\x00\x44\xff\x7b", 12);
  const std::string bf16("\x80\x3f\x00\xc0\x00\x3f\x40\x40\x80\x40\x80\x47", 12);
  for (const auto& [kind, bytes] : {std::pair("Float", FloatBytes(values)), std::pair("Half", f16),
                                    std::pair("BFloat16", bf16)}) {
    const NamedTensors found = Taken(ReadTorch(StoredZip(
        {{"data.pkl", PickledMatrix(kind, 6)}, {"byteorder", "little"}, {"data/0", bytes}})));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ((found)[0].first, "weight");
    EXPECT_EQ((found)[0].second.shape(), Shape(2, 3));
    std::vector<float> wanted = values;
    if (std::string(kind) == "BFloat16") wanted[5] = 65536;
    EXPECT_EQ(FloatsOf((found)[0].second), wanted) << kind;
  }
}

TEST(TorchFile, ReadsWhatTorchWrote) {
  for (const auto& [name, shape] :
       {std::pair("sparse", Shape(1, 32)), std::pair("colbert", Shape(8, 32))}) {
    std::ifstream file(std::string(ENCORE_TEST_DATA_DIR "/heads/m3/") + name + "_linear.pt",
                       std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const NamedTensors found = Taken(ReadTorch(bytes));
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ((found)[0].first, "weight");
    EXPECT_EQ((found)[0].second.shape(), shape);
    EXPECT_EQ((found)[1].first, "bias");
    EXPECT_EQ((found)[1].second.shape(), Shape(shape[0]));
    // Cut anywhere, it is refused.
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(ReadTorch(bytes.substr(0, size)).ok()) << size;
    }
  }
}

TEST(TorchFile, GivesAPartOfAStorage) {
  const NamedTensors found = Taken(ReadTorch(
      StoredZip({{"data.pkl", PickledMatrix("Float", 6, 2, {2, 1},
                                            {1, 77})},  // the stride of one column is free
                 {"data/0", FloatBytes({1, 2, 3, 4, 5, 6})}})));
  EXPECT_EQ(FloatsOf((found)[0].second), (std::vector<float>{3, 4}));
}

TEST(TorchFile, RefusesWhatRunsCode) {
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "\x80\x02"
           "c" +
           name + "\n" + arguments + "R.";
  };
  ExpectPickleRefused(call("posix\nsystem", PickledText("touch /tmp/x") + "\x85"),
                      "the name 'posix system'");
  ExpectPickleRefused(call("builtins\neval", PickledText("1") + "\x85"), "'builtins eval'");
  ExpectPickleRefused(PickleOf(call("os\nsystem", PickledText("true") + "\x85").substr(2)),
                      "'os system'");
  ExpectPickleRefused(PickledDict(PickledText("x") + "ctorch.storage\n_load_from_bytes\n)R"),
                      "_load_from_bytes");
  // Protocol 0's and 4's ways to the same: INST, OBJ, NEWOBJ, STACK_GLOBAL, REDUCE of a text.
  for (const std::string& opcodes :
       {std::string("(iposix\nsystem\n"), std::string("(o"), std::string(")\x81"),
        PickledText("posix") + PickledText("system") + "\x93", PickledText("posix") + ")R",
        std::string("\x82\x01"), std::string("P0\n")}) {
    ExpectPickleRefused("\x80\x02" + opcodes + ".", "found opcode");
  }
}

TEST(TorchFile, RefusesOtherPickles) {
  const std::string tensor = PickledTensor(PickledStorage("Float", "0", 6), 0, {2, 3}, {3, 1});
  const std::string start("\x80\x02");
  ExpectPickleRefused("", "another start");
  ExpectPickleRefused("\x80\x04.", "another start");
  ExpectPickleRefused(start, "no end");
  ExpectPickleRefused(start + ".", "another value");
  ExpectPickleRefused(start + tensor + ".", "another value");
  ExpectPickleRefused(PickleOf(tensor) + "x", "another value");
  ExpectPickleRefused(PickledDict(PickledText("weight") + PickledNumber(3)), "no tensor by a name");
  ExpectPickleRefused(PickledDict(PickledNumber(3) + tensor), "no tensor by a name");
  ExpectPickleRefused(PickledDict(PickledText("weight") + tensor + PickledText("weight") + tensor),
                      "twice");
  std::string many;
  for (const char* name : {"a", "b", "c", "d", "e"}) many += PickledText(name) + tensor;
  ExpectPickleRefused(PickledDict(many), "more tensors");
  ExpectPickleRefused(PickledDict(PickledText("weight")), "opcode 0x75");  // a key without a value
  for (const char* opcodes : {"t", "u", "s", "b", "R", "Q", "q\x01", "h\x01", "(q\x01", "((\x86",
                              "X\xff\xff\xff\xff", "J\x01", "cposix", "\x85"}) {
    ExpectPickleRefused(start + opcodes, "found opcode");
  }
  ExpectPickleRefused(start + std::string(internal::kMaxPickleBytes, '}'), "bytes; wanted at most");
  // A dictionary of itself is no dictionary of tensors.
  ExpectPickleRefused(start + "}q\x01" + PickledText("x") + "h\x01s.", "no tensor by a name");
}

TEST(TorchFile, RefusesOtherTensors) {
  ExpectPickleRefused(PickledMatrix("Double", 6), "'torch DoubleStorage'");
  ExpectPickleRefused(PickledMatrix("Float", 6, 0, {2, 3}, {1, 2}), "do not follow each other");
  ExpectPickleRefused(PickledMatrix("Float", 6, 0, {2, 3}, {3}), "found opcode");
  ExpectPickleRefused(PickledMatrix("Float", 6, 1), "beyond its storage");
  ExpectPickleRefused(PickledMatrix("Float", 6, 7, {}, {}), "beyond its storage");
  ExpectPickleRefused(PickledMatrix("Float", 6, 0, {2, 0xFFFFFFFF}, {3, 1}), "found opcode");
  ExpectPickleRefused(
      PickledMatrix("Float", 0x7FFFFFFF, 0, {0x7FFFFFFF, 0x7FFFFFFF}, {0x7FFFFFFF, 1}),
      "beyond its storage");
  const std::string three = "(" + PickledNumber(1) + PickledNumber(1) + PickledNumber(1) + "t";
  std::string deep = PickledMatrix("Float", 6, 0, {1}, {1});
  for (int i = 0; i < 2; ++i) deep.replace(deep.find(PickledSizes({1})), 6, three);
  ExpectPickleRefused(deep, "a tensor of 3 dimensions");
  ExpectPickleRefused(PickledMatrix("Float", 7), "found 24 bytes; wanted 7 elements in F32");
  ExpectPickleRefused(PickledMatrix("Half", 6), "found 24 bytes; wanted 6 elements in F16");
  ExpectPickleRefused(PickleOf(PickledTensor(PickledStorage("Float", "1", 6), 0, {6}, {1})),
                      "no entry 'data/1'");
}

TEST(TorchFile, RefusesOtherZips) {
  const ZipEntries entries = {{"data.pkl", PickledMatrix("Float", 6)},
                              {"data/0", FloatBytes({1, 2, 3, 4, 5, 6})}};
  const std::string good = StoredZip(entries);
  ASSERT_TRUE(ReadTorch(good).ok());
  ExpectRefused("", "found no zip");
  ExpectRefused("\x80\x02}.", "found no zip");  // torch.save before 1.6
  ExpectRefused(good + "x", "no directory");
  ExpectRefused(StoredZip({{"data.bin", "x"}}), "data.pkl");
  ExpectRefused(StoredZip({{"data.pkl", PickledMatrix("Float", 6)}, {"byteorder", "big"}}),
                "byteorder");
  ExpectRefused(StoredZip({{"data.pkl", "x"}, {"data.pkl", "x"}}), "found it twice");
  const auto changed = [&](size_t from_end, const std::string& bytes) {
    std::string file = good;
    return file.replace(file.size() - from_end, bytes.size(), bytes);
  };
  ExpectRefused(changed(10, "\xff\xff\xff\xff"), "a directory beyond the end");  // its size
  ExpectRefused(changed(6, "\xff\xff\xff\xff"), "a directory beyond the end");   // its place
  ExpectRefused(changed(12, "\x03"), "a broken directory");                      // its entries
  // The last entry of the directory: method, sizes, name's length, header's place.
  const size_t last = 22 + 46 + 11;
  ExpectRefused(changed(last - 10, "\x08"), "found a compressed one");
  ExpectRefused(changed(last - 20, "\x17"), "found a compressed one");
  ExpectRefused(changed(last - 20, std::string("\xff\xff\xff\x0f\xff\xff\xff\x0f", 8)),
                "bytes beyond the end");
  ExpectRefused(changed(last - 28, "\xff"), "a broken directory");
  ExpectRefused(changed(last - 42, "\xff\xff\xff\xff"), "found no header");
}

}  // namespace
}  // namespace encore
