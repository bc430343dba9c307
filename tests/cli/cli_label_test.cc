// SPDX-License-Identifier: Apache-2.0
//
// `encore label`, and `encore embed` of sparse vectors: what they write is the library's, and what
// they refuse.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

using nlohmann::json;

std::string HeadFolder(const std::string& name) {
  return std::string(ENCORE_TEST_DATA_DIR "/heads/") + name;
}

std::vector<json> ParsedLines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

const std::vector<std::string> kLabelTexts = {
    "Ana Lima met Tom in Rome, or was it unbelievable Lisbon?", "Zo\u00eb paid 30 \u20ac.", "tea"};

std::string InputOfTexts() {
  std::string input;
  for (const std::string& text : kLabelTexts) input += text + "\n";
  return input;
}

class CliLabelTest : public CliTest {
 protected:
  std::vector<std::string> Arguments(const std::string& folder,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"label", "--model", HeadFolder(folder), "--input",
                                          Path("x")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The lines are these entities of kLabelTexts.
  static void ExpectEntities(const std::vector<json>& lines, const Entities& wanted) {
    ASSERT_EQ(lines.size(), kLabelTexts.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].at("index"), i);
      EXPECT_FALSE(lines[i].contains("id"));
      const json& found = lines[i].at("entities");
      ASSERT_EQ(found.size(), wanted.of_texts[i].size()) << "text " << i;
      for (size_t e = 0; e < found.size(); ++e) {
        const Entity& entity = wanted.of_texts[i][e];
        const auto [begin, end] = entity.place;
        EXPECT_EQ(found[e].at("label"), entity.label);
        EXPECT_EQ(found[e].at("score").get<float>(), entity.score);
        EXPECT_EQ(found[e].at("start"), begin);
        EXPECT_EQ(found[e].at("end"), end);
        EXPECT_EQ(found[e].at("text"), kLabelTexts[i].substr(begin, end - begin));
      }
    }
  }
};

TEST_F(CliLabelTest, EveryStrategyIsTheLibrarys) {
  WriteFile(Path("x"), InputOfTexts());
  for (const std::string name : {"ner_bert", "ner_modernbert"}) {
    const TextEncoder model = Taken(TextEncoder::Open(HeadFolder(name)));
    for (const Aggregation aggregation :
         {Aggregation::kNone, Aggregation::kSimple, Aggregation::kFirst, Aggregation::kAverage,
          Aggregation::kMax}) {
      const std::string strategy(AggregationName(aggregation));
      SCOPED_TRACE(name + " " + strategy);
      LabelOptions options;
      options.aggregation = aggregation;
      const Entities wanted = Taken(model.FindEntities(kLabelTexts, options));
      ASSERT_FALSE(wanted.of_texts[0].empty());
      const CliResult result = Encore(Arguments(name, {"--aggregation", strategy}));
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_NE(result.err.find("3 texts"), std::string::npos) << result.err;
      ExpectEntities(ParsedLines(result.out), wanted);
    }
  }
}

TEST_F(CliLabelTest, SimpleIsTheDefaultAndAllHasTheOthersToo) {
  WriteFile(Path("x"), InputOfTexts());
  EXPECT_EQ(Encore(Arguments("ner_bert")).out,
            Encore(Arguments("ner_bert", {"--aggregation", "simple"})).out);
  const TextEncoder model = Taken(TextEncoder::Open(HeadFolder("ner_bert")));
  LabelOptions options;
  options.ignore_labels.clear();
  const Entities wanted = Taken(model.FindEntities(kLabelTexts, options));
  const CliResult result = Encore(Arguments("ner_bert", {"--all"}));
  ExpectEntities(ParsedLines(result.out), wanted);
  EXPECT_NE(result.out.find("\"label\": \"O\""), std::string::npos);
}

TEST_F(CliLabelTest, JsonLinesKeepTheirIds) {
  WriteFile(Path("x"),
            "{\"id\": 7, \"text\": \"tea\"}\n\"Ana\"\n{\"id\": \"b\", \"text\": \"\"}\n");
  const std::vector<json> lines =
      ParsedLines(Encore(Arguments("ner_bert", {"--format", "jsonl"})).out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("id"), 7);
  EXPECT_FALSE(lines[1].contains("id"));
  EXPECT_EQ(lines[2].at("id"), "b");
  EXPECT_TRUE(lines[2].at("entities").empty());
}

