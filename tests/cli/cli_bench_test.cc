// SPDX-License-Identifier: Apache-2.0
//
// `encore bench` and `encore info --plan`: rows and plans that make sense, flags that are refused,
// and what lies under them in bench/measure. No test asserts a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "bench/measure/samples.h"
#include "encore/cpu.h"
#include "encore/executor.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

using nlohmann::json;

size_t Occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class CliBenchTest : public CliTest {
 protected:
  // The file that it writes.
  json Bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "--json", Path("b.json")});
    if (std::count(arguments.begin(), arguments.end(), "--seconds") == 0) {
      arguments.insert(arguments.end(), {"--seconds", "0.01"});
    }
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    out_ = result.out;
    return json::parse(ReadFile(Path("b.json")), nullptr, false);
  }

  std::string out_;  // of the last Bench
};

TEST_F(CliBenchTest, RowsMakeSense) {
  const bench::NamedWorkload& load = *bench::FindWorkload("minilm_1x16");
  const double flops = bench::LayerFlops(load.model, load.lengths);
  const json report = Bench({"--workload", load.name, "--threads", "1,2"});
  EXPECT_EQ(report["encore_report"], 1);
  ASSERT_EQ(report["rows"].size(), 4u) << report.dump(1);
  // A roof is what the machine can do at most. The tenth is for what other work takes from roof and
  // row unequally; where there is much of that, in these 10 ms a row, there is no telling.
  const bool disturbed =
      report["noise"]["busy_percent"] > 5.0 || report["noise"]["steal_percent"] > 1.0;
  const double most_share = kSlow || disturbed ? 2.0 : 1.1;
  std::set<std::string> cells;
  for (const json& row : report["rows"]) {
    SCOPED_TRACE(row.dump(1));
    EXPECT_EQ(row["engine"], "encore");
    EXPECT_EQ(row["workload"], load.name);
    EXPECT_EQ(row["precision"], "f32");
    EXPECT_EQ(row["target"], ActiveTarget());
    cells.insert(row["threads"].dump() + row["weights"].dump());
    const json& seconds = row["seconds"];
    const double median = seconds["p50"];
    EXPECT_GT(seconds["min"], 0.0);
    EXPECT_LE(seconds["min"], median);
    EXPECT_LE(median, seconds["p90"]);
    EXPECT_LE(seconds["p90"], seconds["max"]);
    const std::vector<double> quantiles = row["quantiles"];
    ASSERT_EQ(quantiles.size(), 101u);
    EXPECT_TRUE(std::is_sorted(quantiles.begin(), quantiles.end()));
    EXPECT_EQ(quantiles[0], seconds["min"]);
    EXPECT_EQ(quantiles[50], median);
    if (row["calls"] >= 100) {
      EXPECT_EQ(quantiles[99], seconds["p99"]);
    } else {
      EXPECT_TRUE(seconds["p99"].is_null());
    }
    EXPECT_EQ(quantiles[100], seconds["max"]);
    EXPECT_NEAR(row["flops"], flops, 1);
    EXPECT_NEAR(row["gflops"], flops / median * 1e-9, 1e-15 * flops / median);
    EXPECT_EQ(row["weight_bytes"], 4 * 12 * 384 * 384);
    EXPECT_NEAR(row["tokens_per_s"], 16 / median, 1e-6 / median);
    EXPECT_EQ(row["useful_tokens_per_s"], row["tokens_per_s"]);
    EXPECT_GE(row["calls"], 4);
    EXPECT_EQ(row["tokens"], 16);
    EXPECT_EQ(row["layers"], 1);
    EXPECT_EQ(row["verified"], true);
    const json& roof = row["roof"];
    EXPECT_GT(roof["value"], 0.0);
    EXPECT_GT(roof["share"], 0.0);
    EXPECT_LT(roof["share"], most_share);
    if (roof["kind"] == "compute") {
      EXPECT_EQ(roof["name"], "f32 peak");
      EXPECT_TRUE(roof["level"].is_null());
    } else {
      EXPECT_EQ(roof["name"], std::string(roof["level"]) + " bandwidth");
    }
  }
  EXPECT_EQ(cells.size(), report["rows"].size()) << "each once";
  for (const char* name : {"version", "date", "cpu", "caches", "cores", "compiler", "target",
                           "executor", "idle_spin", "wait_policy", "binding"}) {
    EXPECT_TRUE(Has(out_, name)) << name;
  }
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n') -
                std::count(out_.begin(), out_.begin() + static_cast<long>(out_.find("p50")), '\n'),
            1 + 4 + 2 + static_cast<long>(report["noise"]["notes"].size()))
      << "columns, rows, an empty line, noise and notes:\n"
      << out_;
}

