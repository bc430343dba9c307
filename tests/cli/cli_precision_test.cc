// SPDX-License-Identifier: Apache-2.0
//
// --precision and --keep of every command that computes with an encoder: that they arrive, and what
// they refuse.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/precision.h"
#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/torch_weights.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"

namespace encore {
namespace {

using Json = nlohmann::json;

const std::string kBaseFolder = ENCORE_TEST_DATA_DIR "/text/base";
const std::string kRerankerFolder = ENCORE_TEST_DATA_DIR "/text/reranker";
// d_model 16, 2 heads, one layer.
const std::string kWeights = ENCORE_TEST_DATA_DIR "/golden/padding_post.weights.safetensors";

struct Choice {
  Precision precision = Precision::kF32;
  std::vector<MatrixOfLayer> keep = {};
  std::vector<std::string> arguments = {};
};

std::vector<Choice> Choices() {
  return {{},
          {.arguments = {"--precision", "f32"}},
          {.precision = Precision::kBF16, .arguments = {"--precision", "bf16"}},
          {.precision = Precision::kInt8, .arguments = {"--precision", "int8"}},
          {.precision = Precision::kInt8,
           .keep = {{0, LayerMatrix::kQkv}, {0, LayerMatrix::kLinear2}},
           .arguments = {"--precision", "int8", "--keep", "0.qkv,0.linear2"}},
          {.precision = Precision::kInt8,
           .keep = {{0, LayerMatrix::kOutProj}, {0, LayerMatrix::kLinear1}},
           .arguments = {"--precision", "int8", "--keep", "0.out_proj", "--keep", "0.linear1"}},
          {.precision = Precision::kInt4, .arguments = {"--precision", "int4"}},
          {.precision = Precision::kInt4,
           .keep = {{0, LayerMatrix::kLinear2}},
           .arguments = {"--precision", "int4", "--keep", "0.linear2"}}};
}

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<float> Values(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.size_bytes() / sizeof(float)};
}

class CliPrecisionTest : public CliTest {
 protected:
  std::vector<float> Written(const std::string& file, const std::string& name) const {
    const SafetensorsFile opened = Taken(SafetensorsFile::Open(Path(file)));
    const Result<Tensor> tensor = opened.Read(name);
    EXPECT_TRUE(tensor.ok());
    return tensor.ok() ? Values(*tensor) : std::vector<float>();
  }
};

TEST_F(CliPrecisionTest, RunComputesInIt) {
  const TorchWeights weights = Taken(TorchWeights::Open(kWeights));
  std::vector<float> x(5 * 16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 8 - 1;
  const std::vector<SafetensorsEntry> entries = {
      {"x", DType::kF32, {1, 5, 16}, std::as_bytes(std::span<const float>(x))}};
  ASSERT_TRUE(WriteSafetensors(Path("x"), entries).ok());
  std::vector<std::vector<float>> outputs;
  for (const Choice& choice : Choices()) {
    const CliResult result =
        Encore(With({"run", "--weights", kWeights, "--input", Path("x"), "--output", Path("y")},
                    choice.arguments));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find(" ms in " + std::string(PrecisionName(choice.precision)) + " with "),
              std::string::npos)
        << result.out;
    const Result<Encoder> encoder = Encoder::Create(
        weights.config(), weights.weights(), {.precision = choice.precision, .keep = choice.keep});
    ASSERT_TRUE(encoder.ok()) << encoder.status().message();
    const std::vector<size_t> starts = {0, 5};
    const Batch batch{.seq_starts = starts};
    std::vector<float> y(x.size());
    ASSERT_TRUE(encoder
                    ->Forward(batch, ConstView(x.data(), {5, 16}), MutableView(y.data(), {5, 16}),
                              *encoder->MakeWorkspace(batch))
                    .ok());
    EXPECT_TRUE(SameBits(Written("y", "y"), y));
    outputs.push_back(std::move(y));
  }
  // Each choice but the first two is something else.
  for (size_t i = 1; i < outputs.size(); ++i) {
    for (size_t j = i + 1; j < outputs.size(); ++j) EXPECT_NE(outputs[i], outputs[j]) << i << j;
  }
}

TEST_F(CliPrecisionTest, EmbedAndRerankComputeInIt) {
  const std::vector<std::string> texts = {"the bread", "these letters and the harbour"};
  WriteFile(Path("x"), texts[0] + "\n" + texts[1] + "\n");
  for (const Choice& choice : Choices()) {
    const OpenOptions open{.precision = choice.precision, .keep = choice.keep};
    const CliResult embed = Encore(With(
        {"embed", "--model", kBaseFolder, "--input", Path("x"), "--output", Path("v.safetensors")},
        choice.arguments));
    ASSERT_EQ(embed.status, 0) << embed.err;
    const TextEncoder model = Taken(TextEncoder::Open(kBaseFolder, open));
    EXPECT_TRUE(
        SameBits(Written("v.safetensors", "vectors"), Values((*model.Encode(texts)).vectors)));

    const CliResult rerank = Encore(With({"rerank", "--model", kRerankerFolder, "--query",
                                          "the tea", "--input", Path("x"), "--scores"},
                                         choice.arguments));
    ASSERT_EQ(rerank.status, 0) << rerank.err;
    const TextEncoder reranker = Taken(TextEncoder::Open(kRerankerFolder, open));
    std::vector<float> scores;
    std::istringstream lines(rerank.out);
    for (float score = 0; lines >> score;) scores.push_back(score);
    EXPECT_TRUE(SameBits(scores, (*reranker.Score("the tea", texts)).values));
  }
}

TEST_F(CliPrecisionTest, AttendDemoAndInfoSayIt) {
  const CliResult f32 = Encore({"attend", "--model", kBaseFolder, "these letters", "--json"});
  const CliResult int8 =
      Encore({"attend", "--model", kBaseFolder, "these letters", "--json", "--precision", "int8"});
  ASSERT_EQ(f32.status, 0) << f32.err;
  ASSERT_EQ(int8.status, 0) << int8.err;
  EXPECT_EQ(Json::parse(f32.out)["precision"], "f32");
  EXPECT_EQ(Json::parse(int8.out)["precision"], "int8");
  EXPECT_NE(Json::parse(f32.out)["weights"], Json::parse(int8.out)["weights"]);
  const auto says = [](const std::vector<std::string>& arguments, const std::string& words) {
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find(words), std::string::npos) << words << "\n" << result.out;
  };
  says({"attend", "--model", kBaseFolder, "these letters", "--precision", "bf16"},
       "heads, in bf16)");
  says({"demo", "--model", kBaseFolder, "--seconds", "0", "--precision", "bf16"},
       "computed in bf16");
  says({"info", kBaseFolder}, "f32");
  says({"info", kBaseFolder, "--precision", "bf16"}, "bf16 in the layers, f32 in all else");
  const CliResult info =
      Encore({"info", kBaseFolder, "--json", "--precision", "int8", "--keep", "1.qkv,0.linear1"});
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_EQ(Json::parse(info.out)["precision"], "int8");
  EXPECT_NE(info.out.find("int8 in the layers (2 kept in bf16), f32 in all else"),
            std::string::npos);
}

