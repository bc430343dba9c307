// SPDX-License-Identifier: Apache-2.0
//
// Numbers under the locales of host programs, which spell them with a decimal comma, with digits
// in groups, or with a point of two bytes: every file reads the same, every vector has the same
// bits, and what is written is the same text.

#include <gtest/gtest.h>

#include <cfenv>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/torch_weights.h"
#include "engine/base/number_text.h"
#include "engine/io/json_value.h"
#include "nlohmann/json.hpp"
#include "tests/cli/locales.h"
#include "tests/support/weights_file.h"
#include "tools/encore/report_data.h"

namespace encore {
namespace {

using internal::JsonValue;

class LocaleTest : public testing::TestWithParam<std::tuple<const char*, LocaleWay>> {
 protected:
  void SetUp() override {
    if (LocaleOf(name()) == nullptr) {
      GTEST_SKIP() << "LEFT OUT: no locale " << name() << " here, nor what localedef makes it of "
                   << "(Debian's package is locales)";
    }
  }
  static std::string name() { return std::get<0>(GetParam()); }

  // What `make` returns under the locale.
  template <typename Make>
  static auto Under(const Make& make) {
    const LocaleScope scope(name(), std::get<1>(GetParam()));
    return make();
  }
};

std::vector<double> ParsedNumbers() {
  const Result<JsonValue> json = JsonValue::Parse(
      "[0.5, -8.206492424011230469, 1e-12, 5e-324, 1.5e-400, 1234567.25, -3, 12345678, 1.0]");
  EXPECT_TRUE(json.ok()) << json.status().message();
  std::vector<double> numbers;
  for (const JsonValue& item : json->items()) numbers.push_back(item.number());
  return numbers;
}

TEST_P(LocaleTest, JsonNumbers) {
  const std::vector<double> wanted = {
      0.5, -8.206492424011230469, 1e-12, 5e-324, 0, 1234567.25, -3, 12345678, 1};
  EXPECT_EQ(ParsedNumbers(), wanted);
  EXPECT_EQ(Under(ParsedNumbers), wanted);
  const auto code = [] { return JsonValue::Parse("1.5e999").status().code(); };
  EXPECT_EQ(Under(code), ErrorCode::kCorruptData);
}

// What describes a model, and the bits of what it computes.
struct Told {
  std::vector<std::string> decisions;
  std::vector<float> numbers;
};

Told TellOf(const std::string& folder, const std::vector<std::string>& texts) {
  const TextEncoder model = Taken(TextEncoder::Open(folder));
  Told told;
  for (const Decision& d : model.Describe()) {
    told.decisions.push_back(d.what + ": " + d.value + " (" + d.source + ")");
  }
  const Embeddings found = Taken(model.Encode(texts));
  const float* floats = static_cast<const float*>(found.vectors.data());
  told.numbers.assign(floats, floats + found.vectors.size_bytes() / sizeof(float));
  return told;
}

// Unigram's scores, epsilons, angles of rotary positions, scales: all are fractions in JSON.
TEST_P(LocaleTest, VectorsOfFolders) {
  for (const std::string folder : {"sentence_t5", "gte", "qwen3_embedding", "embedding_gemma"}) {
    const std::string path = ENCORE_TEST_DATA_DIR "/sentences/" + folder;
    // Here, as the test's own reading of JSON need not hold under every locale.
    const auto texts = nlohmann::json::parse(std::ifstream(path + "/expected.json"))
                           .at("texts")
                           .get<std::vector<std::string>>();
    const Told wanted = TellOf(path, texts);
    ASSERT_FALSE(wanted.numbers.empty());
    const Told found = Under([&] { return TellOf(path, texts); });
    EXPECT_EQ(found.decisions, wanted.decisions) << folder;
    EXPECT_TRUE(found.numbers == wanted.numbers) << folder << " has other bits";
  }
}

TEST_P(LocaleTest, MetadataOfWeights) {
  const TemporaryFolder folder;
  const std::string path = folder.File("w.safetensors");
  WriteWeightsFile(path);
  const SafetensorsFile file = Taken(SafetensorsFile::Open(path));
  SafetensorsMetadata metadata = file.metadata();
  metadata["layer_norm_eps"] = "0.00125";
  const auto copy = [&](const std::string& name) {
    EXPECT_TRUE(WriteSafetensors(folder.File(name), file.tensors(), metadata).ok());
    return ReadBytes(folder.File(name));
  };
  const std::vector<std::byte> wanted = copy("c");
  EXPECT_TRUE(Under([&] { return copy("l"); }) == wanted);
  const auto epsilon = [&] {
    const Result<TorchWeights> weights = TorchWeights::Open(folder.File("c"));
    EXPECT_TRUE(weights.ok()) << weights.status().message();
    return weights.ok() ? weights->config().layers[0].norm.epsilon : 0;
  };
  EXPECT_EQ(Under(epsilon), 0.00125);
}

TEST_P(LocaleTest, NumbersInSentences) {
  EXPECT_EQ(Under([] { return internal::NumberText(1234567.5); }), "1234567.5");
  EXPECT_EQ(Under([] { return internal::NumberText(-0.1); }), "-0.1");
}

TEST_P(LocaleTest, Reports) {
  tool::Report report;
  report.run.seconds = 1234567.5;
  report.rows.resize(1);
  report.rows[0].slots = {0.00125, 1e-7};
  const std::string wanted = tool::ReportJson(report);
  EXPECT_EQ(Under([&] { return tool::ReportJson(report); }), wanted);
  EXPECT_NE(wanted.find("1234567.5"), std::string::npos);
  EXPECT_NE(wanted.find("0.00125"), std::string::npos);
}

std::string WayName(const testing::TestParamInfo<LocaleTest::ParamType>& way) {
  static constexpr const char* kNames[] = {"_Process", "_Thread", "_CppGlobal"};
  return std::get<0>(way.param) + std::string(kNames[static_cast<int>(std::get<1>(way.param))]);
}

INSTANTIATE_TEST_SUITE_P(Ways, LocaleTest,
                         testing::Combine(testing::Values("de_DE", "fr_FR", "de_CH", "ps_AF"),
                                          testing::Values(LocaleWay::kProcess, LocaleWay::kThread,
                                                          LocaleWay::kCppGlobal)),
                         WayName);

// Nor does it matter how the caller rounds.
TEST(CallersRounding, ChangesNoNumberOfJson) {
  const std::vector<double> wanted = ParsedNumbers();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const std::vector<double> found = ParsedNumbers();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace encore