TEST_F(CliBenchTest, RoofsAreThereForEachPrecisionLevelAndThreadCount) {
  const json report = Bench({"--workload", "example_32x10", "--threads", "1,2", "--warm"});
  std::set<std::string> seen;
  for (const json& roof : report["roofs"]) {
    const bool compute = roof["kind"] == "compute";
    const std::string name = roof[compute ? "precision" : "level"];
    EXPECT_TRUE(seen.insert(name + roof["threads"].dump()).second) << roof;
    const std::vector<double> samples = roof["samples"];
    EXPECT_EQ(roof[compute ? "flops_per_s" : "bytes_per_s"],
              *std::max_element(samples.begin(), samples.end()));
    EXPECT_GT(samples.front(), 0.0);
    EXPECT_TRUE(Has(out_, name));
  }
  for (const char* name : {"f32", "bf16", "int8", "int4", "memory"}) {
    EXPECT_EQ(seen.count(std::string(name) + "1"), 1u) << name;
    EXPECT_EQ(seen.count(std::string(name) + "2"), 1u) << name;
  }
  EXPECT_EQ(seen.count("L21"), Caches().l2 > 0 ? 1u : 0u);
}

TEST_F(CliBenchTest, OneRowHasADriftAndAThreadCountCountsOnce) {
  const json report = Bench({"--workload", "example_32x10", "--threads", "1,1", "--warm"});
  EXPECT_EQ(report["rows"].size(), 1u);
  std::set<std::string> seen;
  for (const json& roof : report["roofs"]) {
    const std::string name = roof[roof["kind"] == "compute" ? "precision" : "level"];
    EXPECT_TRUE(seen.insert(name).second) << roof;
  }
  // On a quiet machine eleven samples may be equal, to the clock's resolution.
  ASSERT_TRUE(report["noise"]["peak_drift_percent"].is_number()) << report["noise"];
  EXPECT_GE(report["noise"]["peak_drift_percent"], 0.0);
  EXPECT_GE(report["noise"]["memory_drift_percent"], 0.0);
}

TEST_F(CliBenchTest, WholeModelsAndPaddingAreCountedAsWhatTheyAre) {
  const json rows =
      Bench({"--workload", "minilm_6_layers_1x128", "--threads", "1", "--warm"})["rows"];
  ASSERT_EQ(rows.size(), 1u);
  const bench::NamedWorkload& load = *bench::FindWorkload("minilm_1x128");
  EXPECT_EQ(rows[0]["layers"], 6);
  EXPECT_NEAR(rows[0]["flops"], 6 * bench::LayerFlops(load.model, load.lengths), 1);
  EXPECT_EQ(rows[0]["weight_bytes"], 6 * 4 * 12 * 384 * 384);

  const bench::NamedWorkload& ragged = *bench::FindWorkload("ragged_64");
  const bench::NamedWorkload& padded = *bench::FindWorkload("ragged_64_padded");
  EXPECT_EQ(bench::Tokens(padded), 64u * 328);
  EXPECT_EQ(bench::Tokens(padded) - padded.padding, bench::Tokens(ragged));
}

