// SPDX-License-Identifier: Apache-2.0
//
// `encore convert` of files: a converted file computes what packing the original's floats computes,
// to the bit; and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"
#include "tests/support/weights_file.h"

namespace encore {
namespace {

class ConvertTest : public CliTest {
 protected:
  void Convert(const std::vector<std::string>& more, const std::string& counts = "8 matrices in ") {
    std::vector<std::string> arguments = {"convert", in_, out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::filesystem::remove(out_);
    const CliResult result = Encore(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find("out: " + counts), std::string::npos) << result.out;
  }

  // kBool: there is no such tensor.
  DType TypeOf(const std::string& tensor) const {
    const Result<SafetensorsFile> file = SafetensorsFile::Open(out_);
    const SafetensorsEntry* entry = file.ok() ? file->Find(tensor) : nullptr;
    return entry == nullptr ? DType::kBool : entry->dtype;
  }

  // And nothing is left behind.
  void ExpectConvertRefused(const std::vector<std::string>& more,
                            const std::vector<std::string>& words) {
    const std::vector<std::string> before = Files();
    std::vector<std::string> arguments = {"convert", in_, out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectRefused(arguments, words);
    EXPECT_EQ(Files(), before);
  }

  const std::string in_ = Path("in");
  const std::string out_ = Path("out");
};

TEST_F(ConvertTest, Int8HasTheBitsOfPackedFloats) {
  for (const bool norm_first : {false, true}) {
    SCOPED_TRACE(norm_first);
    WriteWeightsFile(in_, {.norm_first = norm_first});
    Convert({"--precision", "int8"});
    EXPECT_TRUE(SameBits(OutputOfFile(out_), OutputOfFile(in_, Precision::kInt8)));
    EXPECT_LT(std::filesystem::file_size(out_), std::filesystem::file_size(in_) * 2 / 5);
    const std::string layer = "layers.1.";
    EXPECT_EQ(TypeOf(layer + "linear1.weight"), DType::kI8);
    EXPECT_EQ(TypeOf(layer + "linear1.weight_scale"), DType::kF32);
    EXPECT_EQ(TypeOf(layer + "linear1.input_scale"), DType::kF32);
    EXPECT_EQ(TypeOf(layer + "self_attn.in_proj_weight_scale"), DType::kF32);
    EXPECT_EQ(TypeOf(layer + "self_attn.in_proj_input_scale"), DType::kF32);
    EXPECT_EQ(TypeOf(layer + "linear2.input_scale"), DType::kBool) << "not smoothed";
    EXPECT_EQ(TypeOf(layer + "norm1.weight"), DType::kF32);
  }
}

TEST_F(ConvertTest, KeptMatricesAreBf16) {
  WriteWeightsFile(in_);
  Convert({"--precision", "int8", "--keep", "0.linear1,1.out_proj"},
          "6 matrices in int8, 2 kept in bf16\n");
  const std::vector<MatrixOfLayer> keep = {{0, LayerMatrix::kLinear1}, {1, LayerMatrix::kOutProj}};
  EXPECT_TRUE(SameBits(OutputOfFile(out_), OutputOfFile(in_, Precision::kInt8, keep)));
  EXPECT_FALSE(SameBits(OutputOfFile(out_), OutputOfFile(in_, Precision::kInt8)));
  EXPECT_EQ(TypeOf("layers.0.linear1.weight"), DType::kBF16);
  EXPECT_EQ(TypeOf("layers.1.linear1.weight"), DType::kI8);
}

TEST_F(ConvertTest, Bf16HasTheBitsOfPackedFloats) {
  WriteWeightsFile(in_);
  Convert({"--precision", "bf16"});
  EXPECT_TRUE(SameBits(OutputOfFile(out_), OutputOfFile(in_, Precision::kBF16)));
  EXPECT_EQ(TypeOf("layers.0.linear1.weight"), DType::kBF16);
  EXPECT_EQ(TypeOf("layers.0.linear1.bias"), DType::kF32);
  EXPECT_EQ((*TorchWeights::Open(out_)).precision(), Precision::kBF16);
  EXPECT_EQ((*TorchWeights::Open(in_)).precision(), Precision::kF32);
}

// Rows of zeros, and of numbers so small that they count as such, need a scale above 0 in a file.
TEST_F(ConvertTest, RowsOfZeros) {
  WriteWeightsFile(in_, {.change = [](const std::string& name, std::vector<float>& numbers) {
                     if (!name.ends_with("linear2.weight")) return;
                     std::fill_n(numbers.begin(), kFileInner, 0.0f);
                     std::fill_n(numbers.begin() + kFileInner, kFileInner, 1e-35f);
                   }});
  Convert({"--precision", "int8"});
  EXPECT_TRUE(SameBits(OutputOfFile(out_), OutputOfFile(in_, Precision::kInt8)));
}

TEST_F(ConvertTest, ScalesOfInputsInTheFileAreUsed) {
  std::vector<float> scales = RandomFloats(kFileInner, 5);
  for (float& s : scales) s = std::abs(s) + 0.1f;
  WriteWeightsFile(
      in_,
      {.more = {{"layers.0.linear2.input_scale", scales},
                {"layers.1.linear1.input_scale", {scales.begin(), scales.begin() + kFileModel}}}});
  Convert({"--precision", "int8"});
  const std::vector<float> y = OutputOfFile(out_);
  EXPECT_TRUE(SameBits(y, OutputOfFile(in_, Precision::kInt8)));
  WriteWeightsFile(in_);
  EXPECT_FALSE(SameBits(y, OutputOfFile(in_, Precision::kInt8)));
}

// What is not int8 is the floats that the integers stand for, smoothing undone.
TEST_F(ConvertTest, OtherPrecisionsOfAnInt8FileAreNearTheOriginal) {
  WriteWeightsFile(in_);
  Convert({"--precision", "int8"});
  const std::vector<float> exact = OutputOfFile(in_, Precision::kF32);
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const double error = RelativeSquare(OutputOfFile(out_, precision), exact);
    EXPECT_LT(error, 1e-3);
    EXPECT_GT(error, 0);
  }
}

TEST_F(ConvertTest, NumbersThatCannotBeConverted) {
  const auto refuse = [&](size_t at, float value, const std::string& precision,
                          const std::vector<std::string>& words) {
    WriteWeightsFile(in_, {.change = [&](const std::string& name, std::vector<float>& numbers) {
                       if (name == "layers.1.self_attn.out_proj.weight") numbers[at] = value;
                     }});
    ExpectConvertRefused({"--precision", precision}, words);
  };
  const std::string tensor = "'layers.1.self_attn.out_proj.weight': row ";
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    refuse(3 * kFileModel, bad, "int8", {tensor + "3 has", "wanted finite ones for int8"});
    refuse(40 * kFileModel - 1, bad, "bf16", {tensor + "39 has", "wanted finite ones for bf16"});
  }
  refuse(0, std::numeric_limits<float>::max(), "bf16", {tensor + "0 has", "too large"});
}

TEST_F(ConvertTest, WhatIsRefused) {
  WriteWeightsFile(in_);
  ExpectConvertRefused({"--precision", "f32"}, {"--precision is f32", "wanted bf16 or int8"});
  ExpectConvertRefused({}, {"--precision"});
  ExpectConvertRefused({"--precision", "int8", "--keep", "2.linear1"}, {"layer 2", "2 layers"});
  ExpectConvertRefused({"--precision", "bf16", "--keep", "0.linear1"}, {"keep", "wanted int8"});
  ExpectRefused({"convert", in_, in_, "--precision", "int8"}, {"exists already"});
  ExpectRefused({"convert", Path("none"), out_, "--precision", "int8"}, {"IN", "none"});
  ExpectRefused({"convert", in_, Path("no/out"), "--precision", "int8"}, {"OUT"});
  for (const std::string precision : {"int8", "bf16"}) {
    Convert({"--precision", precision});
    ExpectRefused({"convert", out_, Path("twice"), "--precision", "int8"},
                  {"has been converted to " + precision, "wanted weights of floats"});
  }
}

}  // namespace
}  // namespace encore
