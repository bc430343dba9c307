// SPDX-License-Identifier: Apache-2.0
//
// What `encore bench` prints and writes of its rows: columns, Markdown, JSON, which build it was.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

using nlohmann::json;

class CliBenchOutputTest : public CliTest {
 protected:
  // The file that it writes.
  json Bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "--json", Path("b.json")});
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    out_ = result.out;
    return json::parse(ReadFile(Path("b.json")), nullptr, false);
  }

  std::string out_;  // of the last Bench
};

// Of 4 calls, p99 would be the slowest one.
TEST_F(CliBenchOutputTest, P99IsOfAHundredCallsAndMore) {
  const std::vector<std::string> common = {"--workload", "example_32x10", "--warm", "--threads",
                                           "1",          "--seconds"};
  const auto row = [&](const std::string& seconds) {
    std::vector<std::string> arguments = common;
    arguments.push_back(seconds);
    return Bench(arguments)["rows"][0];
  };
  EXPECT_TRUE(row("0")["seconds"]["p99"].is_null());
  const json many = row("1");
  if (many["calls"] >= 100) {
    EXPECT_GT(many["seconds"]["p99"], 0.0);
  }
}

TEST_F(CliBenchOutputTest, TheShareOfTheRoofIsTheFirstFigure) {
  Bench({"--workload", "example_32x10", "--warm", "--threads", "1"});
  const size_t head = out_.find("workload ");
  ASSERT_NE(head, std::string::npos) << out_;
  const std::string columns = out_.substr(head, out_.find('\n', head) - head);
  EXPECT_LT(columns.find("of its roof"), columns.find("p50 us")) << columns;
  EXPECT_TRUE(Has(out_, " % ")) << out_;
}

TEST_F(CliBenchOutputTest, PrintsMarkdownAndJson) {
  const std::vector<std::string> common = {"bench",     "--workload", "example_32x10",
                                           "--warm",    "--threads",  "1",
                                           "--seconds", "0",          "--format"};
  std::vector<std::string> arguments = common;
  arguments.emplace_back("markdown");
  const CliResult table = Encore(arguments);
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_TRUE(Has(table.out,
                  "| workload | layers | precision | threads | weights | of its roof | p50 us | "
                  "p99 us | tokens/s | GFLOP/s | roof |\n| :--- | ---: | ---: | "))
      << table.out;
  EXPECT_TRUE(Has(table.out, "\n| example_32x10 | 1 | f32 | 1 | warm | ")) << table.out;
  arguments.insert(arguments.end() - 2, {"--precision", "f32,int8"});
  EXPECT_TRUE(Has(Encore(arguments).out, "| tokens/s | GOP/s |"));
  arguments.back() = "json";
  const CliResult printed = Encore(arguments);
  ASSERT_EQ(printed.status, 0) << printed.err;
  const json report = json::parse(printed.out, nullptr, false);
  ASSERT_EQ(report["rows"].size(), 2u);
  EXPECT_EQ(report["rows"][1]["calls"], 4);
  ExpectRefused({"bench", "--format", "xml"}, {"--format", "xml"});
}

#if defined(__linux__)
// As on a full disk: the shell limits the size of files.
TEST_F(CliBenchOutputTest, RowsAreShownWhereTheFileCannotBeWritten) {
  const std::string command =
      "trap '' XFSZ; ulimit -f 8; '" ENCORE_CLI_PATH
      "' bench --workload example_32x10 --warm --threads 1 --seconds 0 --json '" +
      Path("b.json") + "' > '" + Path("out") + "' 2> '" + Path("err") + "'";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_TRUE(Has(ReadFile(Path("out")), "\nexample_32x10 "));
  EXPECT_EQ(ReadFile(Path("err")),
            "encore bench: " + Path("b.json") + ": cannot be written: File too large\n");
  EXPECT_FALSE(std::filesystem::exists(Path("b.json")));
}
#endif

// With which build: the commit where the sources are a repository, and no path of this machine.
TEST_F(CliBenchOutputTest, SaysWhichBuildItWas) {
  const json machine =
      Bench({"--workload", "example_32x10", "--warm", "--threads", "1"})["machine"];
  EXPECT_TRUE(Has(machine["flags"], "-ffp-contract=off") || Has(machine["compiler"], "MSVC"))
      << machine;
  EXPECT_FALSE(Has(machine["flags"], "/")) << machine;
  const bool repository = std::filesystem::exists(std::string(ENCORE_SOURCE_DIR) + "/.git");
  EXPECT_EQ(machine.contains("commit"), repository) << machine;
  if (repository) {
    EXPECT_GE(machine["commit"].get<std::string>().size(), 7u);
  }
  // All that the schema has is there, null where it is not known.
  const json schema =
      json::parse(ReadFile(ENCORE_SOURCE_DIR "/python/pyencore/lab/report.schema.json"));
  const json& facts = schema["properties"]["machine"]["properties"]["hardware"]["properties"];
  EXPECT_EQ(machine["hardware"].size(), facts.size()) << machine;
  for (const auto& [name, fact] : facts.items()) EXPECT_TRUE(machine["hardware"].contains(name));
}

}  // namespace
}  // namespace encore
