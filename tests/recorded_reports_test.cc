// SPDX-License-Identifier: Apache-2.0
//
// Reports that `encore bench` wrote on a busy machine (tests/data/reports, whose README says how):
// they are read, compared and shown as what they are. Not here: verdicts under known noise
// (comparison_test.cc).

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/encore/comparison.h"
#include "tools/encore/report_data.h"
#include "tools/encore/report_pages.h"

namespace encore::tool {
namespace {

NamedReport Recorded(const std::string& name) {
  return {name, ReadReport(std::string(ENCORE_TEST_DATA_DIR) + "/reports/" + name)};
}

TEST(RecordedReportsTest, AreRead) {
  for (const char* name : {"best.json", "best_again.json", "avx2.json"}) {
    SCOPED_TRACE(name);
    const Report report = Recorded(name).report;
    EXPECT_EQ(report.version, 1);
    EXPECT_EQ(report.machine.cpu, "AMD EPYC");
    ASSERT_EQ(report.rows.size(), 2u);
    EXPECT_EQ(report.rows[0].workload, "minilm_1x16");
    EXPECT_EQ(report.rows[1].workload, "base_1x16");
    for (const ReportRow& row : report.rows) {
      EXPECT_GE(row.slots.size(), kLeastSlots);
      EXPECT_EQ(row.quantiles.size(), 101u);
      EXPECT_TRUE(row.verified);
      EXPECT_TRUE(row.roof.has_value());
    }
    EXPECT_GT(report.roofs.size(), 4u);
    EXPECT_NE(ReportPage(report).find(">memory "), std::string::npos);
  }
}

TEST(RecordedReportsTest, SayThatTheMachineWasBusy) {
  const std::vector<std::string> sentences = NoiseSentences(Recorded("best.json").report.noise);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_EQ(sentences[0].rfind("Other processes took 93 %", 0), 0u) << sentences[0];
}

TEST(RecordedReportsTest, TwoRunsOfOneBinaryDoNotDiffer) {
  const std::vector<NamedReport> reports = {Recorded("best.json"), Recorded("best_again.json")};
  const Pairing pairing = CompareReports(reports)[0];
  EXPECT_TRUE(pairing.same_machine);
  ASSERT_EQ(pairing.rows.size(), 2u);
  for (const ComparedRow& row : pairing.rows) EXPECT_EQ(row.verdict, Verdict::kNoDifference);
}

TEST(RecordedReportsTest, Avx512IsTwiceAsFastAsAvx2) {
  const std::vector<NamedReport> reports = {Recorded("avx2.json"), Recorded("best.json")};
  const Pairing pairing = CompareReports(reports)[0];
  ASSERT_EQ(pairing.rows.size(), 2u);
  for (const ComparedRow& row : pairing.rows) {
    EXPECT_EQ(TargetsText(row.rows), "AVX2 / AVX3_ZEN4");
    EXPECT_GT(row.ratio.low, 1.8);
    EXPECT_LT(row.ratio.high, 2.3);
  }
  EXPECT_EQ(pairing.rows[0].verdict, Verdict::kFaster);
}

}  // namespace
}  // namespace encore::tool
