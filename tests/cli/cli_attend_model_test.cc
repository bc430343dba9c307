// SPDX-License-Identifier: Apache-2.0
//
// `encore attend --model` and `encore demo --model`, on tiny models.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

using Json = nlohmann::json;

const std::string kModel = ENCORE_TEST_DATA_DIR "/text/base";
const std::string kReranker = ENCORE_TEST_DATA_DIR "/text/reranker";
constexpr size_t kLayers = 2;
constexpr size_t kHeads = 4;

class CliAttendModelTest : public CliTest {
 protected:
  static CliResult Attend(const std::vector<std::string>& arguments,
                          const std::string& model = kModel) {
    std::vector<std::string> all = {"attend", "--model", model};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Encore(all);
  }

  static Json AttendJson(std::vector<std::string> arguments, const std::string& model = kModel) {
    arguments.push_back("--json");
    const CliResult result = Attend(arguments, model);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.status == 0 ? Json::parse(result.out) : Json();
  }
};

TEST_F(CliAttendModelTest, JsonHasEveryWeight) {
  const Json all = AttendJson({"these letters"});
  const size_t n = all["tokens"].size();
  ASSERT_GE(n, 4u);
  EXPECT_EQ(all["model"], "base");
  EXPECT_EQ(all["tokens"][0]["token"], "[CLS]");
  EXPECT_EQ(all["tokens"][0]["special"], true);
  EXPECT_EQ(all["tokens"][1]["special"], false);
  ASSERT_EQ(all["weights"].size(), kLayers);
  for (const Json& layer : all["weights"]) {
    ASSERT_EQ(layer.size(), kHeads);
    for (const Json& head : layer) {
      ASSERT_EQ(head.size(), n);
      for (const Json& row : head) {
        ASSERT_EQ(row.size(), n);
        double sum = 0;
        for (const Json& weight : row) sum += weight.get<double>();
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
  EXPECT_NE(all["weights"][0], all["weights"][1]);
  // Layers and heads are counted from 1.
  const Json layer = AttendJson({"these letters", "--layer", "2"});
  EXPECT_EQ(layer["weights"], all["weights"][1]);
  const Json head = AttendJson({"these", "letters", "--layer", "1", "--head", "4"});
  EXPECT_EQ(head["weights"], all["weights"][0][3]);
  EXPECT_EQ(head["head"], 4);
}

TEST_F(CliAttendModelTest, PairsAreTwoTexts) {
  const Json pair = AttendJson({"these", "--pair", "letters"}, kReranker);
  std::vector<int> texts;
  for (const Json& token : pair["tokens"]) {
    if (!token["special"].get<bool>()) texts.push_back(token["text"].get<int>());
  }
  ASSERT_GE(texts.size(), 2u);
  EXPECT_EQ(texts.front(), 1);
  EXPECT_EQ(texts.back(), 2);
  const Json& kinds = pair["kinds"];
  EXPECT_NE(std::find(kinds.begin(), kinds.end(), "[SEP]"), kinds.end()) << kinds;
  EXPECT_NE(std::find(kinds.begin(), kinds.end(), "other text"), kinds.end()) << kinds;
}

TEST_F(CliAttendModelTest, SaysWhatTheWordsLookAt) {
  CliResult result = Attend({"these letters, these"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"2 layers of 4 heads", "[CLS] these", "these(2)", "What the words",
                           "strongest links", "layer 2", "habit", "same word"}) {
    EXPECT_TRUE(Has(result.out, part)) << part << "\n" << result.out;
  }
  EXPECT_FALSE(Has(result.out, "\x1b")) << "colours in a file";

  result = Attend({"these", "--layer", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "layer 2, mean over heads")) << result.out;
  EXPECT_TRUE(Has(result.out, "head 4")) << result.out;
  result = Attend({"these", "--layer", "2", "--head", "3", "--digits", "5"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "layer 2, head 3")) << result.out;
  EXPECT_TRUE(Has(result.out, "[CLS] -> ")) << result.out;
}

TEST_F(CliAttendModelTest, NothingButSpecialTokens) {
  const CliResult result = Attend({" \x01 "});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "2 tokens")) << result.out;
}

TEST_F(CliAttendModelTest, BadUsageIsOneSentence) {
  const auto refused = [](std::vector<std::string> arguments,
                          const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), {"attend", "--model", kModel});
    ExpectRefused(arguments, words);
  };
  refused({}, {"text"});
  refused({"a", "--layer", "3"}, {"--layer", "3", "1 to 2"});
  refused({"a", "--layer", "0"}, {"--layer"});
  refused({"a", "--layer", "1", "--head", "5"}, {"--head", "5", "1 to 4"});
  refused({"a", "--head", "1"}, {"--head", "--layer"});
  refused({"a", "--dim", "8"}, {"--dim"});
  refused({"a", "--seed", "8"}, {"--seed"});
  refused({"\xff"}, {"UTF-8"});
  // The model has 40 positions.
  std::string many;
  for (int i = 0; i < 60; ++i) many += "a ";
  refused({many}, {"62", "40"});
  ExpectRefused({"attend", "a", "--layer", "1"}, {"--layer", "--model"});
  ExpectRefused({"attend", "a", "--model", Path("none")}, {"none"});
}

TEST_F(CliAttendModelTest, DemoWithAModel) {
  const CliResult result = Encore({"demo", "--model", kModel, "--seconds", "0"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"vector of 32 numbers", "1.0000", "Closest: ", "  1  The cat"}) {
    EXPECT_TRUE(Has(result.out, part)) << part << "\n" << result.out;
  }
  EXPECT_FALSE(Has(result.out, "Speed"));
  const CliResult timed = Encore({"demo", "--model", kModel, "--seconds", "0.01"});
  EXPECT_TRUE(Has(timed.out, "Speed")) << timed.out << timed.err;
  ExpectRefused({"demo", "--model", Path("none")}, {"none"});
  ExpectRefused({"demo", "--model", kModel, "--seed", "1"}, {"--seed"});
}

}  // namespace
}  // namespace encore