TEST_F(CliBenchTest, WarmColdAndTargetChoose) {
  const std::vector<std::string> common = {"--workload", "custom", "--d-model", "32",
                                           "--heads",    "2",      "--d-ff",    "40",
                                           "--lengths",  "5,1,9",  "--threads", "1"};
  for (const bool cold : {false, true}) {
    std::vector<std::string> arguments = common;
    arguments.push_back(cold ? "--cold" : "--warm");
    const json rows = Bench(arguments)["rows"];
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]["weights"], cold ? "cold" : "warm");
    EXPECT_EQ(rows[0]["tokens"], 15);
    EXPECT_EQ(rows[0]["sequences"], 3);
    EXPECT_EQ(rows[0]["d_model"], 32);
    EXPECT_EQ(rows[0]["activation"], "gelu");
  }
  // A run measures the roofs, which takes a second: of each target one.
  for (const std::string& target : SupportedTargets()) {
    if (kSlow && target != SupportedTargets().back()) continue;
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"--warm", "--target", target, "--precision",
                                       "int4,f32,bf16,int8,f32"});  // each once, in this order
    const json rows = Bench(arguments)["rows"];
    ASSERT_EQ(rows.size(), 4u);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["target"], target);
      EXPECT_EQ(rows[i]["precision"], std::vector({"int4", "f32", "bf16", "int8"})[i]);
      EXPECT_EQ(rows[i]["verified"], true);
    }
  }
}

TEST_F(CliBenchTest, EachRowIsVisitedTwiceAndEachNameCountsOnce) {
  const json rows = Bench({"--workload", "example_32x10,minilm_1x16,example_32x10", "--warm",
                           "--threads", "1", "--seconds", "0"})["rows"];
  ASSERT_EQ(rows.size(), 2u);
  for (const json& row : rows) {
    EXPECT_EQ(row["calls"], 4) << "two a visit";
    EXPECT_EQ(Occurrences(out_, row["workload"].get<std::string>() + " "), 1u) << out_;
  }
}

TEST_F(CliBenchTest, SaysWhereThreadsComeFrom) {
  const std::vector<std::string> common = {"--workload", "example_32x10", "--warm", "--threads"};
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), common.begin(), common.end());
    const json report = Bench(flags);
    EXPECT_EQ(report["rows"].size(), 1u);
    return report["run"];
  };
  const json sleeping = run({"2"});
  EXPECT_EQ(sleeping["threads_from"], "pool");
  EXPECT_EQ(sleeping["idle_spin_us"], 0);
  const json spinning = run({"3", "--executor", "pool", "--idle-spin", "120"});
  EXPECT_EQ(spinning["threads_from"], "pool");
  EXPECT_EQ(spinning["idle_spin_us"], 120);
  EXPECT_TRUE(Has(spinning["binding"], "120 us"));
  EXPECT_TRUE(Has(out_, "120 us")) << out_;
  const int openmp = std::min(2, Executor::OpenMP(2).threads());
  const json other = run({std::to_string(openmp), "--executor", "openmp"});
  EXPECT_EQ(other["threads_from"], "openmp");
  EXPECT_TRUE(Has(other["binding"], "OpenMP"));
}

#if !defined(_WIN32)
TEST_F(CliBenchTest, EndedEarlyItLeavesWhatWasThere) {
  WriteFile(Path("b.json"), "before");
  for (const char* signal : {"INT", "TERM"}) {
    // A shell's background jobs ignore SIGINT, so timeout(1) sends it.
    const CliResult result =
        Run("timeout", {"-s", signal, "0.5", ENCORE_CLI_PATH, "bench", "--seconds", "60",
                        "--workload", "base_1x128", "--json", Path("b.json")});
    EXPECT_NE(result.status, 0) << signal;
    EXPECT_EQ(ReadFile(Path("b.json")), "before");
    EXPECT_EQ(Files(), std::vector<std::string>{"b.json"});
  }
}

