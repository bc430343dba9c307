// SPDX-License-Identifier: Apache-2.0
//
// `encore compare`: tables and a page of reports, and flags and files that are refused.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/cli/synthetic_report.h"

namespace encore {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CliCompareTest : public CliTest {
 protected:
  std::string Write(const std::string& name, const SyntheticRun& run) const {
    WriteFile(Path(name), SyntheticJson(SyntheticReport(run)));
    return Path(name);
  }
};

TEST_F(CliCompareTest, ShowsReportsSideBySide) {
  const std::string a = Write("a.json", {.seed = 1, .slot_noise = 0.01});
  const std::string b = Write("b.json", {.seed = 2, .speed = 1.3, .slot_noise = 0.01});
  const std::string c = Write("c.json", {.seed = 3, .slot_noise = 0.01, .targets = {"AVX2"}});
  const CliResult result = Encore({"compare", a, b, c, "--out", Path("page.html")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* words : {"A  ", "B against A", "C against A", "faster 1.", "slower 0.5",
                            "AVX3_ZEN4 / AVX2", "Targets that differ", "base_8x128, 12 layers",
                            "90 rows: 90 faster, 0 slower, 0 without a real difference."}) {
    EXPECT_TRUE(Has(result.out, words)) << words << "\n" << result.out;
  }
  const std::string page = ReadFile(Path("page.html"));
  EXPECT_TRUE(Has(page, "</html>"));
  EXPECT_TRUE(Has(page, "b.json"));
  EXPECT_EQ(Files(), (std::vector<std::string>{"a.json", "b.json", "c.json", "page.html"}));
}

TEST_F(CliCompareTest, AReportIsNoDifferentFromItself) {
  const std::string a = Write("a.json", {.seed = 1});
  const CliResult result = Encore({"compare", a, a});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "90 rows: 0 faster, 0 slower, 90 without")) << result.out;
}

TEST_F(CliCompareTest, TheNoiseBandStandsBesideEachVerdict) {
  const std::string a = Write("a.json", {.seed = 1, .slot_noise = 0.01});
  const std::string b = Write("b.json", {.seed = 2, .speed = 1.3, .slot_noise = 0.01});
  const CliResult result = Encore({"compare", a, b});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "  noise band  verdict")) << result.out;
  EXPECT_TRUE(Has(result.out, "0.97 to 1.03  faster 1.")) << result.out;
}

TEST_F(CliCompareTest, PrintsMarkdownAndJson) {
  const std::string a = Write("a.json", {.seed = 1, .slot_noise = 0.01});
  const std::string b = Write("b.json", {.seed = 2, .speed = 1.3, .slot_noise = 0.01});
  const CliResult table = Encore({"compare", a, b, "--format", "markdown"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_TRUE(Has(table.out,
                  "| workload | precision | target | weights | threads | A | B | speed "
                  "of B over A | noise band | verdict |\n| :--- | :--- | :--- | :--- | "
                  "---: | ---: | ---: | ---: | ---: | :--- |\n| "))
      << table.out;
  const CliResult result = Encore({"compare", a, b, "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["reports"].size(), 2u);
  const nlohmann::json& rows = json["pairings"][0]["rows"];
  ASSERT_EQ(rows.size(), 90u);
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["verdict"], "faster");
    EXPECT_NEAR(row["ratio"]["value"], 1.3, 0.05);
    EXPECT_LT(row["band"]["high"], row["ratio"]["low"]);
  }
  ExpectRefused({"compare", a, b, "--format", "csv"}, {"--format", "csv"});
}

TEST_F(CliCompareTest, ComparesRowsOfTwoPrecisions) {
  const std::string a = Write("a.json", {.seed = 1, .slot_noise = 0.01});
  const CliResult result = Encore({"compare", a, a, "--precision", "f32,int8"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, " f32 / int8 ")) << result.out;
  EXPECT_FALSE(Has(result.out, "bf16")) << result.out;
  ExpectRefused({"compare", a, a, "--precision", "f32"}, {"--precision"});
  ExpectRefused({"compare", a, a, "--precision", "f32,f8"}, {"a.json", "no row in f8"});
}

TEST_F(CliCompareTest, HelpTellsTheRule) {
  const CliResult help = Encore({"compare", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* words : {"bootstrap", "Holm", "noise band", "Examples:", "--out"}) {
    EXPECT_TRUE(Has(help.out, words)) << help.out;
  }
}

TEST_F(CliCompareTest, RefusesUnfitFlagsAndFiles) {
  const std::string a = Write("a.json", {.seed = 1, .threads = {1}});
  const std::string other = Write("other.json", {.seed = 1, .threads = {3}});
  WriteFile(Path("broken.json"), "{\"encore_report\": 1, \"machine\": {");
  WriteFile(Path("newer.json"), "{\"encore_report\": 7}");
  WriteFile(Path("page.html"), "before");
  const std::string out = Path("page.html");
  ExpectRefused({"compare"}, {"REPORT"});
  ExpectRefused({"compare", a, "--out", out}, {"REPORT", "1 file", "2 to 8"});
  ExpectRefused({"compare", a, Path("none.json"), "--out", out}, {"none.json"});
  ExpectRefused({"compare", a, Path("broken.json"), "--out", out}, {"broken.json", "JSON"});
  ExpectRefused({"compare", a, Path("newer.json"), "--out", out}, {"newer.json", "7", "version 1"});
  ExpectRefused({"compare", a, other, "--out", out}, {"other.json", "no row in common"});
  ExpectRefused({"compare", a, a, "--out", ""}, {"--out"});
  ExpectRefused({"compare", a, a, "--out", Path("no/page.html")}, {"--out", "no/page.html"});
  ExpectRefused({"compare", a, a, "--colour"}, {"--colour"});
  ExpectRefused({"compare", a, a, a, a, a, a, a, a, a}, {"9 files", "2 to 8"});
  EXPECT_EQ(ReadFile(out), "before");

  const std::string before = ReadFile(a);
  ExpectRefused({"compare", other, a, "--out", a}, {"--out", "a.json", "another file"});
  ExpectRefused({"compare", a, a, "--out", Path("./a.json")}, {"--out", "another file"});
  EXPECT_EQ(ReadFile(a), before);
}

}  // namespace
}  // namespace encore
