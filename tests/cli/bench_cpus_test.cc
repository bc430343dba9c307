// SPDX-License-Identifier: Apache-2.0
//
// `encore bench --cpus`: lists of cores, parts of machines that are recorded as sysfs has them, and
// what is refused; sweeps of threads.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/cpus.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/results.h"

namespace encore::bench {
namespace {

using nlohmann::json;

class BenchCpusTest : public CliTest {
 protected:
  // sysfs of a machine, by files.
  void Record(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, text] : files) {
      const std::filesystem::path path = std::filesystem::path(Path("devices")) / name;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << text << "\n";
    }
  }
  std::string Chosen(const std::vector<std::string>& entries, int cores = 8) {
    std::vector<int> allowed(static_cast<size_t>(cores));
    std::iota(allowed.begin(), allowed.end(), 0);
    const auto cpus = ChooseCpus(entries, allowed, Path("devices"));
    return cpus.ok() ? CpuListText(*cpus) : cpus.status().message();
  }
};

TEST_F(BenchCpusTest, ListsOfCores) {
  EXPECT_EQ(Chosen({"0-3", "6"}), "0-3,6");
  EXPECT_EQ(Chosen({"6", "5", "5-7"}), "5-7");
  EXPECT_EQ(Chosen({"no-smt"}), "0-7") << "nothing is known: each is a core";
  EXPECT_EQ(Chosen({"8"}), "found core 8, wanted some of 0-7");
  EXPECT_EQ(Chosen({"4-9"}), "found core 8, wanted some of 0-7");
  for (const char* wrong :
       {"-1", "3-1", "1-", "a", "1-2-3", "node1", "0x1", "9999999999", "node"}) {
    EXPECT_TRUE(Has(Chosen({wrong}), std::string("found '") + wrong + "', wanted cores")) << wrong;
  }
}

// Two performance cores with two threads each, four efficient ones; two nodes.
TEST_F(BenchCpusTest, PartsOfAMachineWithTwoTypesOfCores) {
  Record({{"cpu_core/cpus", "0-3"},
          {"cpu_atom/cpus", "4-7"},
          {"system/node/node0/cpulist", "0,1,4,5"},
          {"system/node/node1/cpulist", "2-3,6-7"}});
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string of = std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1);
    Record({{"system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
             cpu < 4 ? of : std::to_string(cpu)}});
  }
  EXPECT_EQ(Chosen({"p-cores"}), "0-3");
  EXPECT_EQ(Chosen({"e-cores"}), "4-7");
  EXPECT_EQ(Chosen({"no-smt"}), "0,2,4-7");
  EXPECT_EQ(Chosen({"no-smt", "p-cores"}), "0,2");
  EXPECT_EQ(Chosen({"1-7", "no-smt"}), "1-2,4-7") << "1 is the first of its core that is left";
  EXPECT_EQ(Chosen({"node1"}), "2-3,6-7");
  EXPECT_EQ(Chosen({"node1", "e-cores", "0-6"}), "6");
  EXPECT_TRUE(Has(Chosen({"0-1", "e-cores"}), "found 'e-cores'"));
}

TEST_F(BenchCpusTest, TypesByCapacity) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    Record({{"system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity", cpu < 3 ? "446" : "1024"}});
  }
  EXPECT_EQ(Chosen({"p-cores"}, 4), "3");
  EXPECT_EQ(Chosen({"e-cores"}, 4), "0-2");
  EXPECT_TRUE(Has(Chosen({"p-cores"}, 3), "found 'p-cores', wanted cores")) << "all are alike";
}

TEST_F(BenchCpusTest, TheCommandRunsOnThem) {
  const std::vector<int> allowed = AllowedCpus();
  if (allowed.empty()) GTEST_SKIP() << "the system does not tell";
  const std::string cpu = std::to_string(allowed.back());
  const CliResult result =
      Encore({"bench", "--workload", "example_10x32", "--warm", "--seconds", "0", "--cpus", cpu,
              "--threads", "1..3", "--json", Path("b.json"), "--format", "markdown"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json report = json::parse(ReadFile(Path("b.json")));
  EXPECT_EQ(report["machine"]["cores"], 1);
  EXPECT_TRUE(Has(report["run"]["binding"].get<std::string>(), "any core of " + cpu + ";"));
  ASSERT_EQ(report["rows"].size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(report["rows"][i]["threads"], i + 1);
  const auto refused = [&](const std::string& option, const std::string& value) {
    ExpectRefused({"bench", option, value}, {option, value});
  };
  refused("--cpus", std::to_string(allowed.back() + 1));
  for (const char* wrong : {"2..1", "0..2", "1..", "..2", "1..1025", "1...2"}) {
    refused("--threads", wrong);
  }
}

}  // namespace
}  // namespace encore::bench
