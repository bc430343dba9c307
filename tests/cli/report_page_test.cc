// SPDX-License-Identifier: Apache-2.0
//
// Pages of reports and comparisons (tools/encore/report_pages.h): whole, safe and self-contained
// whatever the report has in it.

#include "tools/encore/report_pages.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/synthetic_report.h"
#include "tools/encore/comparison.h"
#include "tools/encore/page.h"

namespace encore::tool {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Whole, without scripts, addresses and numbers that are none.
void ExpectSound(const std::string& page) {
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
  for (const char* tag : {"svg", "table", "figure", "text", "rect", "circle", "title", "ul", "p"}) {
    const std::string name = tag;
    EXPECT_EQ(Count(page, "<" + name + " ") + Count(page, "<" + name + ">"),
              Count(page, "</" + name + ">"))
        << tag;
  }
  for (const char* bad : {"<script", "http:", "https:", "src=", "url(", "@import", "onload"}) {
    EXPECT_EQ(page.find(bad), std::string::npos) << bad;
  }
  const std::regex no_number(R"re(="[^"]*\b(nan|inf|-nan|-inf)\b[^"]*")re");
  std::smatch match;
  EXPECT_FALSE(std::regex_search(page, match, no_number)) << match.str();
}

std::string Compared(const Report& base, const Report& other) {
  const std::vector<NamedReport> reports = {{"a.json", base}, {"b.json", other}};
  return ComparePage(reports, CompareReports(reports));
}

TEST(ReportPageTest, HasAPictureOfEachKindAndAllRows) {
  const Report report = SyntheticReport({.seed = 1, .row_drift = 0.01});
  const std::string page = ReportPage(report);
  ExpectSound(page);
  for (const char* words :
       {"Synthetic 9000", "Roofline", "Speed by precision", "Scaling by threads", "Latency",
        "All rows", "f32 peak 2", "memory 22 GB/s", "p99", "prefers-color-scheme: dark",
        "Other processes"}) {
    if (std::string(words) == "Other processes") {
      EXPECT_EQ(page.find(words), std::string::npos) << "a quiet run has no warning";
    } else {
      EXPECT_NE(page.find(words), std::string::npos) << words;
    }
  }
  EXPECT_EQ(Count(page, "<tr>"), report.rows.size() + 1);
  EXPECT_EQ(Count(page, "<figure>"), 6u);  // rooflines and latencies of 1 and 2 threads
}

TEST(ReportPageTest, WarnsOfNoise) {
  Report report = SyntheticReport({.seed = 1});
  report.noise.busy_percent = 31;
  report.noise.notes = {"2 threads had the peak of 1.3: their cores share something."};
  const std::string page = ReportPage(report);
  EXPECT_NE(page.find("Other processes took 31 %"), std::string::npos);
  EXPECT_NE(page.find("their cores share something"), std::string::npos);
}

TEST(ReportPageTest, EscapesForeignNames) {
  Report report = SyntheticReport({.seed = 1, .threads = {1}});
  const std::string hostile = "\"><script>alert(1)</script>\x1b[31m\xff";
  report.machine.cpu = hostile;
  report.machine.targets.push_back(hostile);
  report.noise.notes = {hostile};
  report.created = hostile;
  for (ReportRow& row : report.rows) {
    row.workload = hostile + row.workload;
    row.engine_version = hostile;
    row.roof->name = hostile;
  }
  for (ReportRoof& roof : report.roofs) roof.precision = hostile;
  report.rows[0].engine = hostile;
  report.rows[1].precision = hostile;
  report.rows[2].target = hostile;
  for (const std::string& page : {ReportPage(report), Compared(report, report)}) {
    ExpectSound(page);
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
    EXPECT_EQ(page.find('\xff'), std::string::npos);
  }
}

TEST(ReportPageTest, OddReportsHavePagesToo) {
  const Report full = SyntheticReport({.seed = 1});
  std::vector<Report> odd(7, full);
  odd[0].rows.clear();
  odd[1].rows.resize(1);
  odd[2].roofs.clear();
  for (ReportRow& row : odd[3].rows) row.quantiles.clear();
  for (ReportRow& row : odd[4].rows) {
    row.roof.reset();
    row.weights = "cold";
    row.threads = 3;
  }
  for (ReportRow& row : odd[5].rows) {
    for (double& value : row.quantiles) value = 1;
    row.seconds = {1, 1, 1, 1, 1};
    for (double& value : row.slots) value = 1;
    row.flops = 1;
    row.weight_bytes = 1;
  }
  // As far apart as a reader lets through.
  odd[6].rows[0].flops = 1e30;
  odd[6].rows[0].weight_bytes = 1e-30;
  odd[6].rows[0].tokens_per_s = 1e30;
  odd[6].rows[1].seconds = {1e-30, 1e30, 1e30, 1e-30, 1e30};
  odd[6].rows[1].slots = {1e-30, 1e30, 1};
  odd[6].rows[2].threads = std::numeric_limits<int>::max();
  odd[6].roofs[0].flops_per_s = 1e-30;
  odd[6].roofs.back().bytes_per_s = 1e30;
  for (size_t i = 0; i < odd.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSound(ReportPage(odd[i]));
    // Of some, no row does the same work as one of the full report.
    const bool has_pairs = odd[i].rows.size() > 1 && i != 4 && i != 5;
    if (!odd[i].rows.empty()) ExpectSound(Compared(full, has_pairs ? odd[i] : full));
  }
}

TEST(ReportPageTest, ComparisonsHaveARowForEachPair) {
  const std::string page = Compared(SyntheticReport({.seed = 1, .slot_noise = 0.01}),
                                    SyntheticReport({.seed = 2, .speed = 1.2, .slot_noise = 0.01}));
  ExpectSound(page);
  EXPECT_EQ(Count(page, "<tr>"), 91u);
  EXPECT_EQ(Count(page, "<circle"), 90u);
  EXPECT_NE(page.find("faster 1."), std::string::npos);
  EXPECT_NE(page.find("bootstrap"), std::string::npos) << "the rule is told";
}

TEST(PictureTest, TicksAreRound) {
  EXPECT_EQ(LinearTicks(0, 2.1, 6), (std::vector<double>{0, 0.5, 1, 1.5, 2}));
  EXPECT_EQ(LogTicks(3, 60), (std::vector<double>{5, 10, 20, 50}));
  EXPECT_EQ(TickText(0.25), "0.25");
  EXPECT_EQ(TickText(40), "40");
  EXPECT_EQ(TickText(2500), "2 500");
  EXPECT_EQ(TickText(0), "0");
}

TEST(PictureTest, SpreadKeepsGapsAndOrder) {
  const std::vector<double> places = Spread({10, 11, 12, 100}, 15, 0, 100);
  EXPECT_EQ(places, (std::vector<double>{10, 25, 40, 100}));
  const std::vector<double> low = Spread({99, 98, 100}, 15, 0, 100);
  EXPECT_EQ(low, (std::vector<double>{85, 70, 100}));
}

TEST(PictureTest, LabelsDoNotTouch) {
  Places places({0, 0, 200, 200});
  std::vector<Point> starts;
  for (int i = 0; i < 6; ++i) starts.push_back(places.PlaceLabel({100, 100}, "12"));
  for (size_t i = 0; i < starts.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool apart = std::abs(starts[i].x - starts[j].x) >= TextWidth("12") ||
                         std::abs(starts[i].y - starts[j].y) >= kLabelSize;
      EXPECT_TRUE(apart) << i << " and " << j;
    }
  }
}

}  // namespace
}  // namespace encore::tool
