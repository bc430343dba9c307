// SPDX-License-Identifier: Apache-2.0
//
// `encore run`: flags, kinds of input, and input it refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/safetensors.h"
#include "encore/tensor.h"
#include "tests/cli/cli_runner.h"
#include "tools/encore/run_batch.h"

namespace encore {
namespace {

const std::string kGolden = ENCORE_TEST_DATA_DIR "/golden/";

// Tensors for a file, made by hand.
struct Named {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

template <typename T>
Named Make(const std::string& name, const Shape& shape, const std::vector<T>& values) {
  Named named{name, DTypeOf<T>::value, shape, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(named.bytes.data(), values.data(), named.bytes.size());
  return named;
}

// Elements that are not true are whatever the fill is; bool has no std::vector that holds bytes.
Named MakeBool(const std::string& name, const Shape& shape, const std::vector<uint8_t>& values) {
  Named named = Make<uint8_t>(name, shape, values);
  named.dtype = DType::kBool;
  return named;
}

std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  return values;
}

class CliRunTest : public CliTest {
 protected:
  // d_model 16, 2 heads, one layer, post-norm, relu.
  std::string weights_ = kGolden + "padding_post.weights.safetensors";

  void WriteInput(const std::vector<Named>& tensors) {
    std::vector<SafetensorsEntry> entries;
    for (const Named& t : tensors) entries.push_back({t.name, t.dtype, t.shape, t.bytes});
    const Status status = WriteSafetensors(Path("x"), entries);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run",     "--weights", weights_, "--input",
                                          Path("x"), "--output",  Path("y")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Runs on the input written before and returns a tensor of the output.
  std::vector<float> Output(const std::string& name, const std::vector<std::string>& more = {},
                            const Shape& shape = {}) {
    const CliResult result = Encore(Arguments(more));
    EXPECT_EQ(result.status, 0) << result.err;
    const SafetensorsFile file = Taken(SafetensorsFile::Open(Path("y")));
    const Tensor tensor = Taken(file.Read(name));
    EXPECT_EQ(tensor.dtype(), DType::kF32);
    if (shape.rank() > 0) {
      EXPECT_EQ(tensor.shape(), shape);
    }
    const auto* data = static_cast<const float*>(tensor.data());
    return std::vector<float>(data, data + tensor.size_bytes() / sizeof(float));
  }

  // Refused, and only the input is there afterwards.
  void ExpectInputRefused(const std::vector<Named>& tensors, const std::vector<std::string>& words,
                          const std::vector<std::string>& more = {}) {
    WriteInput(tensors);
    ExpectRefused(Arguments(more), words);
    EXPECT_EQ(Files(), std::vector<std::string>{"x"});
  }
};

TEST_F(CliRunTest, PaddingWithHolesIsThePackedBatch) {
  const std::vector<float> x = Ramp(2 * 4 * 16);
  WriteInput(
      {Make("x", {2, 4, 16}, x), MakeBool("key_padding_mask", {2, 4}, {0, 1, 0, 0, 1, 0, 0, 1})});
  const std::vector<float> padded = Output("y", {}, {2, 4, 16});
  const std::vector<float> padded_weights =
      Output("attention.0", {"--attention-weights"}, {2, 2, 4, 4});
  const std::vector<float> padded_hidden = Output("hidden.0", {"--hidden-states"}, {2, 4, 16});
  EXPECT_EQ(padded_hidden, padded);

  const std::vector<size_t> rows = {0, 2, 3, 5, 6};
  std::vector<float> packed;
  for (size_t row : rows)
    packed.insert(packed.end(), x.begin() + 16 * row, x.begin() + 16 * (row + 1));
  WriteInput({Make("x", {5, 16}, packed), Make<int64_t>("seq_lengths", {2}, {3, 2})});
  const std::vector<float> y = Output("y", {}, {5, 16});
  const std::vector<float> weights = Output("attention.0", {"--attention-weights"}, {2, 2, 3, 3});
  std::vector<float> expected(2 * 4 * 16);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(y.begin() + 16 * i, 16, expected.begin() + 16 * rows[i]);
  }
  EXPECT_EQ(padded, expected);

