// SPDX-License-Identifier: Apache-2.0
//
// `encore bench --model`: rows of one query and of many texts, in each precision; what is refused.
// No test asserts a time.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"
#include "tools/encore/bench_texts.h"

namespace encore {
namespace {

using nlohmann::json;

class CliBenchModelTest : public CliTest {
 protected:
  json Bench(const std::string& folder, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"bench", "--model", folder, "--seconds", "0", "--json", Path("b.json")});
    const CliResult result = Encore(more);
    EXPECT_EQ(result.status, 0) << result.err;
    out_ = result.out;
    return json::parse(ReadFile(Path("b.json")), nullptr, false);
  }

  std::string out_;
};

TEST_F(CliBenchModelTest, AQueryAndManyTextsInEachPrecision) {
  const TextFolder folder;
  folder.WriteModules();
  const json report = Bench(folder.path(), {"--threads", "1,2"});
  ASSERT_EQ(report["rows"].size(), 16u) << report.dump(1);
  const Result<TextEncoder> model = TextEncoder::Open(folder.path());
  const std::vector<tool::TextWorkload> loads = tool::TextWorkloads("");
  std::set<std::string> cells;
  for (const json& row : report["rows"]) {
    SCOPED_TRACE(row.dump(1));
    const bool query = row["workload"] == "model query";
    EXPECT_TRUE(query || row["workload"] == "model 64 texts");
    cells.insert(row["workload"].dump() + row["precision"].dump() + row["threads"].dump());
    EXPECT_EQ(row["sequences"], query ? 1 : 64);
    const auto encoded = Taken(model->Encode(loads[query ? 0 : 1].texts));
    size_t tokens = 0;
    for (const size_t count : encoded.counts.tokens) tokens += count;
    EXPECT_EQ(row["tokens"], tokens);
    EXPECT_EQ(row["layers"], model->encoder().config().num_layers());
    EXPECT_EQ(row["d_model"], model->d_model());
    EXPECT_EQ(row["model"]["name"], "model");
    EXPECT_GT(row["model"]["bytes"], row["model"]["values"]);
    const double median = row["seconds"]["p50"];
    EXPECT_NEAR(row["texts_per_s"], row["sequences"].get<double>() / median, 1e-6 / median);
    EXPECT_NEAR(row["tokens_per_s"], static_cast<double>(tokens) / median, 1e-6 / median);
    EXPECT_GT(row["flops"], 0.0);
    EXPECT_EQ(row["verified"], true);
    EXPECT_EQ(row["calls"], 4);
    EXPECT_TRUE(row["roof"].is_object());
    const json& opening = row["opening"];
    for (const char* name : {"seconds", "cached", "first_call"}) EXPECT_GT(opening[name], 0.0);
    const auto precision = PrecisionFromName(row["precision"].get<std::string>());
    const auto opened = TextEncoder::Open(folder.path(), {.precision = *precision});
    EXPECT_EQ(opening["packed_bytes"], opened->encoder().packed_bytes());
    EXPECT_GE(opening["resident_bytes"], 0);
  }
  EXPECT_EQ(cells.size(), 16u) << "each once";
  for (const char* words : {"model ", "file", "packed", "cached, ms", "int4", "of its roof",
                            "p50 ms", "texts/s", "tokens/s", "int8", "64 texts", "query"}) {
    EXPECT_TRUE(Has(out_, words)) << words << "\n" << out_;
  }
}

TEST_F(CliBenchModelTest, PrecisionTextsAndMarkdown) {
  const TextFolder folder;
  folder.WriteModules();
  WriteFile(Path("texts"), "the bread\nthe harbour lies between two hills\nletters\n");
  const json rows = Bench(folder.path(), {"--threads", "1", "--precision", "int8", "--texts",
                                          Path("texts"), "--format", "markdown"})["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["workload"], "model 3 texts");
  EXPECT_EQ(rows[1]["sequences"], 3);
  EXPECT_EQ(rows[1]["precision"], "int8");
  EXPECT_TRUE(
      Has(out_,
          "| model | file | packed | values | precision | threads | test | of its roof | p50 "
          "ms | p99 ms | texts/s | tokens/s | roof |\n"))
      << out_;
  EXPECT_TRUE(Has(out_, "| int8 | 1 | 3 texts | ")) << out_;
  EXPECT_TRUE(
      Has(out_, "| opening | file | packed | resident | ms | cached, ms | first call, ms |"))
      << out_;
}

// A converted folder is measured as what it was made for; rerankers and classifiers have scores.
TEST_F(CliBenchModelTest, ConvertedFoldersAndScores) {
  const TextFolder folder;
  folder.WriteModules();
  ASSERT_EQ(Encore({"convert", folder.path(), Path("small"), "--precision", "int8"}).status, 0);
  const json rows = Bench(Path("small"), {"--threads", "1"})["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["precision"], "int8");
  for (const std::string kind : {"reranker", "classifier"}) {
    SCOPED_TRACE(kind);
    const TextFolder other(kind);
    EXPECT_EQ(Bench(other.path(), {"--threads", "1", "--precision", "f32"})["rows"].size(), 2u);
  }
}

TEST_F(CliBenchModelTest, WhatIsRefused) {
  const TextFolder folder;
  folder.WriteModules();
  const std::string path = folder.path();
  ExpectRefused({"bench", "--model", Path("none")}, {"--model", "none"});
  ExpectRefused({"bench", "--model", path, "--workload", "base_1x16"}, {"--model", "--workload"});
  ExpectRefused({"bench", "--model", path, "--cold"}, {"--model", "--cold"});
  ExpectRefused({"bench", "--model", path, "--d-model", "64"}, {"--d-model", "custom"});
  ExpectRefused({"bench", "--texts", Path("t")}, {"--texts is for --model"});
  ExpectRefused({"bench", "--model", path, "--texts", Path("t")}, {"t"});
  WriteFile(Path("empty"), "");
  ExpectRefused({"bench", "--model", path, "--texts", Path("empty")}, {"--texts", "no text"});
}

}  // namespace
}  // namespace encore