// While a row is measured that takes seconds, behind one that is done. Only of --rate is that shown
// at once: of the others one of some waits finds it.
TEST_F(CliBenchTest, StoppedItKeepsTheRowsThatAreDone) {
  const auto stopped = [&](const std::string& options, const std::string& shown,
                           const std::string& wait) {
    const std::string script =
        "\"$0\" bench --threads 1 --workload example_10x32," +
        std::string(kSlow ? "base_1x512" : "base_1x8192") + " --seconds 0 " + options +
        " --json \"$1/b.json\" > \"$1/out\" 2> \"$1/err\" & until grep -q '" + shown +
        "' \"$1/out\" || ! kill -0 $!; do sleep 0.05; done; sleep " + wait + "; kill $!; wait $!";
    return Run("bash", {"-c", script, ENCORE_CLI_PATH, Path(".")}).status == 3 &&
           Has(ReadFile(Path("err")), "stopped; rows that were measured before");
  };
  const auto expect_rows = [&](size_t most) {
    EXPECT_TRUE(Has(ReadFile(Path("out")), "example_10x32"));
    const json report = json::parse(ReadFile(Path("b.json")));
    EXPECT_GE(report["rows"].size(), 1u);
    EXPECT_LE(report["rows"].size(), most);
    EXPECT_TRUE(Has(report["noise"]["notes"].dump(), "The run was stopped"));
  };
  ASSERT_TRUE(stopped("--rate", "rate of", "0")) << ReadFile(Path("err"));
  expect_rows(1);
  bool found = false;
  for (const char* wait : {"0.3", "0.6", "1.2", "2.4", "5"}) {
    if ((found = stopped("--warm", "roof", wait))) break;
  }
  ASSERT_TRUE(found) << ReadFile(Path("err"));
  expect_rows(2);  // the second visit may have begun
}
#endif

TEST_F(CliBenchTest, HelpAndListTellWhatThereIs) {
  const CliResult help = Encore({"bench", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(Has(help.out, "Examples:"));
  const CliResult list = Encore({"bench", "--list"});
  EXPECT_EQ(list.status, 0);
  for (const char* name : {"example_32x10",
                           "example_10x32",
                           "minilm_1x16",
                           "minilm_1x128",
                           "minilm_8x128",
                           "base_1x16",
                           "base_1x128",
                           "base_8x128",
                           "base_1x512",
                           "large_1x128",
                           "ragged_64",
                           "base_1x2048",
                           "base_1x8192",
                           "base_1x16384",
                           "deberta_base_1x16",
                           "deberta_base_1x512",
                           "vit_b_1x197",
                           "vit_b_1x50",
                           "vit_b_12_layers_8x50",
                           "vit_b_12_layers_8x197",
                           "minilm_6_layers_1x128",
                           "base_12_layers_1x128",
                           "modernbert_22_layers_1x512",
                           "ragged_64_padded",
                           "custom"}) {
    EXPECT_TRUE(Has(list.out, name)) << name;
  }
}

TEST_F(CliBenchTest, RefusesUnfitFlags) {
  WriteFile(Path("b.json"), "before");
  const auto refuse = [&](std::vector<std::string> arguments,
                          const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), {"bench", "--json", Path("b.json")});
    ExpectRefused(arguments, words);
  };
  refuse({"--workload", "base_1x17"}, {"--workload", "base_1x17", "--list"});
  refuse({"--precision", "f64"}, {"--precision", "f64", "f32"});
  refuse({"--threads", "0"}, {"--threads", "0"});
  refuse({"--threads", "1,two"}, {"--threads", "two"});
  refuse({"--threads", "2x"}, {"--threads", "2x", "wanted numbers from 1 to"});
  refuse({"--threads", "99999999999"}, {"--threads", "99999999999", "wanted numbers from 1 to"});
  refuse({"--executor", "tbb"}, {"--executor", "tbb"});
  refuse({"--idle-spin", "-1"}, {"--idle-spin", "-1"});
  refuse({"--idle-spin", "1000001"}, {"--idle-spin", "1000001"});
  refuse({"--idle-spin", "5", "--executor", "openmp"}, {"--idle-spin", "pool", "openmp"});
  refuse({"--seconds", "-1"}, {"--seconds", "-1", "0 to 600"});
  refuse({"--seconds", "nan"}, {"--seconds", "nan"});
  refuse({"--target", "MMX"}, {"--target", "MMX", SupportedTargets()[0]});
  refuse({"--d-model", "64"}, {"--d-model", "custom"});
  refuse({"--workload", "custom", "--heads", "5"}, {"--heads", "5", "768"});
  refuse({"--workload", "custom", "--seq", "0"}, {"--seq", "0"});
  refuse({"--workload", "custom", "--seq", "-3"}, {"--seq", "-3"});
  refuse({"--workload", "custom", "--seq", "3", "--lengths", "4"}, {"--seq", "--lengths"});
  EXPECT_EQ(ReadFile(Path("b.json")), "before");
  EXPECT_EQ(Files(), std::vector<std::string>{"b.json"});
  ExpectRefused({"bench", "--json", Path("none/b.json")}, {"--json", Path("none/b.json")});
}

