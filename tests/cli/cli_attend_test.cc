// SPDX-License-Identifier: Apache-2.0
//
// `encore attend`: the worked examples to every digit, sentences, pictures, cases that are wrong.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 2e-6;

const std::string kExamples = ENCORE_TEST_DATA_DIR "/worked_examples.json";

class CliAttendTest : public CliTest {
 protected:
  static Json Case(const std::string& name) {
    const Json examples = Json::parse(ReadFile(kExamples));
    for (const Json& spec : examples["cases"]) {
      if (spec["name"] == name) return spec;
    }
    ADD_FAILURE() << "no case " << name;
    return {};
  }

  static Json Attend(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "attend");
    arguments.push_back("--json");
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.status == 0 ? Json::parse(result.out) : Json();
  }

  static void ExpectNear(const Json& found, const Json& expected, const std::string& what) {
    ASSERT_EQ(found.size(), expected.size()) << what;
    if (expected.is_number()) {
      const double error = std::fabs(found.get<double>() - expected.get<double>());
      EXPECT_LE(error, kTolerance) << what;
      return;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      ExpectNear(found[i], expected[i], what + "[" + std::to_string(i) + "]");
    }
  }

  // Refused with these words, whatever a file of one case holds.
  void ExpectCaseRefused(const std::string& spec, const std::vector<std::string>& words) {
    WriteFile(Path("case.json"), "{\"cases\": [" + spec + "]}");
    ExpectRefused({"attend", "--file", Path("case.json")}, words);
  }
};

TEST_F(CliAttendTest, WorkedExamplesComeOutToEveryDigit) {
  for (const std::string name : {"attention_2x4", "self_attention_3x4", "words_the_cat_sat"}) {
    const Json expected = Case(name);
    const Json found = Attend({"--file", kExamples, "--case", name});
    for (const char* field : {"X", "Q", "K", "V", "scores", "weights", "output"}) {
      if (expected.contains(field)) ExpectNear(found[field], expected[field], name + " " + field);
    }
    ASSERT_GE(found["checks"].size(), 3u);
    for (const Json& check : found["checks"]) EXPECT_TRUE(check["ok"]) << name << check;
  }
}

TEST_F(CliAttendTest, WorkedExamplesShapesComeOut) {
  Json found = Attend({"--file", kExamples, "--case", "sentence_on_the_mat"});
  EXPECT_EQ(found["tokens"].size(), 6u);
  EXPECT_EQ(found["X"][0].size(), 8u);
  EXPECT_EQ(found["weights"].size(), 6u);
  EXPECT_EQ(found["weights"][0].size(), 6u);
  EXPECT_EQ(found["checks"].size(), 6u);  // five shapes and the sums
  EXPECT_EQ(found["attends_most"].size(), 6u);

  found = Attend({"--file", kExamples, "--case", "attention_4x8"});
  EXPECT_EQ(found["weights"].size(), 4u);
  EXPECT_EQ(found["output"].size(), 4u);
  EXPECT_EQ(found["output"][0].size(), 8u);

  found = Attend({"--file", kExamples, "--case", "encoder_block"});
  EXPECT_EQ(found["checks"].size(), 4u);
}

TEST_F(CliAttendTest, SeededTextIsTheWorkedExampleOfThatSeed) {
  const Json expected = Case("self_attention_3x4");
  const Json found = Attend({"a b c", "--dim", "4", "--seed", "42"});
  for (const char* field : {"X", "W_q", "W_k", "W_v", "scores", "weights", "output"}) {
    ExpectNear(found[field], expected[field], field);
  }
  // The seed's default is the same.
  EXPECT_EQ(found, Attend({"a b c", "--dim", "4"}));
  EXPECT_NE(found, Attend({"a b c", "--dim", "4", "--seed", "43"}));
}

TEST_F(CliAttendTest, ASentenceNeedsNoQuotes) {
  EXPECT_EQ(Attend({"show", "info", "on the", "mat"}), Attend({"show info on the mat"}));
}