  std::vector<float> expected_weights(2 * 2 * 4 * 4);
  const size_t starts[] = {0, 3, 5};
  for (size_t b = 0; b < 2; ++b) {
    for (size_t h = 0; h < 2; ++h) {
      for (size_t i = starts[b]; i < starts[b + 1]; ++i) {
        for (size_t j = starts[b]; j < starts[b + 1]; ++j) {
          const size_t from = ((b * 2 + h) * 3 + i - starts[b]) * 3 + j - starts[b];
          const size_t to = ((b * 2 + h) * 4 + rows[i] - 4 * b) * 4 + rows[j] - 4 * b;
          expected_weights[to] = weights[from];
        }
      }
    }
  }
  EXPECT_EQ(padded_weights, expected_weights);
}

TEST_F(CliRunTest, ThreadsAndExecutorsChangeNoBit) {
  WriteInput({Make("x", {3, 7, 16}, Ramp(3 * 7 * 16))});
  const std::vector<float> y = Output("y", {"--executor", "inline"});
  EXPECT_EQ(Output("y"), y);
  for (const char* threads : {"0", "1", "2", "3", "7"}) {
    EXPECT_EQ(Output("y", {"--threads", threads}), y) << threads;
  }
}

TEST_F(CliRunTest, FlagsOverrideTheMetadata) {
  WriteInput({Make("x", {1, 5, 16}, Ramp(5 * 16))});
  const std::vector<float> y = Output("y");
  const std::vector<std::string> same = {"--nhead",         "2",     "--activation", "relu",
                                         "--no-norm-first", "--eps", "1e-5"};
  EXPECT_EQ(Output("y", same), y);
  EXPECT_NE(Output("y", {"--nhead", "4"}), y);
  EXPECT_NE(Output("y", {"--activation", "gelu"}), y);
  EXPECT_NE(Output("y", {"--norm-first"}), y);
  EXPECT_NE(Output("y", {"--eps", "0.1"}), y);
  EXPECT_NE(Output("y", {"--causal"}), y);

  WriteInput({Make("x", {1, 5, 16}, Ramp(5 * 16))});
  weights_ = kGolden + "padding_pre.weights.safetensors";
  const std::vector<float> pre_norm = Output("y");
  EXPECT_EQ(Output("y", {"--norm-first"}), pre_norm);
  EXPECT_NE(Output("y", {"--no-norm-first"}), pre_norm);
}

TEST_F(CliRunTest, OtherFloatsAreConverted) {
  const std::vector<float> x = Ramp(5 * 16);  // multiples of 1/8: exact in every type
  WriteInput({Make("x", {1, 5, 16}, x)});
  const std::vector<float> y = Output("y");
  WriteInput({Make("x", {1, 5, 16}, std::vector<double>(x.begin(), x.end()))});
  EXPECT_EQ(Output("y"), y);
  std::vector<uint16_t> bf16;
  for (float value : x) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bf16.push_back(static_cast<uint16_t>(bits >> 16));
  }
  Named named{"x", DType::kBF16, {1, 5, 16}, std::vector<std::byte>(2 * bf16.size())};
  std::memcpy(named.bytes.data(), bf16.data(), named.bytes.size());
  WriteInput({named});
  EXPECT_EQ(Output("y"), y);
}

TEST_F(CliRunTest, MasksOfEitherKindAgree) {
  const float inf = std::numeric_limits<float>::infinity();
  const Named x = Make("x", {2, 3, 16}, Ramp(2 * 3 * 16));
  WriteInput({x});
  const std::vector<float> causal = Output("y", {"--causal"});
  WriteInput({x, MakeBool("attn_mask", {3, 3}, {0, 1, 1, 0, 0, 1, 0, 0, 0})});
  EXPECT_EQ(Output("y"), causal);
  WriteInput({x, Make<float>("attn_mask", {3, 3}, {0, -inf, -inf, 0, 0, -inf, 0, 0, 0})});
  EXPECT_EQ(Output("y"), causal);
  WriteInput({x, Make<double>("attn_mask", {3, 3}, {0, -inf, -inf, 0, 0, -inf, 0, 0, 0})});
  EXPECT_EQ(Output("y"), causal);
}

TEST_F(CliRunTest, OutputMayReplaceTheInput) {
  const std::vector<float> x = Ramp(5 * 16);
  WriteInput({Make("x", {1, 5, 16}, x)});
  const std::vector<float> y = Output("y");
  const CliResult result =
      Encore({"run", "--weights", weights_, "--input", Path("x"), "--output", Path("x")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(ReadFile(Path("x")), ReadFile(Path("y")));
  EXPECT_EQ(Files(), (std::vector<std::string>{"x", "y"}));
}

TEST_F(CliRunTest, RefusesUnfitInput) {
  const Named x = Make("x", {2, 3, 16}, Ramp(2 * 3 * 16));
  const Named packed = Make("x", {6, 16}, Ramp(6 * 16));
  ExpectInputRefused({}, {"no tensor x"});
  ExpectInputRefused({Make("x", {2, 3, 15}, Ramp(2 * 3 * 15))}, {"[2, 3, 15]", "16"});
  ExpectInputRefused({Make("x", {16}, Ramp(16))}, {"[16]"});
  ExpectInputRefused({Make<int32_t>("x", {1, 1, 16}, std::vector<int32_t>(16))},
                     {"I32 [1, 1, 16]"});
  ExpectInputRefused({Make("x", {2, 0, 16}, Ramp(0))}, {"[2, 0, 16]"});
  ExpectInputRefused({x, Make("mask", {1}, Ramp(1))}, {"'mask'"});
  ExpectInputRefused({x, Make("a\nb", {1}, Ramp(1))}, {"unknown"});
  ExpectInputRefused({x, Make<int64_t>("seq_lengths", {2}, {3, 3})}, {"seq_lengths"});
  ExpectInputRefused({x, MakeBool("key_padding_mask", {2, 4}, std::vector<uint8_t>(8))},
                     {"key_padding_mask", "[2, 4]", "[2, 3]"});
  ExpectInputRefused({x, Make("key_padding_mask", {2, 3}, Ramp(6))}, {"key_padding_mask", "BOOL"});
  ExpectInputRefused({x, MakeBool("key_padding_mask", {2, 3}, {0, 1, 2, 0, 0, 0})},
                     {"key_padding_mask"});
  ExpectInputRefused({x, MakeBool("attn_mask", {2, 3}, std::vector<uint8_t>(6))},
                     {"attn_mask", "[2, 3]", "[3, 3]"});
  ExpectInputRefused({x, MakeBool("attn_mask", {4, 4}, std::vector<uint8_t>(16))}, {"[3, 3]"});
  ExpectInputRefused({x, Make<int64_t>("attn_mask", {3, 3}, std::vector<int64_t>(9))},
                     {"attn_mask", "I64"});
  ExpectInputRefused({packed}, {"seq_lengths", "missing"});
  ExpectInputRefused({packed, Make<int32_t>("seq_lengths", {2}, {3, 3})},
                     {"seq_lengths", "I32", "I64"});
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {2}, {3, 2})}, {"5", "6"});
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {2}, {3, 4})}, {"seq_lengths[1]", "4"});
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {2}, {-3, 9})},
                     {"seq_lengths[0]", "-3"});
  const int64_t huge = std::numeric_limits<int64_t>::max();
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {3}, {huge, huge, 8})},
                     {"seq_lengths[0]"});
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {1, 2}, {3, 3})}, {"[1, 2]"});
  ExpectInputRefused({packed, Make<int64_t>("seq_lengths", {2}, {3, 3}),
                      MakeBool("key_padding_mask", {2, 3}, std::vector<uint8_t>(6))},
                     {"key_padding_mask"});
}