TEST_F(CliBenchTest, PlanTellsTilesAndBlocking) {
  for (const std::string& target : SupportedTargets()) {
    const CliResult result =
        Encore({"info", "--plan", "--json", "--target", target, "--d-model", "390", "--heads", "6",
                "--d-ff", "1000", "--lengths", "7,130", "--threads", "3"});
    ASSERT_EQ(result.status, 0) << result.err;
    const json plan = json::parse(result.out)["plan"];
    SCOPED_TRACE(plan.dump(1));
    EXPECT_EQ(plan["target"], target);
    EXPECT_GE(plan["tiles"].size(), 1u);
    EXPECT_EQ(plan["batch"]["tokens"], 137);
    EXPECT_EQ(plan["batch"]["threads"], 3);
    ASSERT_EQ(plan["matrices"].size(), 4u);
    EXPECT_EQ(plan["matrices"][0]["n"], 3 * 390);
    EXPECT_EQ(plan["matrices"][3]["k"], 1000);
    for (const json& matrix : plan["matrices"]) {
      EXPECT_GE(matrix["kc"], 1);
      EXPECT_LE(matrix["kc"], matrix["k"]);
      EXPECT_GE(matrix["mr"], 1);
      EXPECT_GE(matrix["panels"].get<size_t>() * matrix["nr"].get<size_t>(),
                matrix["n"].get<size_t>());
    }
  }
  const CliResult text = Encore({"info", "--plan"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(Has(text.out, "linear2")) << text.out;
  ExpectRefused({"info", "--d-model", "64"}, {"--d-model", "--plan"});
  ExpectRefused({"info", "--plan", "--target", "MMX"}, {"--target", "MMX"});
  ExpectRefused({"info", "--plan", "--heads", "7"}, {"--heads", "7", "768"});
}

TEST_F(CliBenchTest, PlanTellsWhoDoesWhat) {
  // "threads" of the plan for a layer of BERT base, or of other sizes.
  const auto plan = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"info", "--plan", "--threads", "2"});
    const CliResult text = Encore(flags);
    flags.push_back("--json");
    const CliResult result = Encore(flags);
    EXPECT_EQ(result.status, 0) << result.err;
    const json threads = json::parse(result.out)["plan"]["threads"];
    const std::string kind = threads["kind"];
    EXPECT_TRUE(Has(text.out, "by " + kind + ", on " + threads["threads"].dump() + " thread"))
        << text.out;
    return threads;
  };

  const json sequences = plan({"--batch", "8"});
  EXPECT_EQ(sequences["kind"], "sequences") << sequences;
  EXPECT_EQ(sequences["threads"], 2);
  std::set<size_t> seen;
  size_t rows = 0;
  for (const json& group : sequences["groups"]) {
    const size_t count = group["sequences"];
    for (size_t i = 0; i < count; ++i) seen.insert(group["first_sequence"].get<size_t>() + i);
    EXPECT_EQ(group["rows"], 128 * count);
    rows += group["rows"].get<size_t>();
  }
  EXPECT_EQ(rows, 8u * 128);
  EXPECT_EQ(seen.size(), 8u) << "every sequence once: " << sequences;
  EXPECT_FALSE(sequences.contains("row_blocks"));
  EXPECT_FALSE(sequences.contains("heads_together"));

  const json by_rows = plan({"--lengths", "500,7"});
  EXPECT_EQ(by_rows["kind"], "rows") << by_rows;
  EXPECT_TRUE(by_rows["attention_apart"]) << "lengths differ";
  rows = 0;
  for (const json& block : by_rows["row_blocks"]) rows += block.get<size_t>();
  EXPECT_EQ(rows, 507u);
  EXPECT_EQ(by_rows["row_blocks"].size() % 2, 0u) << by_rows;
  EXPECT_FALSE(by_rows.contains("groups"));

  const json columns = plan({"--seq", "16"});
  EXPECT_EQ(columns["kind"], "columns") << columns;
  EXPECT_TRUE(columns["heads_together"].is_boolean());
  EXPECT_FALSE(columns.contains("groups"));
  EXPECT_FALSE(plan({"--seq", "16", "--heads", "3"})["heads_together"]) << "3 heads, 2 threads";

  const json small = plan({"--d-model", "32", "--heads", "2", "--d-ff", "64", "--seq", "2"});
  EXPECT_EQ(small["kind"], "sequences");
  EXPECT_EQ(small["threads"], 1) << "too little for two";
}

