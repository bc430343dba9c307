// SPDX-License-Identifier: Apache-2.0
//
// `encore bench --rate` and `--load`: a queue on a clock of its own against the formulas of M/D/1,
// the search for a load, rows of copies, what is refused. No test asserts that something is fast.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/measure/frames.h"
#include "bench/measure/samples.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"
#include "tools/encore/bench_deadline.h"

namespace encore {
namespace {

using nlohmann::json;

constexpr double kService = 0.004;  // seconds of a call

// One server, whose calls take kService and no time of the machine; of call `stalled` 100 times
// that.
bench::FrameTimes Simulate(double load, size_t calls, size_t stalled = SIZE_MAX) {
  double now = 1000;
  bench::FrameLoop loop = {.frames = calls, .callers = 1};
  loop.arrivals = bench::PoissonArrivals(calls, load / kService);
  loop.now = [&] { return now; };
  loop.sleep = [&](double seconds) { now += seconds; };
  return bench::RunFrames(loop, [&](size_t i, size_t caller) {
    EXPECT_EQ(caller, 0u);
    now += i == stalled ? 100 * kService : kService;
  });
}

// The share of calls that wait no longer than t in M/D/1 (Erlang 1909).
double WaitsAtMost(double t, double load) {
  double sum = 0;
  for (int k = 0; k <= static_cast<int>(t / kService); ++k) {
    const double x = load * (t / kService - k);
    sum += (k % 2 == 0 ? 1 : -1) *
           std::exp(x + k * std::log(std::max(x, 1e-300)) - std::lgamma(k + 1.0));
  }
  return (1 - load) * sum;
}

TEST(BenchServerTest, AQueueIsThatOfTheFormula) {
  constexpr size_t kCalls = 200'000;
  for (const double load : {0.5, 0.8, 0.9}) {
    SCOPED_TRACE(load);
    const bench::FrameTimes times = Simulate(load, kCalls);
    ASSERT_EQ(times.calls.size(), kCalls);
    EXPECT_TRUE(times.control.empty());
    EXPECT_NEAR(times.seconds * load / kService, kCalls, 0.01 * kCalls) << "all arrivals";
    // Pollaczek and Khinchine's mean.
    const double mean = std::accumulate(times.calls.begin(), times.calls.end(), 0.0) / kCalls;
    const double expected = kService * (1 + load / (2 * (1 - load)));
    EXPECT_NEAR(mean, expected, (load < 0.9 ? 0.03 : 0.08) * expected);
    if (load == 0.9) continue;  // the formula's terms cancel out
    for (const double q : {0.9, 0.99, 0.999}) {
      const double wait = bench::Quantile(times.calls, q) - kService;
      EXPECT_NEAR(1 - WaitsAtMost(wait, load), 1 - q, 0.15 * (1 - q)) << q;
    }
  }
}

// No coordinated omission: those that arrive while a call stalls are slow too.
TEST(BenchServerTest, CallsCountFromTheirArrival) {
  const bench::FrameTimes times = Simulate(0.5, 2000, 1000);
  const auto slow = std::count_if(times.calls.begin(), times.calls.end(),
                                  [](double seconds) { return seconds > 50 * kService; });
  EXPECT_GT(slow, 15) << "some 25 arrive in the first half of the stall";
  EXPECT_LT(slow, 150);
}

TEST(BenchServerTest, TheHighestLoadWithinABudget) {
  for (const double services : {3.0, 6.0, 15.0}) {
    const double budget = services * kService;
    int expected = 99;
    while (WaitsAtMost(budget - kService, 0.01 * expected) < 0.99) --expected;
    const auto run = [](size_t percent) {
      return Simulate(0.01 * static_cast<double>(percent), 50'000);
    };
    const auto guess = [&](size_t percent) {
      return bench::Quantile(run(percent).calls, 0.99) <= budget;
    };
    const auto [percent, times] = tool::MostWithin(budget, 1, 100, guess, run);
    EXPECT_NEAR(static_cast<double>(percent), expected, 2) << services;
    EXPECT_LE(bench::Quantile(times.calls, 0.99), budget);
    // Where the first guess was too much, it goes down.
    const auto high = tool::MostWithin(
        budget, 1, 100, [](size_t) { return true; }, run);
    EXPECT_LE(high.first, percent);
    EXPECT_GT(high.first + 15, percent);
  }
}

TEST(BenchServerTest, CallersShareTheCalls) {
  constexpr size_t kCalls = 300;
  std::vector<std::atomic<int>> made(kCalls);
  std::atomic<int> others = 0;
  bench::FrameLoop loop = {.frames = kCalls, .callers = 3};
  const auto call = [&](size_t i, size_t caller) {
    ++made[i];
    if (caller > 2) ++others;
  };
  for (const bool arriving : {false, true}) {
    if (arriving) loop.arrivals = bench::PoissonArrivals(kCalls, 1e5);
    const bench::FrameTimes times = bench::RunFrames(loop, call);
    EXPECT_EQ(times.calls.size(), kCalls);
    EXPECT_GT(times.seconds, 0);
  }
  for (const auto& count : made) EXPECT_EQ(count, 2);
  EXPECT_EQ(others, 0);
  EXPECT_THROW(bench::RunFrames(loop,
                                [](size_t i, size_t) {
                                  if (i == 7) throw std::runtime_error("7");
                                }),
               std::runtime_error);
}

class CliBenchServerTest : public CliTest {
 protected:
  json Rows(std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", "--json", Path("b.json")});
    const CliResult result = Encore(more);
    EXPECT_EQ(result.status, 0) << result.err;
    out_ = result.out;
    return json::parse(ReadFile(Path("b.json")), nullptr, false)["rows"];
  }

  std::string out_;
};

TEST_F(CliBenchServerTest, LayersAtTheirRateAndUnderLoad) {
  const json rows = Rows({"--workload", "example_10x32", "--load", "50,80", "--budget", "10000ms",
                          "--threads", "1,2", "--seconds", "0.05"});
  ASSERT_EQ(rows.size(), 8u) << rows.dump(1);
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    SCOPED_TRACE(row.dump(1));
    EXPECT_EQ(row["threads"], i < 4 ? 1 : 2);
    EXPECT_EQ(row["weights"], "warm");
    EXPECT_EQ(row["verified"], true);
    EXPECT_TRUE(row["roof"].is_null());
    const double rate = row["server"]["calls_per_s"];
    EXPECT_GT(rate, 0);
    EXPECT_NEAR(row["tokens_per_s"], 320 * rate, 320e-6 * rate);
    EXPECT_EQ(row["server"]["p99_9"].is_null(), row["calls"] < 1000);
    const std::vector<json> loads = {nullptr, 50, 80, 100};
    EXPECT_EQ(row["server"]["load_percent"], loads[i % 4]);
    EXPECT_EQ(row.contains("budget"), i % 4 == 3);
  }
  EXPECT_EQ(rows[0]["workload"], "rate of example_10x32");
  EXPECT_EQ(rows[1]["workload"], "50 % load of example_10x32");
  EXPECT_EQ(rows[3]["workload"], "p99 in 10000 ms of example_10x32");
  EXPECT_EQ(rows[3]["budget"], (json{{"seconds", 10}, {"fits", true}}));
  for (const char* words : {"copies", "load", "calls/s", "p90 ms", "p99.9 ms", "back to back"}) {
    EXPECT_TRUE(Has(out_, words)) << words << "\n" << out_;
  }
}

TEST_F(CliBenchServerTest, TextsOfAModel) {
  TextFolder folder;
  folder.WriteModules();
  WriteFile(Path("texts"), "the bread\nthe harbour lies between two hills\n");
  const json rows = Rows({"--model", folder.path(), "--rate", "--texts", Path("texts"), "--threads",
                          "2", "--seconds", "0", "--precision", "int8", "--budget", "1us"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["workload"], "rate of model 2 texts");
  EXPECT_EQ(rows[0]["sequences"], 1);
  EXPECT_EQ(rows[0]["texts_per_s"], rows[0]["server"]["calls_per_s"]);
  EXPECT_EQ(rows[1]["budget"]["fits"], false);
  EXPECT_EQ(rows[1]["server"]["load_percent"], 1);
  EXPECT_TRUE(Has(out_, " none ")) << out_;
}

TEST_F(CliBenchServerTest, WhatIsRefused) {
  for (const char* load : {"0", "201", "much"}) {
    ExpectRefused({"bench", "--load", load}, {"--load"});
  }
  ExpectRefused({"bench", "--rate", "--cold"}, {"--rate", "--cold"});
  ExpectRefused({"bench", "--rate", "--texts", "t"}, {"--texts is for --model"});
  ExpectRefused({"bench", "--rate", "--budget", "5"}, {"--budget", "16ms"});
  ExpectRefused({"bench", "--model", "m", "--rate", "--loop", "60"}, {"--rate", "--loop"});
}

}  // namespace
}  // namespace encore
