// SPDX-License-Identifier: Apache-2.0
//
// `encore calibrate` of files: the scales that it writes, what they mend, and what is refused.
// Of folders: convert_folder_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"
#include "tests/support/weights_file.h"

namespace encore {
namespace {

constexpr size_t kTokens = 24;

class CalibrateTest : public CliTest {
 protected:
  void WriteInput(const std::vector<float>& x, size_t width = kFileModel) {
    const SafetensorsEntry entry{"x", DType::kF32, Shape(1, x.size() / width, width),
                                 std::as_bytes(std::span(x))};
    const Status status = WriteSafetensors(input_, std::span(&entry, 1));
    ASSERT_TRUE(status.ok()) << status.message();
  }

  CliResult Calibrate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"calibrate", in_, out_, "--input", input_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::filesystem::remove(out_);
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }

  void ExpectCalibrateRefused(const std::vector<std::string>& words) {
    std::filesystem::remove(out_);
    const std::vector<std::string> before = Files();
    ExpectRefused({"calibrate", in_, out_, "--input", input_}, words);
    EXPECT_EQ(Files(), before);
  }

  std::vector<float> Read(const std::string& path, const std::string& tensor) const {
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
    if (!file.ok() || file->Find(tensor) == nullptr) return {};
    const Tensor values = *file->ReadAsF32(tensor);
    const auto* data = static_cast<const float*>(values.data());
    return {data, data + values.size_bytes() / sizeof(float)};
  }

  const std::string in_ = Path("in");
  const std::string out_ = Path("out");
  const std::string input_ = Path("input");
};

// Of the first projection, whose input is x itself: value rows of the weights count, no others.
TEST_F(CalibrateTest, ScalesAreThoseOfTheLargestInputsAndWeights) {
  WriteWeightsFile(in_, {.change = [](const std::string& name, std::vector<float>& numbers) {
                     if (name != "layers.0.self_attn.in_proj_weight") return;
                     numbers[7] = 1000;                         // of a query
                     for (size_t n = 0; n < kFileModel; ++n) {  // of all values
                       numbers[(2 * kFileModel + n) * kFileModel + 9] = 0;
                     }
                   }});
  std::vector<float> x = RandomFloats(kTokens * kFileModel, 1);
  x[5 * kFileModel + 3] = -40;
  for (size_t t = 0; t < kTokens; ++t) x[t * kFileModel + 4] = 0;
  WriteInput(x);
  Calibrate();
  const std::vector<float> w = Read(in_, "layers.0.self_attn.in_proj_weight");
  std::vector<double> m(kFileModel);
  std::vector<double> c(kFileModel);
  for (size_t i = 0; i < kFileModel; ++i) {
    for (size_t t = 0; t < kTokens; ++t)
      m[i] = std::max<double>(m[i], std::abs(x[t * kFileModel + i]));
    for (size_t n = 2 * kFileModel; n < 3 * kFileModel; ++n) {
      c[i] = std::max<double>(c[i], std::abs(w[n * kFileModel + i]));
    }
  }
  const double m_least = *std::max_element(m.begin(), m.end()) / 1024;
  const double c_least = *std::max_element(c.begin(), c.end()) / 1024;
  std::vector<double> s(kFileModel);
  for (size_t i = 0; i < kFileModel; ++i) {
    s[i] = std::sqrt(std::max(m[i], m_least) / std::max(c[i], c_least));
  }
  const double largest = *std::max_element(s.begin(), s.end());
  const std::vector<float> found = Read(out_, "layers.0.self_attn.in_proj_input_scale");
  ASSERT_EQ(found.size(), kFileModel);
  for (size_t i = 0; i < kFileModel; ++i) {
    const double wanted = std::max(s[i] / largest, 1.0 / 256);
    EXPECT_NEAR(found[i], wanted, 1e-5 * wanted) << i;
  }
}

// Channels far above the others take most of a row's 8 bits. Their scales give these back.
TEST_F(CalibrateTest, MendsOutlierChannels) {
  constexpr size_t kEvery = 16;
  WriteWeightsFile(in_, {.change = [](const std::string& name, std::vector<float>& numbers) {
                     if (!name.ends_with("linear1.bias")) return;
                     for (size_t i = 0; i < numbers.size(); i += kEvery) numbers[i] = 30;
                   }});
  const std::vector<float> x = RandomFloats(kTokens * kFileModel, 1);
  WriteInput(x);
  const CliResult result = Calibrate({"--suggest-keep"});
  EXPECT_NE(result.out.find("input scales of 8 matrices from 24 tokens"), std::string::npos);
  EXPECT_NE(result.out.find("median"), std::string::npos) << result.out;
  const std::vector<float> others = RandomFloats(kTokens * kFileModel, 2);
  const std::vector<float> exact = OutputOfFile(in_, Precision::kF32, {}, others);
  const double plain = RelativeSquare(OutputOfFile(in_, Precision::kInt8, {}, others), exact);
  const double mended = RelativeSquare(OutputOfFile(out_, Precision::kInt8, {}, others), exact);
  EXPECT_LT(mended, plain / 2);
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    EXPECT_TRUE(SameBits(OutputOfFile(out_, precision, {}, others),
                         OutputOfFile(in_, precision, {}, others)))
        << "other precisions are as they were";
  }
  ASSERT_EQ(Encore({"convert", out_, Path("int8"), "--precision", "int8"}).status, 0);
  EXPECT_TRUE(SameBits(OutputOfFile(Path("int8"), others),
                       OutputOfFile(out_, Precision::kInt8, {}, others)));
}

TEST_F(CalibrateTest, NothingToGoByIsAllOnes) {
  WriteWeightsFile(in_);
  WriteInput(std::vector<float>(kTokens * kFileModel));
  Calibrate();
  EXPECT_EQ(Read(out_, "layers.0.self_attn.in_proj_input_scale"),
            std::vector<float>(kFileModel, 1.0f));
  EXPECT_EQ(Read(out_, "layers.1.linear2.input_scale").size(), kFileInner);
}

TEST_F(CalibrateTest, WhatIsRefused) {
  WriteWeightsFile(in_);
  WriteInput(std::vector<float>(48, 1.0f), 48);
  ExpectCalibrateRefused({"--input", "x is F32 [1, 1, 48]", "[B, S, 64]"});
  std::vector<float> x = RandomFloats(kTokens * kFileModel, 1);
  x[70] = std::numeric_limits<float>::quiet_NaN();
  WriteInput(x);
  ExpectCalibrateRefused({"layer 0's qkv was NaN or infinite"});
  x[70] = std::numeric_limits<float>::infinity();
  WriteInput(x);
  ExpectCalibrateRefused({"layer 0's qkv was NaN or infinite"});
  x[70] = 0;
  WriteInput(x);
  Calibrate();
  ExpectRefused({"calibrate", out_, Path("twice"), "--input", input_},
                {"layers.0.self_attn.in_proj_input_scale", "not calibrated before"});
  ExpectRefused({"calibrate", in_, out_, "--input", input_}, {"exists already"});
  ASSERT_EQ(Encore({"convert", in_, Path("int8"), "--precision", "int8"}).status, 0);
  ExpectRefused({"calibrate", Path("int8"), Path("twice"), "--input", input_},
                {"scale", "wanted weights of floats"});
}

}  // namespace
}  // namespace encore