TEST(Quantile, IsTheSmallestValueThatTheShareDoesNotExceed) {
  std::vector<double> values;
  for (int i = 1; i <= 200; ++i) values.push_back((i * 77) % 201);  // 1 .. 200 in another order
  EXPECT_EQ(bench::Quantile(values, 0), 1);
  EXPECT_EQ(bench::Quantile(values, 0.5), 100);
  EXPECT_EQ(bench::Quantile(values, 0.99), 198);
  EXPECT_EQ(bench::Quantile(values, 1), 200);
  EXPECT_EQ(bench::Quantile({3}, 0.5), 3);
  EXPECT_EQ(bench::Quantile({4, 3}, 0.99), 4);
}

TEST(NamedWorkloads, RaggedIsTheSameEverywhere) {
  const bench::NamedWorkload& ragged = *bench::FindWorkload("ragged_64");
  ASSERT_EQ(ragged.lengths.size(), 64u);
  const auto [shortest, longest] =
      std::minmax_element(ragged.lengths.begin(), ragged.lengths.end());
  EXPECT_EQ(*shortest, 12u);
  EXPECT_EQ(*longest, 328u);
  EXPECT_EQ(bench::Tokens(ragged), 6244u);

  const bench::NamedWorkload& uniform = *bench::FindWorkload("ragged_64_uniform");
  const double ratio = bench::LayerFlops(uniform.model, uniform.lengths) /
                       bench::LayerFlops(ragged.model, ragged.lengths);
  EXPECT_NEAR(ratio, 1, 0.01);
}

TEST(NamedWorkloads, NamesAreUnique) {
  std::set<std::string> names = {"custom"};
  for (const bench::NamedWorkload& load : bench::NamedWorkloads()) names.insert(load.name);
  EXPECT_EQ(names.size(), bench::NamedWorkloads().size() + 1);
  EXPECT_EQ(bench::FindWorkload("nothing"), nullptr);
}

}  // namespace
}  // namespace encore
