// SPDX-License-Identifier: Apache-2.0
//
// `encore info --weights`: its sizes are those that an encoder of the file has.

#include <gtest/gtest.h>

#include <string>

#include "encore/encoder.h"
#include "encore/torch_weights.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/weights_file.h"

namespace encore {
namespace {

using nlohmann::json;

class WeightsInfoTest : public CliTest {
 protected:
  static json Info(const std::string& path) {
    const CliResult result = Encore({"info", "--weights", path, "--json", "--threads", "3"});
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(WeightsInfoTest, SizesAreThoseOfTheEncoder) {
  WriteWeightsFile(Path("w"));
  const json info = Info(Path("w"));
  EXPECT_EQ(info["made_for"], "f32");
  ASSERT_EQ(info["memory"].size(), 4u);
  const size_t numbers = 2 * (4 * kFileModel * kFileModel + 2 * kFileModel * kFileInner);
  const Result<TorchWeights> weights = TorchWeights::Open(Path("w"));
  for (const auto& [precision, bytes] :
       {std::pair{Precision::kF32, size_t{4}}, std::pair{Precision::kBF16, size_t{2}},
        std::pair{Precision::kInt8, size_t{1}}, std::pair{Precision::kInt4, size_t{1}}}) {
    const json& memory = info["memory"][static_cast<size_t>(precision)];
    EXPECT_EQ(memory["precision"], PrecisionName(precision));
    const Encoder encoder =
        *Encoder::Create(weights->config(), weights->weights(), {.precision = precision});
    EXPECT_EQ(memory["packed_bytes"], encoder.packed_bytes());
    if (!IsInteger(precision)) {  // int8 has 16 bits on some targets, int4 4.5
      EXPECT_EQ(encoder.packed_bytes(), numbers * bytes);
    }
    ASSERT_EQ(memory["workspaces"].size(), 4u);
    for (const json& workspace : memory["workspaces"]) {
      const bool one = workspace["lengths"] == "1x128";
      const BatchLimits limits{.tokens = one ? 128u : 1024u, .sequences = one ? 1u : 8u};
      EXPECT_EQ(workspace["bytes"], *encoder.WorkspaceBytes(limits, workspace["threads"]));
    }
  }
}

TEST_F(WeightsInfoTest, ConvertedFilesSayWhatTheyAre) {
  WriteWeightsFile(Path("w"));
  ASSERT_EQ(
      Encore({"convert", Path("w"), Path("8"), "--precision", "int8", "--keep", "1.qkv"}).status,
      0);
  const json info = Info(Path("8"));
  EXPECT_EQ(info["made_for"], "int8");
  EXPECT_EQ(info["kept"], 1);
  const Result<TorchWeights> weights = TorchWeights::Open(Path("8"));
  const Encoder encoder =
      *Encoder::Create(weights->config(), weights->weights(),
                       {.precision = weights->precision(), .keep = weights->keep()});
  EXPECT_EQ(info["memory"][2]["packed_bytes"], encoder.packed_bytes());
  const CliResult text = Encore({"info", "--weights", Path("8")});
  EXPECT_NE(text.out.find("made for int8 with 1 matrix kept in bf16"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("workspace 8x128, 1 thread"), std::string::npos) << text.out;
}

TEST_F(WeightsInfoTest, WhatIsRefused) {
  WriteWeightsFile(Path("w"));
  ExpectRefused({"info", "--weights", Path("none")}, {"--weights", "none"});
  ExpectRefused({"info", "--weights", Path("w"), "--plan"}, {"--weights is for a file alone"});
  ExpectRefused({"info", "--weights", Path("w"), "--d-model", "64"}, {"--d-model is for --plan"});
}

}  // namespace
}  // namespace encore