TEST_F(CliRunTest, RefusesAnEmptyInputOfManySequences) {
  WriteBytes(Path("x"),
             SafetensorsBytes(
                 R"({"x":{"dtype":"F32","shape":[1099511627776,0,16],"data_offsets":[0,0]}})"));
  ExpectRefused(Arguments(), {"--input", "1099511627776"});
}

TEST_F(CliRunTest, RefusesUnfitFlags) {
  const std::vector<Named> x = {Make("x", {2, 3, 16}, Ramp(2 * 3 * 16))};
  ExpectInputRefused(x, {"nhead", "3", "16"}, {"--nhead", "3"});
  ExpectInputRefused(x, {"--nhead"}, {"--nhead", "0"});
  ExpectInputRefused(x, {"--nhead"}, {"--nhead", "-2"});
  ExpectInputRefused(x, {"--nhead", "99999999999999999999"}, {"--nhead", "99999999999999999999"});
  ExpectInputRefused(x, {"--activation", "swash", "relu"}, {"--activation", "swash"});
  ExpectInputRefused(x, {"--eps", "nan"}, {"--eps", "nan"});
  ExpectInputRefused(x, {"--eps"}, {"--eps", "-1"});
  ExpectInputRefused(x, {"--eps", "inf"}, {"--eps", "inf"});
  ExpectInputRefused(x, {"--target", "AVX9", SupportedTargets()[0]}, {"--target", "AVX9"});
  ExpectInputRefused(x, {"--threads"}, {"--threads", "-1"});
  ExpectInputRefused(x, {"--threads"}, {"--threads", "two"});
  ExpectInputRefused(x, {"--threads", "2"}, {"--executor", "inline", "--threads", "2"});
  ExpectInputRefused(x, {"--executor"}, {"--executor", "tbb"});
  ExpectInputRefused(x, {"--threads"}, {"--executor", "pool", "--threads", "1025"});
  ExpectRefused({"run", "--weights", weights_, "--output", Path("y")}, {"--input"});
  ExpectInputRefused(x, {"--threads"}, {"--threads", ""});
  ExpectInputRefused(x, {"--nhead"}, {"--nhead", ""});
  for (const std::string flag : {"--eps", "--activation", "--target"}) {
    ExpectInputRefused(x, {flag, "found nothing"}, {flag, ""});
  }
}

