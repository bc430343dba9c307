// SPDX-License-Identifier: Apache-2.0
//
// The command line as a whole: help, usage errors, `encore demo`, `encore info`.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/version.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tools/encore/text.h"

namespace encore {
namespace {

TEST_F(CliTest, HelpIsEverywhereAndHasExamples) {
  const std::vector<std::vector<std::string>> all = {{"--help"},         {"-h"},
                                                     {"demo", "--help"}, {"attend", "--help"},
                                                     {"run", "--help"},  {"info", "--help"}};
  for (const std::vector<std::string>& arguments : all) {
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << arguments[0];
    EXPECT_EQ(result.err, "") << arguments[0];
    EXPECT_TRUE(Has(result.out, "Examples:")) << result.out;
    EXPECT_TRUE(Has(result.out, "encore " + (arguments.size() > 1 ? arguments[0] : "attend")));
  }
}

TEST_F(CliTest, HelpIsPlainAndNarrow) {
  for (const std::string command :
       {"", "demo", "attend", "run", "convert", "calibrate", "bench", "info", "verify", "tokenize",
        "embed", "rerank", "label", "classify"}) {
    std::vector<std::string> arguments = {"--help"};
    if (!command.empty()) arguments.insert(arguments.begin(), command);
    const CliResult result = Encore(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(tool::DisplayWidth(line), 100u) << command << ": " << line;
      for (const char* word : {"UINT", "INT", "FLOAT", "TEXT:", " in [", "Excludes", "Needs"}) {
        EXPECT_FALSE(Has(line, word)) << command << ": " << line;
      }
    }
  }
  const std::string help = Encore({"rerank", "--help"}).out;
  EXPECT_TRUE(Has(help, "--top N (default 0) ")) << help;
  EXPECT_TRUE(Has(help, "--on-long cut|error (default cut)")) << help;
  EXPECT_TRUE(Has(help, "--query TEXT (required) ")) << help;
}

TEST_F(CliTest, TheNearestNameIsSuggested) {
  ExpectRefused({"emebd"}, {"unknown command 'emebd', the nearest is embed;"});
  ExpectRefused({"embe"}, {"unknown command 'embe', the nearest is embed;"});
  ExpectRefused({"--versoin"}, {"unknown option --versoin, the nearest is --version;"});
  ExpectRefused({"embed", "--modle", "x"}, {"unknown option --modle, the nearest is --model;"});
  ExpectRefused({"rerank", "--inptu=x"}, {"unknown option --inptu, the nearest is --input;"});
  ExpectRefused({"embed", "--prec", "int8"},
                {"unknown option --prec, the nearest is --precision;"});
  ExpectRefused({"xyzzyx"}, {"unknown command 'xyzzyx'; `encore --help`"});
  ExpectRefused({"demo", "--xyzzyx"}, {"unknown option --xyzzyx; `encore demo --help`"});
}

TEST_F(CliTest, VersionIsTheHeaders) {
  const CliResult result = Encore({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, std::string("encore ") + ENCORE_VERSION_STRING + "\n");
}

#if defined(__linux__)
TEST_F(CliTest, AFullDeviceIsOneSentence) {
  for (const std::string arguments : {"--help", "--version", "run --help", "info"}) {
    const std::string command =
        "'" ENCORE_CLI_PATH "' " + arguments + " > /dev/full 2> '" + Path("err") + "'";
    const int result = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(result)) << arguments;
    EXPECT_EQ(WEXITSTATUS(result), 2) << arguments;
    const std::string err = ReadFile(Path("err"));
    EXPECT_TRUE(Has(err, "the standard output cannot be written\n")) << arguments << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << arguments << err;
  }
}
#endif

TEST_F(CliTest, BadUsageIsOneSentence) {
  ExpectRefused({"dance"}, {"dance"});
  ExpectRefused({"--frobnicate"}, {"--frobnicate"});
  ExpectRefused({"demo", "--seed"}, {"--seed"});
  ExpectRefused({"demo", "--seed", "-1"}, {"--seed"});
  ExpectRefused({"demo", "--seed", "4294967296"}, {"--seed"});
  ExpectRefused({"demo", "--seed", ""}, {"--seed"});
  ExpectRefused({"demo", "--seconds", ""}, {"--seconds", "found nothing"});
  ExpectRefused({"demo", "--seconds", "nan"}, {"--seconds"});
  ExpectRefused({"demo", "--target", "MMX"}, {"--target", "MMX", ActiveTarget()});
  ExpectRefused({"info", "now"}, {"now"});
  ExpectRefused({"demo", "info"}, {"info"});
}

TEST_F(CliTest, DemoChecksTheBlockOnEveryTarget) {
  for (const std::string& target : SupportedTargets()) {
    const CliResult result = Encore({"demo", "--seconds", "0", "--target", target});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(Has(result.out, "computed with " + target + "\n")) << result.out;
    EXPECT_TRUE(Has(result.out, "[32, 10, 64]"));
    EXPECT_TRUE(Has(result.out, "the same bits as inline  ok"));
    EXPECT_FALSE(Has(result.out, "WRONG"));
    EXPECT_FALSE(Has(result.out, "\x1b")) << "colours in a file";
  }
}

TEST_F(CliTest, DemoIsTheDefaultAndTellsTheSpeed) {
  const CliResult result = Encore({});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "1 thread "));
  EXPECT_TRUE(Has(result.out, "tokens/s"));
}

TEST_F(CliTest, InfoAgreesWithTheLibrary) {
  const CliResult result = Encore({"info", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json info = nlohmann::json::parse(result.out);
  EXPECT_EQ(info["targets"]["compiled"], CompiledTargets());
  EXPECT_EQ(info["targets"]["supported"], SupportedTargets());
  EXPECT_EQ(info["targets"]["active"], SupportedTargets()[0]);
  EXPECT_EQ(info["cores"]["usable"], UsableCores());
  const CliResult text = Encore({"info"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(Has(text.out, SupportedTargets()[0]));
  EXPECT_TRUE(Has(text.out, Cores().reason));
}

}  // namespace
}  // namespace encore