TEST_F(CliLabelTest, RefusesWhatItCannotDo) {
  WriteFile(Path("x"), "tea\n");
  ExpectRefused(Arguments("splade_bert"), {"--model", "token classification", "bert"});
  ExpectRefused(Arguments("ner_bert", {"--aggregation", "most"}),
                {"--aggregation", "most", "simple", "average"});
  WriteFile(Path("x"), "tea\n\xFF\n");
  ExpectRefused(Arguments("ner_bert"), {"line 2"});
}

class CliSparseTest : public CliTest {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {},
                                     const std::string& output = "v.jsonl") const {
    std::vector<std::string> arguments = {"embed",     "--model", HeadFolder("splade_bert"),
                                          "--input",   Path("x"), "--output",
                                          Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The output's lines are the library's vectors of kLabelTexts.
  void ExpectVectors(const std::vector<std::string>& more, const SparseOptions& options) const {
    const TextEncoder model = Taken(TextEncoder::Open(HeadFolder("splade_bert")));
    const SparseVectors wanted = Taken(model.EncodeSparse(kLabelTexts, options));
    ASSERT_FALSE(wanted.indices.empty());
    const CliResult result = Encore(Arguments(more));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find("3 texts"), std::string::npos) << result.out;
    std::vector<int32_t> indices;
    std::vector<float> values;
    const std::vector<json> lines = ParsedLines(ReadFile(Path("v.jsonl")));
    ASSERT_EQ(lines.size(), kLabelTexts.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const json& index : lines[i].at("indices")) indices.push_back(index.get<int32_t>());
      for (const json& value : lines[i].at("values")) values.push_back(value.get<float>());
      EXPECT_EQ(indices.size(), wanted.row_starts[i + 1]);
    }
    EXPECT_TRUE(
        std::equal(indices.begin(), indices.end(), wanted.indices.begin(), wanted.indices.end()));
    EXPECT_TRUE(
        std::equal(values.begin(), values.end(), wanted.values.begin(), wanted.values.end()));
  }
};

TEST_F(CliSparseTest, AnObjectPerText) {
  WriteFile(Path("x"), InputOfTexts());
  ExpectVectors({}, {});
  SparseOptions few;
  few.max_active_dims = 3;
  ExpectVectors({"--max-active-dims", "3"}, few);
  WriteFile(Path("x"), "{\"id\": 7, \"text\": \"tea\"}\n");
  ASSERT_EQ(Encore(Arguments({"--format", "jsonl"})).status, 0);
  EXPECT_EQ(ParsedLines(ReadFile(Path("v.jsonl"))).at(0).at("id"), 7);
}

TEST_F(CliSparseTest, RefusesOptionsOfDenseVectors) {
  WriteFile(Path("x"), "tea\n");
  for (const std::vector<std::string>& dense :
       std::vector<std::vector<std::string>>{{"--dimensions", "4"},
                                             {"--normalize"},
                                             {"--no-normalize"},
                                             {"--resume"},
                                             {"--output-type", "f16"},
                                             {"--output-field", "vector"}}) {
    ExpectRefused(Arguments(dense),
                  {dense[0].starts_with("--no-") ? "--normalize" : dense[0], "sparse"});
    EXPECT_EQ(Files(), std::vector<std::string>{"x"});
  }
  ExpectRefused(Arguments({}, "v.npy"), {"--output", ".jsonl", "sparse"});
  // And of a dense model those of sparse ones.
  const std::vector<std::string> dense_model = {"embed",        "--model", HeadFolder("ner_bert"),
                                                "--input",      Path("x"), "--output",
                                                Path("v.jsonl")};
  for (const std::vector<std::string>& sparse :
       std::vector<std::vector<std::string>>{{"--max-active-dims", "3"}, {"--task", "query"}}) {
    std::vector<std::string> arguments = dense_model;
    arguments.insert(arguments.end(), sparse.begin(), sparse.end());
    ExpectRefused(arguments, {sparse[0], "dense"});
  }
}

}  // namespace
}  // namespace encore