TEST_F(CliRunTest, RefusesToReplaceTheWeights) {
  WriteInput({Make("x", {2, 3, 16}, Ramp(2 * 3 * 16))});
  const std::string bytes = ReadFile(weights_);
  WriteFile(Path("w"), bytes);
  ExpectRefused({"run", "--weights", Path("w"), "--input", Path("x"), "--output", Path("./w")},
                {"--output", "--weights", "wanted another"});
  EXPECT_EQ(ReadFile(Path("w")), bytes);
}

TEST_F(CliRunTest, RefusesFilesThatAreMissingBrokenOrFolders) {
  WriteInput({Make("x", {2, 3, 16}, Ramp(2 * 3 * 16))});
  const std::string input = Path("x");
  const std::string output = Path("y");
  const auto refused = [&](const std::string& weights, const std::string& in,
                           const std::string& out, const std::vector<std::string>& words) {
    ExpectRefused({"run", "--weights", weights, "--input", in, "--output", out}, words);
  };
  refused(Path("none"), input, output, {"--weights", Path("none")});
  refused(weights_, Path("none"), output, {"--input", Path("none")});
  refused(Path(""), input, output, {"--weights", Path("")});
  refused(weights_, Path(""), output, {"--input"});
  refused(weights_, input, Path(""), {"--output"});
  refused(weights_, input, Path("no/y"), {"--output", "no/y"});
  refused(weights_, input, Path("x/y"), {"--output", "x/y"});
  // The system's own files: nobody may make one there.
  refused(weights_, input, "/proc/self/encore-y", {"--output", "/proc/self/encore-y"});
  refused(input, input, output, {"--weights"});
  refused(weights_, weights_, output, {"--input", "unknown tensor"});
  EXPECT_EQ(Files(), std::vector<std::string>{"x"});

  const std::string whole = ReadFile(weights_);
  for (size_t length :
       {size_t{0}, size_t{7}, size_t{8}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    WriteFile(Path("w"), whole.substr(0, length));
    refused(Path("w"), input, output, {"--weights", Path("w")});
  }
  EXPECT_EQ(Files(), (std::vector<std::string>{"w", "x"}));
}

TEST_F(CliRunTest, AFailureLeavesTheOldOutput) {
  WriteInput({Make("x", {2, 3, 15}, Ramp(2 * 3 * 15))});
  WriteFile(Path("y"), "as it was");
  ExpectRefused(Arguments(), {"[2, 3, 15]"});
  EXPECT_EQ(ReadFile(Path("y")), "as it was");
}

TEST(SpreadSquareTest, MovesTheCornerAndLeavesZeros) {
  const std::vector<size_t> positions = {0, 2, 3};
  std::vector<float> square = {1, 2, 3, 0,  //
                               4, 5, 6, 0,  //
                               7, 8, 9, 0,  //
                               0, 0, 0, 0};
  tool::SpreadSquare(square.data(), 4, positions);
  EXPECT_EQ(square, (std::vector<float>{1, 0, 2, 3,  //
                                        0, 0, 0, 0,  //
                                        4, 0, 5, 6,  //
                                        7, 0, 8, 9}));
}

}  // namespace
}  // namespace encore
