// SPDX-License-Identifier: Apache-2.0
//
// `encore bench --loop` and `--budget`: frames, what is counted in them, how many tokens fit, what
// is refused. No test asserts that something is fast.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/measure/frames.h"
#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"
#include "tools/encore/bench_deadline.h"

namespace encore {
namespace {

using nlohmann::json;

class CliBenchDeadlineTest : public CliTest {
 protected:
  CliBenchDeadlineTest() { folder_.WriteModules(); }

  // In f32; the report.
  json Bench(std::vector<std::string> more, const std::string& seconds = "0") {
    more.insert(more.begin(), {"bench", "--model", folder_.path(), "--precision", "f32",
                               "--seconds", seconds, "--json", Path("b.json")});
    const CliResult result = Encore(more);
    EXPECT_EQ(result.status, 0) << result.err;
    out_ = result.out;
    return json::parse(ReadFile(Path("b.json")), nullptr, false);
  }

  TextFolder folder_;
  std::string out_;
};

TEST_F(CliBenchDeadlineTest, ARowOfFrames) {
  const json report = Bench({"--loop", "1000", "--threads", "1,2"});
  ASSERT_EQ(report["rows"].size(), 2u) << report.dump(1);
  const auto model = TextEncoder::Open(folder_.path());
  const std::vector<std::string> texts = tool::SentencesOfLoop("");
  const auto encoded = model->Encode(texts);
  ASSERT_TRUE(encoded.ok());
  double tokens = 0;
  for (const size_t count : encoded->counts.tokens) tokens += static_cast<double>(count);
  for (const json& row : report["rows"]) {
    SCOPED_TRACE(row.dump(1));
    EXPECT_EQ(row["workload"], "model 4 texts, 1000 Hz");
    EXPECT_EQ(row["sequences"], 1);
    EXPECT_NEAR(row["tokens"], tokens / static_cast<double>(texts.size()), 0.5);
    EXPECT_EQ(row["calls"], 4);
    EXPECT_EQ(row["verified"], true);
    EXPECT_FALSE(row.contains("budget"));
    const json& loop = row["loop"];
    EXPECT_EQ(loop["hz"], 1000);
    EXPECT_TRUE(loop["p99_9"].is_null());
    EXPECT_GT(loop["control"]["p50"], 0.0);
    EXPECT_GE(loop["control"]["max"], loop["control"]["p50"]);
    for (const char* count :
         {"late", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches"}) {
      EXPECT_GE(loop[count], 0) << count;
    }
#if !ENCORE_TEST_ASAN && !ENCORE_TEST_TSAN
    EXPECT_EQ(loop["allocations"], 0) << "null: operator new does not count";
#endif
  }
  EXPECT_TRUE(Has(out_, "p99.9 ms")) << out_;
  EXPECT_TRUE(Has(out_, "control: p50")) << out_;
}

TEST_F(CliBenchDeadlineTest, FramesKeepTheirTime) {
  const json report = Bench({"--loop", "2", "--executor", "inline"});
  ASSERT_EQ(report["rows"].size(), 1u) << "inline is one thread";
  EXPECT_EQ(report["rows"][0]["threads"], 1);
  EXPECT_GE(report["run"]["seconds"], 2.0) << "four frames at 2 Hz";
}

TEST_F(CliBenchDeadlineTest, TextsOfAFileOneAfterAnother) {
  WriteFile(Path("texts"), "the bread\nthe harbour lies between two hills\n");
  const json row =
      Bench({"--loop", "0", "--threads", "1", "--texts", Path("texts"), "--format", "markdown"},
            "1")["rows"][0];
  EXPECT_EQ(row["workload"], "model 2 texts, back to back");
  EXPECT_EQ(row["loop"]["late"], 0);
  EXPECT_GT(row["calls"], 4);
  EXPECT_EQ(row["loop"]["p99_9"].is_null(), row["calls"] < 1000);
  EXPECT_TRUE(Has(out_, "| model | precision | threads | frames | p50 ms |")) << out_;
  EXPECT_TRUE(Has(out_, "| forced |\n| :--- | ---: |")) << "numbers to the last column\n" << out_;
}

TEST_F(CliBenchDeadlineTest, AllTokensSomeAndNone) {
  const auto model = TextEncoder::Open(folder_.path());
  const json all = Bench({"--budget", "10000ms", "--threads", "1"})["rows"][0];
  EXPECT_EQ(all["workload"], "model within 10000 ms, back to back");
  EXPECT_EQ(all["tokens"], model->max_length());
  EXPECT_EQ(all["budget"],
            (json{{"seconds", 10}, {"fits", true}, {"max_length", model->max_length()}}));
  EXPECT_GE(all["calls"], 100);
  EXPECT_TRUE(Has(out_, std::to_string(model->max_length()) + ", all")) << out_;

  const json none = Bench({"--budget", "1us", "--threads", "1"})["rows"][0];
  EXPECT_EQ(none["budget"]["fits"], false);
  const auto word = model->Encode({tool::TextOfWords(1)});
  EXPECT_EQ(none["tokens"], word->counts.tokens[0]);
  EXPECT_TRUE(Has(out_, " none ")) << out_;

  const double half = all["seconds"]["p50"].get<double>() / 2;
  const std::string time = std::to_string(std::max(2, static_cast<int>(half * 1e6))) + "us";
  const json some = Bench({"--budget", time, "--threads", "1", "--loop", "1000"})["rows"][0];
  EXPECT_EQ(some["loop"]["hz"], 1000);
  if (some["budget"]["fits"]) {
    EXPECT_LE(some["seconds"]["p99"], some["budget"]["seconds"]);
    EXPECT_GE(some["calls"], 100);
  }
}

TEST(BenchFramesTest, CallsInTurnUntilTheTimeCannotBeMet) {
  std::vector<size_t> called;
  const auto call = [&](size_t i, size_t) { called.push_back(i); };
  const bench::FrameTimes all = bench::RunFrames({.frames = 5}, call);
  EXPECT_EQ(called, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(all.calls.size(), 5u);
  EXPECT_EQ(all.control.size(), 5u);
  EXPECT_FALSE(all.allocations) << "this program does not count them";
  called.clear();
  const bench::FrameTimes cut = bench::RunFrames({.frames = 200, .most = -1}, call);
  EXPECT_EQ(cut.calls.size(), 3u) << "p99 of 200 allows two";
  EXPECT_EQ(called.size(), 3u);
}

TEST_F(CliBenchDeadlineTest, WhatIsRefused) {
  const std::vector<std::string> common = {"bench", "--model", folder_.path()};
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& words) {
    more.insert(more.begin(), common.begin(), common.end());
    ExpectRefused(more, words);
  };
  for (const char* hz : {"1001", "-1", "often"}) refused({"--loop", hz}, {"--loop", hz});
  for (const char* time : {"16", "16s", "0ms", "-3ms", "10001ms", "ms", "1.5ms"}) {
    refused({"--budget", time}, {"--budget", time, "16ms"});
  }
  refused({"--budget", "16ms", "--texts", Path("t")}, {"--budget", "--texts"});
  refused({"--loop", "60", "--executor", "inline", "--threads", "2"}, {"--threads", "inline"});
  ExpectRefused({"bench", "--loop", "60"}, {"--loop is for --model"});
  ExpectRefused({"bench", "--budget", "16ms"}, {"--budget is for --model"});
}

}  // namespace
}  // namespace encore
