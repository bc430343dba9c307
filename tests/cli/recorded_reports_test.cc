// SPDX-License-Identifier: Apache-2.0
//
// Reports that `encore bench` wrote, one of them beside busy processes (tests/data/README.md says
// how): they are read, compared and shown as what they are.

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
  for (const char* name : {"best.json", "best_again.json", "avx2.json", "busy.json"}) {
    SCOPED_TRACE(name);
    const Report report = Recorded(name).report;
    EXPECT_EQ(report.version, 1);
    EXPECT_EQ(report.machine.cpu, "Intel(R) Xeon(R) Processor");
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
  const std::vector<std::string> sentences = NoiseSentences(Recorded("busy.json").report.noise);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_EQ(sentences[0].rfind("Other processes took 78 %", 0), 0u) << sentences[0];
  EXPECT_TRUE(NoiseSentences(Recorded("best.json").report.noise).empty());
}

// A neighbour on the host slowed all of the second by a quarter and more, which no counter of this
// system shows. Rows of the first moved by as much in the course of their run.
TEST(RecordedReportsTest, TwoRunsOfOneBinaryDoNotDiffer) {
  const std::vector<NamedReport> reports = {Recorded("best.json"), Recorded("best_again.json")};
  const Pairing pairing = CompareReports(reports)[0];
  EXPECT_TRUE(pairing.same_machine);
  ASSERT_EQ(pairing.rows.size(), 2u);
  for (const ComparedRow& row : pairing.rows) {
    EXPECT_EQ(row.verdict, Verdict::kNoDifference) << VerdictText(row);
  }
  EXPECT_LT(pairing.rows[0].ratio.high, 0.8);
}

TEST(RecordedReportsTest, Avx512IsTwiceAsFastAsAvx2) {
  const std::vector<NamedReport> reports = {Recorded("avx2.json"), Recorded("best.json")};
  const Pairing pairing = CompareReports(reports)[0];
  ASSERT_EQ(pairing.rows.size(), 2u);
  for (const ComparedRow& row : pairing.rows) {
    EXPECT_EQ(TargetsText(row.rows), "AVX2 / AVX3_DL");
    EXPECT_GT(row.ratio.value, 1.75);
    EXPECT_LT(row.ratio.value, 2.25);
    EXPECT_EQ(row.verdict, Verdict::kFaster);
  }
}

}  // namespace
}  // namespace encore::tool