TEST_F(CliPrecisionTest, HelpListsIt) {
  for (const char* command : {"run", "embed", "rerank", "attend", "demo", "info", "bench"}) {
    const CliResult result = Encore({command, "--help"});
    EXPECT_NE(result.out.find("--precision"), std::string::npos) << command;
    EXPECT_NE(result.out.find("int8"), std::string::npos) << command;
    EXPECT_NE(result.out.find("int4"), std::string::npos) << command;
  }
}

TEST_F(CliPrecisionTest, BadUsageIsOneSentence) {
  WriteFile(Path("x"), "tea\n");
  const auto refused = [&](const std::vector<std::string>& more,
                           const std::vector<std::string>& words) {
    ExpectRefused(
        With({"embed", "--model", kBaseFolder, "--input", Path("x"), "--output", Path("v.npy")},
             more),
        words);
    ExpectRefused(
        With({"run", "--weights", kWeights, "--input", Path("x"), "--output", Path("y")}, more),
        words);
    ExpectRefused(With({"info", kBaseFolder}, more), words);
    EXPECT_EQ(Files(), std::vector<std::string>{"x"});
  };
  refused({"--precision", "fp16"}, {"--precision", "fp16", "bf16", "int8", "int4"});
  refused({"--precision", ""}, {"--precision"});
  refused({"--keep", "0.qkv"}, {"--keep", "--precision"});
  refused({"--precision", "bf16", "--keep", "0.qkv"}, {"keep", "bf16", "int8 or int4"});
  refused({"--precision", "int8", "--keep", "7.qkv"}, {"layer 7"});
  for (const char* wrong : {"qkv", "0", "0.", ".qkv", "0.qk", "0.qkvx", "-1.qkv", "0,qkv",
                            "99999999999999999999.qkv", "0 .qkv"}) {
    refused({"--precision", "int8", "--keep", wrong}, {"--keep", "0.linear1"});
  }
  ExpectRefused({"info", "--precision", "int8"}, {"--precision", "folder"});
  ExpectRefused({"demo", "--precision", "int8"}, {"--precision", "--model"});
  ExpectRefused({"attend", "a b", "--precision", "int8"}, {"--precision", "--model"});
}

}  // namespace
}  // namespace encore