TEST_F(CliAttendTest, PrintsEveryStep) {
  const CliResult result = Encore({"attend", "a b c", "--dim", "4", "--digits", "6"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"Tokens", "X:", "Q =", "K =", "V =", "Scores", "Weights", "Context", "0.374540", "2.583685",
        "0.527359", "0.977014", "1.439387", "a -> a 0.527359", "RandomState(42)"}) {
    EXPECT_TRUE(Has(result.out, part)) << part << "\n" << result.out;
  }
  EXPECT_FALSE(Has(result.out, "\x1b")) << "colours in a file";
}

TEST_F(CliAttendTest, HeadsSplitTheWidth) {
  const Json one = Attend({"The cat sat on the mat", "--dim", "8"});
  const Json two = Attend({"The cat sat on the mat", "--dim", "8", "--heads", "2"});
  EXPECT_EQ(one["Q"], two["Q"]);
  ASSERT_EQ(two["weights"].size(), 2u);
  ASSERT_EQ(two["weights"][1].size(), 6u);
  for (size_t h = 0; h < 2; ++h) {
    for (size_t i = 0; i < 6; ++i) {
      double largest = -HUGE_VAL;
      std::vector<double> weights;
      for (size_t j = 0; j < 6; ++j) {
        double score = 0;
        for (size_t c = 4 * h; c < 4 * h + 4; ++c) {
          score += two["Q"][i][c].get<double>() * two["K"][j][c].get<double>() / 2;
        }
        EXPECT_NEAR(two["scores"][h][i][j].get<double>(), score, kTolerance);
        weights.push_back(score);
        largest = std::max(largest, score);
      }
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (size_t j = 0; j < 6; ++j) {
        EXPECT_NEAR(two["weights"][h][i][j].get<double>(), weights[j] / sum, kTolerance);
      }
    }
  }
}

TEST_F(CliAttendTest, AWrongExpectationIsStatusOne) {
  Json spec = Case("attention_2x4");
  spec["output"][1][3] = spec["output"][1][3].get<double>() + 1e-5;
  WriteFile(Path("case.json"), Json{{"cases", {spec}}}.dump());
  const CliResult result = Encore({"attend", "--file", Path("case.json")});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(Has(result.out, "output")) << result.out;
  EXPECT_TRUE(Has(result.out, "WRONG")) << result.out;
  EXPECT_TRUE(Has(result.err, "output: largest error")) << result.err;

  spec = Case("sentence_on_the_mat");
  spec["shapes"]["weights"] = {1, 6, 1, 6};
  WriteFile(Path("case.json"), Json{{"cases", {spec}}}.dump());
  EXPECT_EQ(Encore({"attend", "--file", Path("case.json")}).status, 1);
}

TEST_F(CliAttendTest, OverflowIsNoSuccess) {
  // A NaN must not be lost among good rows before and after it.
  WriteFile(Path("case.json"), R"({"cases": [{"name": "n", "Q": [[0, 0], [1e38, 1e38], [0, 0]],
      "K": [[1e38, -1e38], [1, 1]], "V": [[1, 2], [3, 4]],
      "output": [[2, 3], [2, 3], [2, 3]]}]})");
  const CliResult result = Encore({"attend", "--file", Path("case.json")});
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(Has(result.out, "sum to 1  WRONG")) << result.out;
  EXPECT_TRUE(Has(result.out, "output                    WRONG")) << result.out;
}

TEST_F(CliAttendTest, BadUsageIsOneSentence) {
  ExpectRefused({"attend"}, {"text"});
  ExpectRefused({"attend", ""}, {"text"});
  ExpectRefused({"attend", " \t"}, {"no words"});
  ExpectRefused({"attend", "a b", "--dim", "0"}, {"--dim"});
  ExpectRefused({"attend", "a b", "--dim", "8", "--heads", "3"}, {"8", "3 heads"});
  ExpectRefused({"attend", "a b", "--dim", "99999999999"}, {"--dim"});
  ExpectRefused({"attend", "a b", "--digits", "10"}, {"--digits"});
  ExpectRefused({"attend", "a b", "--seed", "x"}, {"--seed"});
  ExpectRefused({"attend", "a b", "--seed", ""}, {"--seed"});
  ExpectRefused({"attend", "a b", "--seed", "4294967296"},
                {"--seed", "not in range", "4294967295"});
  ExpectRefused({"attend", "a b", "--file", kExamples}, {"both"});
  ExpectRefused({"attend", "--case", "x"}, {"--file"});
  std::string words;
  for (int i = 0; i < 600; ++i) words += "w ";
  ExpectRefused({"attend", words}, {"600"});
  EXPECT_TRUE(Files().empty());
}

