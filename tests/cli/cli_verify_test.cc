// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: that it passes here, its table and its JSON; and the report's own words for
// promises that are kept and broken. Libraries that break them: cli_broken_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/version.h"
#include "nlohmann/json.hpp"
#include "reference/accuracy.h"
#include "reference/golden_hashes.h"
#include "tests/cli/cli_runner.h"
#include "tests/support/sanitizers.h"
#include "tools/encore/verify_checks.h"

namespace encore {
namespace {

using tool::Finding;
using tool::VerifyReport;
using tool::VerifySection;

TEST_F(CliTest, VerifyPassesHereAndWritesJson) {
  if (kSanitized) GTEST_SKIP() << "minutes under a sanitizer";
  const std::string path = Path("report.json");
  const CliResult result = Encore({"verify", "--quick", "--json", path});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "") << "a progress bar in a file";
  for (const char* words :
       {"exp", "gelu_tanh", "matmul", "any batch, place and other sequences", "bf16 weights",
        "bf16: any batch", "int8: any batch", "int4: any batch", "Every promise was kept"}) {
    EXPECT_TRUE(Has(result.out, words)) << words;
  }
  // Only targets with FMA promise them.
  const std::vector<std::string> targets = SupportedTargets();
  const bool fma = std::any_of(targets.begin(), targets.end(), [](const std::string& target) {
    return reference::TargetHasFma(target);
  });
  EXPECT_EQ(Has(result.out, "Published hashes"), fma);
  EXPECT_EQ(Has(result.out, "int8: every target with FMA"), fma);
  EXPECT_EQ(Has(result.out, "int4: every target with FMA"), fma);
  EXPECT_FALSE(Has(result.out, "\x1b")) << "colours in a file";
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(json["version"], ENCORE_VERSION_STRING);
  EXPECT_EQ(json["mode"], "quick");
  EXPECT_FALSE(json.contains("only"));
  EXPECT_EQ(json["targets"], SupportedTargets());
  EXPECT_EQ(json["kept"], true);
  for (const std::string& target : SupportedTargets()) {
    for (const char* section : {"functions", "operations", "bits"}) {
      size_t found = 0;
      for (const nlohmann::json& finding : json["findings"]) {
        found += finding["section"] == section && finding["target"] == target;
      }
      EXPECT_GT(found, 5u) << section << " on " << target;
    }
  }
  EXPECT_EQ(Files(), std::vector<std::string>{"report.json"});
}

TEST_F(CliTest, VerifyTriesPartsAlone) {
  const std::string path = Path("report.json");
  const CliResult result = Encore({"verify", "--only", "published,operations", "--json", path});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_TRUE(Has(result.out, "verify, quick, only operations and published; ")) << result.out;
  EXPECT_TRUE(Has(result.out, "matmul")) << result.out;
  EXPECT_TRUE(Has(result.out, "What was tried was kept (")) << result.out;
  EXPECT_FALSE(Has(result.out, "Every promise")) << result.out;
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(json["only"], (std::vector<std::string>{"operations", "published"}));
  EXPECT_GT(json["findings"].size(), 5u);
  for (const nlohmann::json& finding : json["findings"]) {
    const std::string section = finding["section"];
    EXPECT_TRUE(section == "published" || section == "operations") << finding;
  }
}

TEST_F(CliTest, VerifyTriesPrecisionsAlone) {
  if (kSanitized) GTEST_SKIP() << "minutes under a sanitizer";
  const std::string path = Path("report.json");
  const CliResult result = Encore({"verify", "--only", "bits", "--batches", "1", "--precision",
                                   "int8,bf16,int4,int8", "--json", path});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  std::map<std::string, size_t> found;  // by what stands before ": "
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path));
  for (const nlohmann::json& finding : json["findings"]) {
    const std::string check = finding["check"];
    ++found[check.substr(0, check.find(": "))];
  }
  EXPECT_GE(found["bf16"], 7 * SupportedTargets().size());
  EXPECT_EQ(found["int8"], found["bf16"]);
  EXPECT_EQ(found["int4"], found["bf16"]);
  EXPECT_FALSE(Has(result.out, "\n  any batch")) << "blocks in f32 were not asked for";
}

TEST_F(CliTest, VerifyTriesFunctionsAloneAndPrintsTheirTable) {
  const std::string path = Path("report.json");
  const CliResult result = Encore(
      {"verify", "--function", "tile_gelu,exp", "--step", "100003", "--markdown", "--json", path});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_TRUE(Has(result.out, "verify, quick, only functions; ")) << result.out;
  EXPECT_TRUE(Has(result.out, " (1 float in 100003); without FMA ")) << result.out;
  for (const char* words :
       {"\n| function | ulp | promised | without FMA | promised | monotone |\n", "\n| exp | ",
        "| yes, promised |\n", "\n| in a block | ulp of x | ", "\n| tile_gelu | "}) {
    EXPECT_TRUE(Has(result.out, words)) << words << " is not in\n" << result.out;
  }
  EXPECT_FALSE(Has(result.out, "silu"));
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(json["only"], std::vector<std::string>{"functions"});
  for (const nlohmann::json& finding : json["findings"]) {
    EXPECT_TRUE(finding["section"] != "functions" || finding["step"] == 100003) << finding;
  }
}

