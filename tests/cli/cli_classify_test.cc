// SPDX-License-Identifier: Apache-2.0
//
// `encore classify`: what it writes is the library's, sorted, and what it refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using nlohmann::json;

const std::vector<std::string> kClassifyTexts = {"The harbour lies between two hills.", "tea",
                                                 "Zo\u00eb paid 30 \u20ac."};

class CliClassifyTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    std::string input;
    for (const std::string& text : kClassifyTexts) input += text + "\n";
    WriteFile(Path("x"), input);
  }

  std::vector<std::string> Arguments(const TextFolder& folder,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"classify", "--model", folder.path(), "--input",
                                          Path("x")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The lines have the best `top` of these scores.
  void ExpectScores(const TextFolder& folder, const ScoreOptions& options,
                    const std::vector<std::string>& more, size_t top) const {
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    const Predictions wanted = Taken(model.Classify(kClassifyTexts, options));
    const CliResult result = Encore(Arguments(folder, more));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.err.find("3 texts"), std::string::npos) << result.err;
    std::istringstream lines(result.out);
    for (size_t i = 0; i < kClassifyTexts.size(); ++i) {
      std::string line;
      ASSERT_TRUE(std::getline(lines, line));
      const json found = json::parse(line);
      EXPECT_EQ(found.at("index"), i);
      EXPECT_FALSE(found.contains("id"));
      const ConstView row = wanted.values.View<float>()[i];
      std::vector<std::pair<float, std::string>> sorted;
      for (size_t l = 0; l < row.dim(0); ++l) sorted.emplace_back(row(l), model.labels()[l]);
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      sorted.resize(top);
      ASSERT_EQ(found.at("labels").size(), top);
      for (size_t l = 0; l < top; ++l) {
        EXPECT_EQ(found["labels"][l].at("score").get<float>(), sorted[l].first);
        EXPECT_EQ(found["labels"][l].at("label"), sorted[l].second);
      }
    }
    std::string rest;
    EXPECT_FALSE(std::getline(lines, rest)) << rest;
  }
};

TEST_F(CliClassifyTest, ScoresAreTheLibrarys) {
  using Function = std::pair<std::string, ScoreActivation>;
  for (const char* type : {"", "regression", "multi_label_classification"}) {
    const TextFolder folder("classifier");
    if (*type != '\0') folder.PatchJson("config.json", {{"problem_type", type}});
    ExpectScores(folder, {}, {}, 3);
    ExpectScores(folder, {}, {"--top", "2"}, 2);
    for (const auto& [name, activation] : {Function{"sigmoid", ScoreActivation::kSigmoid},
                                           Function{"softmax", ScoreActivation::kSoftmax},
                                           Function{"none", ScoreActivation::kIdentity}}) {
      SCOPED_TRACE(std::string(type) + " " + name);
      ExpectScores(folder, {.activation = activation}, {"--function-to-apply", name}, 3);
    }
  }
  ExpectScores(TextFolder("reranker"), {}, {"--top", "9"}, 1);
}

TEST_F(CliClassifyTest, JsonLinesKeepTheirIds) {
  WriteFile(Path("x"), "{\"id\": 7, \"text\": \"tea\"}\n\"Ana\"\n");
  const CliResult result = Encore(Arguments(TextFolder("classifier"), {"--format", "jsonl"}));
  ASSERT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(json::parse(line).at("id"), 7);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_FALSE(json::parse(line).contains("id"));
}

TEST_F(CliClassifyTest, RefusesWhatItCannotDo) {
  ExpectRefused(Arguments(TextFolder("base")), {"--model", "classification head"});
  ExpectRefused(Arguments(TextFolder("classifier"), {"--function-to-apply", "relu"}),
                {"--function-to-apply", "relu", "sigmoid", "none"});
  WriteFile(Path("x"), "tea\n\xFF\n");
  ExpectRefused(Arguments(TextFolder("classifier")), {"line 2"});
}

}  // namespace
}  // namespace encore