TEST_F(CliAttendTest, BadFilesAreNamed) {
  ExpectRefused({"attend", "--file", Path("none.json")}, {"none.json"});
  ExpectRefused({"attend", "--file", Path("")}, {Path("")});
  ExpectRefused({"attend", "--file", kExamples}, {"--case", "words_the_cat_sat"});
  ExpectRefused({"attend", "--file", kExamples, "--case", "x"}, {"'x'", "words_the_cat_sat"});
  for (const char* text : {"", "{", "[1, 2", "{\"cases\": 3}", "[]", "{\"cases\": [3]}", "1e999"}) {
    WriteFile(Path("bad.json"), text);
    ExpectRefused({"attend", "--file", Path("bad.json")}, {"bad.json"});
  }
}

TEST_F(CliAttendTest, DeepFilesAreRefused) {
  const auto nested = [](size_t levels) {
    return R"({"cases": [{"name": "n", "what": )" + std::string(levels, '[') +
           std::string(levels, ']') + "}]}";
  };
  WriteFile(Path("deep.json"), nested(200000));
  ExpectRefused({"attend", "--file", Path("deep.json")}, {"deep.json", "levels"});
  WriteFile(Path("deep.json"), nested(10));
  ExpectRefused({"attend", "--file", Path("deep.json")}, {"nothing to compute"});
}

TEST_F(CliAttendTest, BadCasesAreNamed) {
  ExpectCaseRefused(R"({"name": "n"})", {"'n'", "nothing to compute"});
  ExpectCaseRefused(R"({"name": "n", "Q": [[1]], "K": [[1]]})", {"'n'", "V is missing"});
  ExpectCaseRefused(R"({"name": "n", "Q": [[1, 2]], "K": [[1]], "V": [[1]]})",
                    {"K is [1, 1]", "wanted [1, 2]"});
  ExpectCaseRefused(R"({"name": "n", "Q": [[1], [2, 3]], "K": [[1]], "V": [[1]]})", {"Q row 1"});
  ExpectCaseRefused(R"({"name": "n", "Q": [["1"]], "K": [[1]], "V": [[1]]})", {"Q row 0"});
  ExpectCaseRefused(R"({"name": "n", "Q": [[1e300]], "K": [[1]], "V": [[1]]})", {"f32"});
  ExpectCaseRefused(R"({"name": "n", "Q": [], "K": [[1]], "V": [[1]]})", {"Q is not a matrix"});
  ExpectCaseRefused(R"({"name": "n", "X": [[1]], "W_q": [[1], [2]], "W_k": [[1]], "W_v": [[1]]})",
                    {"W_q is [2, 1]", "wanted [1, 1]"});
  ExpectCaseRefused(R"({"name": "n", "tokens": ["a"], "embedding_dim": -3})", {"embedding_dim"});
  ExpectCaseRefused(R"({"name": "n", "tokens": [3], "embedding_dim": 3})", {"tokens"});
  ExpectCaseRefused(R"({"name": "attention_9999x8"})", {"too large"});
  ExpectCaseRefused(R"({"name": "n", "d_model": 6, "nhead": 4, "dim_feedforward": 8,
                        "input_shape": [1, 2, 6]})",
                    {"'n'", "6", "4"});
  ExpectCaseRefused(R"({"name": "n", "d_model": 4, "nhead": 2, "dim_feedforward": 8,
                        "input_shape": [1, 2]})",
                    {"input_shape"});
  ExpectCaseRefused(R"({"name": "n", "d_model": 4, "nhead": 2, "dim_feedforward": 8,
                        "input_shape": [4294967296, 4294967296, 4]})",
                    {"too large"});
}

}  // namespace
}  // namespace encore