TEST_F(CliTest, VerifyTriesConversionsAlone) {
  const std::string path = Path("report.json");
  const CliResult result =
      Encore({"verify", "--only", "conversions", "--step", "65537", "--json", path});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  const nlohmann::json json = nlohmann::json::parse(ReadFile(path));
  EXPECT_EQ(json["findings"].size(), 4 + 3 * SupportedTargets().size());
  for (const nlohmann::json& finding : json["findings"]) {
    EXPECT_EQ(finding["section"], "conversions");
    EXPECT_EQ(finding["comparisons"], 65536) << finding;
  }
}

TEST_F(CliTest, VerifyHelpHasExamples) {
  const CliResult result = Encore({"verify", "--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(Has(result.out, "Examples:\n  encore verify")) << result.out;
}

TEST_F(CliTest, VerifyRefusesBeforeTheWork) {
  ExpectRefused({"verify", "--json", Path("no/such/folder.json")}, {"--json", "no/such"});
  ExpectRefused({"verify", "--json", ""}, {"--json"});
  ExpectRefused({"verify", "--quick", "--full"}, {"--full", "--quick"});
  ExpectRefused({"verify", "--step", "0"}, {"--step"});
  ExpectRefused({"verify", "--batches", "0"}, {"--batches"});
  ExpectRefused({"verify", "--only", "bytes"}, {"--only", "bytes", "published"});
  ExpectRefused({"verify", "--only", ""}, {"--only"});
  ExpectRefused({"verify", "--function", "cosh"}, {"--function", "cosh", "tile_gelu"});
  ExpectRefused({"verify", "--only", "bits", "--function", "exp"}, {"--function", "--only"});
  ExpectRefused({"verify", "--only", "bits", "--markdown"}, {"--markdown", "--only"});
  ExpectRefused({"verify", "--precision", "f64"}, {"--precision", "f64", "int8"});
  ExpectRefused({"verify", "everything"}, {"everything"});
  EXPECT_TRUE(Files().empty());
}

TEST_F(CliTest, VerifyPrintsTheLinesOfTheTableOfHashes) {
  const CliResult result = Encore({"verify", "--print-hashes"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
    EXPECT_TRUE(Has(result.out, "    {\"" + std::string(golden.name) + "\", 0x")) << result.out;
  }
  for (const std::string& target : SupportedTargets()) {
    const CliResult there = Encore({"verify", "--print-hashes", "--target", target});
    ASSERT_EQ(there.status, 0) << there.err;
    EXPECT_EQ(there.out == result.out, reference::TargetHasFma(target)) << target;
  }
  ExpectRefused({"verify", "--print-hashes", "--target", "SSE9"}, {"--target", "SSE9"});
  ExpectRefused({"verify", "--target", "SSE2"}, {"--target", "--print-hashes"});
}

Finding Bits(const std::string& check, const std::string& target, bool kept) {
  return {.section = VerifySection::kBits,
          .check = check,
          .target = target,
          .kept = kept,
          .observed = 12,
          .detail = kept ? "" : "sequence 3 differs"};
}

TEST(VerifyReport, NamesWhatBroke) {
  VerifyReport report(false, {"AVX3", "AVX2"});
  report.Add(Bits("any batch", "AVX3", true));
  report.Add(Bits("any batch", "AVX2", true));
  std::ostringstream kept;
  report.Print(kept, false);
  EXPECT_TRUE(Has(kept.str(), "Every promise was kept")) << kept.str();
  EXPECT_EQ(report.Broken(), 0u);

  report.Add(Bits("threads", "AVX3", true));
  report.Add(Bits("threads", "AVX2", false));
  report.Add({.section = VerifySection::kFunctions,
              .check = "exp",
              .target = "AVX3",
              .kept = false,
              .observed = std::numeric_limits<double>::infinity(),
              .promise = 1,
              .detail = "at 3"});
  std::ostringstream broken;
  report.Print(broken, false);
  EXPECT_EQ(report.Broken(), 2u);
  EXPECT_TRUE(Has(broken.str(),
                  "BROKEN: bits differ that were promised to be equal: threads on AVX2: sequence 3 "
                  "differs\n"))
      << broken.str();
  EXPECT_TRUE(Has(broken.str(), "BROKEN: an error is larger than promised: exp on AVX3: at 3\n"));
  EXPECT_FALSE(Has(broken.str(), "Every promise"));
  const nlohmann::json json = nlohmann::json::parse(report.Json());
  EXPECT_EQ(json["kept"], false);
  EXPECT_EQ(json["broken"], 2);
  EXPECT_TRUE(json["findings"].back()["error"].is_null()) << "JSON has no infinity";
}

}  // namespace
}  // namespace encore
