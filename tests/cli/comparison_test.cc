// SPDX-License-Identifier: Apache-2.0
//
// Comparisons of synthetic reports (tools/encore/comparison.h): nothing is found where nothing is,
// what is there is found, and rows are paired as promised.

#include "tools/encore/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/synthetic_report.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

size_t Count(const Pairing& pairing, Verdict verdict) {
  return static_cast<size_t>(
      std::count_if(pairing.rows.begin(), pairing.rows.end(),
                    [&](const ComparedRow& row) { return row.verdict == verdict; }));
}

bool Has(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find(part) != std::string::npos;
  });
}

// A run with the noise of a shared machine: slots of 1 to 3 %, 2 to 4 % between two runs.
SyntheticRun NoisyRun(uint64_t seed, double speed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit;
  return {.seed = seed,
          .speed = speed,
          .slot_noise = 0.01 + 0.02 * unit(random),
          .run_drift = (0.02 + 0.02 * unit(random)) / std::sqrt(2.0),
          .row_drift = 0.005,
          .row_noise = 0.005};
}

class ComparisonTest : public testing::Test {
 protected:
  // The reports stay until the test's end.
  std::vector<Pairing> Compare(std::vector<NamedReport> reports) {
    return CompareReports(kept_.emplace_back(std::move(reports)));
  }

 private:
  std::list<std::vector<NamedReport>> kept_;
};

TEST_F(ComparisonTest, FindsNothingBetweenRunsOfOneBinary) {
  constexpr uint64_t kPairs = 20;
  int quiet = 0;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const std::vector<NamedReport> reports = {{"a", SyntheticReport(NoisyRun(2 * i + 1, 1))},
                                              {"b", SyntheticReport(NoisyRun(2 * i + 2, 1))}};
    const Pairing pairing = Compare(reports)[0];
    ASSERT_EQ(pairing.rows.size(), 90u);
    if (Count(pairing, Verdict::kNoDifference) == pairing.rows.size()) ++quiet;
  }
  std::printf("%d of %d pairs without a verdict\n", quiet, static_cast<int>(kPairs));
  EXPECT_GE(quiet, 19);
}

TEST_F(ComparisonTest, FindsTenPercent) {
  constexpr uint64_t kPairs = 20;
  int pairs = 0;
  size_t found = 0;
  size_t rows = 0;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const std::vector<NamedReport> reports = {{"a", SyntheticReport(NoisyRun(2 * i + 1, 1))},
                                              {"b", SyntheticReport(NoisyRun(2 * i + 2, 1.1))}};
    const Pairing pairing = Compare(reports)[0];
    const size_t faster = Count(pairing, Verdict::kFaster);
    if (faster > pairing.rows.size() / 2) ++pairs;
    EXPECT_EQ(Count(pairing, Verdict::kSlower), 0u) << "pair " << i;
    found += faster;
    rows += pairing.rows.size();
  }
  std::printf("%d of %d pairs, %zu of %zu rows\n", pairs, static_cast<int>(kPairs), found, rows);
  EXPECT_GE(pairs, 18);
  EXPECT_GT(found, rows * 8 / 10);
}

TEST_F(ComparisonTest, FindsAlmostAllOfTenPercentOnAQuietMachine) {
  const std::vector<NamedReport> reports = {
      {"a", SyntheticReport({.seed = 1, .slot_noise = 0.01})},
      {"b", SyntheticReport({.seed = 2, .speed = 1 / 1.1, .slot_noise = 0.01})}};
  const Pairing pairing = Compare(reports)[0];
  EXPECT_EQ(Count(pairing, Verdict::kSlower), pairing.rows.size());
  EXPECT_NE(VerdictText(pairing.rows[0]).find("slower 0.9"), std::string::npos)
      << VerdictText(pairing.rows[0]);
}

TEST_F(ComparisonTest, TheBandReachesToTheRatioOfRoofs) {
  // All of the machine is 20 % slower in B, as beside a busy neighbour: not the binary's doing.
  SyntheticRun run{.seed = 3, .slot_noise = 0.01};
  const Report base = SyntheticReport(run);
  Report slower = SyntheticReport({.seed = 4, .speed = 0.8, .slot_noise = 0.01});
  for (ReportRoof& roof : slower.roofs) {
    roof.flops_per_s *= 0.8;
    roof.bytes_per_s *= 0.8;
  }
  const Pairing pairing = Compare({{"a", base}, {"b", slower}})[0];
  EXPECT_EQ(Count(pairing, Verdict::kNoDifference), pairing.rows.size());
  EXPECT_NEAR(*pairing.peak_ratio, 0.8, 0.02);
  // On another machine the same is a difference.
  slower.machine.cpu = "Other";
  const Pairing other = Compare({{"a", base}, {"b", slower}})[0];
  EXPECT_EQ(Count(other, Verdict::kSlower), other.rows.size());
  EXPECT_TRUE(Has(PairingNotes(other), "another machine"));
}

TEST_F(ComparisonTest, ABusyNeighbourIsNamedAndCounts) {
  const Report base = SyntheticReport({.seed = 5});
  Report busy = SyntheticReport({.seed = 6, .speed = 0.8});
  busy.noise.busy_percent = 40;
  busy.noise.steal_percent = 3;
  busy.noise.peak_drift_percent = 14;
  EXPECT_TRUE(NoiseSentences(base.noise).empty());
  const std::vector<std::string> sentences = NoiseSentences(busy.noise);
  EXPECT_TRUE(Has(sentences, "40 %"));
  EXPECT_TRUE(Has(sentences, "3.0 %"));
  EXPECT_TRUE(Has(sentences, "14 %"));
  // A row may be slower for the other work or for another reason: there is no telling.
  const Pairing pairing = Compare({{"a", base}, {"b", busy}})[0];
  EXPECT_EQ(Count(pairing, Verdict::kInconclusive), pairing.rows.size());
  EXPECT_NE(PairingSummary(pairing).find("90 inconclusive"), std::string::npos);
  // What no other work explains is real all the same.
  for (ReportRow& row : busy.rows) {
    for (double& slot : row.slots) slot *= 4;
  }
  EXPECT_EQ(Count(Compare({{"a", base}, {"b", busy}})[0], Verdict::kSlower), pairing.rows.size());
}

TEST_F(ComparisonTest, RowsOfTwoPrecisionsAreComparedWhereNoneIsInBoth) {
  const auto only = [](Report report, const std::string& precision) {
    std::erase_if(report.rows, [&](const ReportRow& row) { return row.precision != precision; });
    return report;
  };
  const Report both = SyntheticReport({.seed = 31, .slot_noise = 0.01});
  Report faster = only(both, "int8");
  for (ReportRow& row : faster.rows) {
    for (double& slot : row.slots) slot /= 3;
  }
  const Report base = only(both, "f32");
  const Pairing pairing = Compare({{"a", base}, {"b", faster}})[0];
  EXPECT_TRUE(pairing.across_precisions);
  EXPECT_TRUE(Has(PairingNotes(pairing), "across precisions"));
  ASSERT_EQ(pairing.rows.size(), base.rows.size());
  for (const ComparedRow& row : pairing.rows) {
    EXPECT_EQ(PrecisionsText(row.rows), "f32 / int8");
    EXPECT_EQ(row.rows.base->workload, row.rows.other->workload);
    EXPECT_EQ(row.rows.base->threads, row.rows.other->threads);
    EXPECT_EQ(row.verdict, Verdict::kFaster);
    EXPECT_LT(row.band.high, 1.2) << "peaks of two precisions are no noise";
  }
  EXPECT_FALSE(Compare({{"a", both}, {"b", faster}})[0].across_precisions);
}

// A core that is shared runs at half its speed; where most cores are free, nothing shares one.
TEST_F(ComparisonTest, OtherWorkCountsWhereThreadsWantAllCores) {
  Report base = SyntheticReport({.seed = 22, .slot_noise = 0.01});
  Report other = SyntheticReport({.seed = 23, .speed = 1 / 1.8, .slot_noise = 0.01});
  int most = 0;
  for (const ReportRow& row : base.rows) most = std::max(most, row.threads);
  base.machine.cores = other.machine.cores = most;
  const auto slower = [&](bool of_all_cores) {
    size_t count = 0;
    const Pairing pairing = Compare({{"a", base}, {"b", other}})[0];
    for (const ComparedRow& row : pairing.rows) {
      const bool all = row.rows.base->threads == most;
      if (all == of_all_cores && row.verdict == Verdict::kSlower) ++count;
    }
    return count;
  };
  const size_t of_all = slower(true);
  EXPECT_GT(of_all, 0u);
  other.noise.busy_percent = 4;
  EXPECT_EQ(slower(true), of_all);
  other.noise.busy_percent = 8;
  EXPECT_EQ(slower(true), 0u);
  EXPECT_GT(slower(false), 0u) << "a single thread has a core of its own";
  EXPECT_TRUE(Has(PairingNotes(Compare({{"a", base}, {"b", other}})[0]), "a factor of 2"));
  base.machine.cores = other.machine.cores = 64;
  EXPECT_EQ(slower(true), of_all);
}

TEST_F(ComparisonTest, WhatSlowsOneRowForAWhileMaySlowAllOfAnother) {
  const Report base = SyntheticReport({.seed = 20, .slot_noise = 0.01});
  Report other = SyntheticReport({.seed = 21, .slot_noise = 0.01});
  const auto slow_down = [](ReportRow& row, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) row.slots[i] *= 1.3;
  };
  ReportRow& all_slow = other.rows[0];
  slow_down(all_slow, 0, all_slow.slots.size());
  const auto verdict = [&] { return Compare({{"a", base}, {"b", other}})[0].rows[0].verdict; };
  EXPECT_EQ(verdict(), Verdict::kSlower);
  const auto partly_slow = [&](bool same_threads) {
    for (size_t r = 1; r < other.rows.size(); ++r) {
      ReportRow& row = other.rows[r];
      if ((row.threads == all_slow.threads) != same_threads) continue;
      slow_down(row, row.slots.size() / 2, row.slots.size());
      return;
    }
    FAIL() << "no such row";
  };
  partly_slow(false);
  EXPECT_EQ(verdict(), Verdict::kSlower) << "a row of other threads moved";
  partly_slow(true);
  EXPECT_EQ(verdict(), Verdict::kNoDifference);
}

TEST_F(ComparisonTest, PairsTargetsAndSaysSo) {
  const Report both = SyntheticReport({.seed = 7, .slot_noise = 0.01});
  const Report narrow = SyntheticReport({.seed = 8, .slot_noise = 0.01, .targets = {"AVX2"}});
  // A has AVX2 alone; B's best is AVX3_ZEN4, twice as fast, and B has AVX2 too.
  const std::vector<NamedReport> reports = {{"a", narrow}, {"b", both}};
  const Pairing pairing = Compare(reports)[0];
  size_t same = 0;
  size_t across = 0;
  for (const ComparedRow& row : pairing.rows) {
    SCOPED_TRACE(WorkloadText(*row.rows.base) + " " + TargetsText(row.rows));
    EXPECT_EQ(row.rows.base->target, "AVX2");
    EXPECT_EQ(row.rows.base->precision, row.rows.other->precision);
    EXPECT_EQ(row.rows.base->threads, row.rows.other->threads);
    EXPECT_EQ(row.rows.base->weights, row.rows.other->weights);
    EXPECT_EQ(row.rows.base->workload, row.rows.other->workload);
    if (row.rows.other->target == "AVX2") {
      ++same;
      EXPECT_NEAR(row.ratio.value, 1, 0.03);
      EXPECT_EQ(row.verdict, Verdict::kNoDifference);
    } else {
      ++across;
      EXPECT_EQ(TargetsText(row.rows), "AVX2 / AVX3_ZEN4");
      if (row.rows.base->weights == "cold") continue;
      EXPECT_NEAR(row.ratio.value, 2.5e11 / 1.27e11, 0.06);
      EXPECT_EQ(row.verdict, Verdict::kFaster);
    }
  }
  EXPECT_EQ(same, 30u);  // warm; B has no cold rows of AVX2
  EXPECT_EQ(across, 60u);
  EXPECT_TRUE(Has(PairingNotes(pairing), "Targets that differ"));
}

TEST_F(ComparisonTest, PairsAcrossEnginesOnlyWithoutACommonOne) {
  const Report own = SyntheticReport({.seed = 9, .targets = {"AVX2"}});
  Report peer = own;
  for (ReportRow& row : peer.rows) {
    row.engine = "onnxruntime";
    row.target = "";
    row.roof.reset();
  }
  const Pairing pairing = Compare({{"a", own}, {"b", peer}})[0];
  EXPECT_TRUE(pairing.across_engines);
  EXPECT_EQ(pairing.rows.size(), own.rows.size());
  EXPECT_TRUE(Has(PairingNotes(pairing), "no engine in common"));
  EXPECT_EQ(TargetsText(pairing.rows[0].rows), "encore AVX2 / onnxruntime ");
  // With one row of encore's there, the other rows stay alone.
  peer.rows.push_back(own.rows[0]);
  const Pairing common = Compare({{"a", own}, {"b", peer}})[0];
  EXPECT_FALSE(common.across_engines);
  EXPECT_EQ(common.rows.size(), 1u);
  EXPECT_EQ(common.base_alone, own.rows.size() - 1);
  EXPECT_EQ(common.other_alone, own.rows.size());
}

TEST_F(ComparisonTest, WorkOfOtherSizesIsNoPair) {
  Report base = SyntheticReport({.seed = 1, .targets = {"AVX2"}, .threads = {1}});
  base.rows.resize(1);
  base.rows[0].workload = "custom";
  const auto pairs = [&](auto change) {
    Report other = base;
    change(other.rows[0]);
    return PairRows(base, other).pairs.size();
  };
  EXPECT_EQ(pairs([](ReportRow&) {}), 1u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.d_model *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.heads *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.d_ff *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.activation = "relu"; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.layers *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.sequences *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.tokens *= 2; }), 0u);
  EXPECT_EQ(pairs([](ReportRow& row) { row.flops *= 1.25; }), 0u) << "lengths 1, 7 and 4, 4";
}

TEST_F(ComparisonTest, ThePeakThatIsToldIsOfF32OnOneThreadAlone) {
  const Report base = SyntheticReport({.seed = 1, .targets = {"AVX2"}});
  Report other = base;
  for (ReportRoof& roof : other.roofs) {
    if (roof.precision == "f32" && roof.threads == 1) roof.flops_per_s *= 0.9;
  }
  EXPECT_NEAR(*Compare({{"a", base}, {"b", other}})[0].peak_ratio, 0.9, 1e-9);
  std::erase_if(other.roofs, [](const ReportRoof& roof) {
    return roof.precision == "f32" && roof.threads == 1;
  });
  const Pairing without = Compare({{"a", base}, {"b", other}})[0];
  EXPECT_FALSE(without.peak_ratio.has_value());
  EXPECT_TRUE(Has(PairingNotes(without), "is not in both reports"));
}

TEST_F(ComparisonTest, EveryFurtherReportIsComparedWithTheFirst) {
  const Report base = SyntheticReport({.seed = 1, .slot_noise = 0.01});
  const std::vector<NamedReport> reports = {
      {"a", base},
      {"b", SyntheticReport({.seed = 2, .speed = 1.5, .slot_noise = 0.01})},
      {"c", SyntheticReport({.seed = 3, .speed = 0.5, .slot_noise = 0.01})}};
  const std::vector<Pairing> pairings = Compare(reports);
  ASSERT_EQ(pairings.size(), 2u);
  EXPECT_EQ(LetterOf(pairings[1].other), "C");
  EXPECT_EQ(Count(pairings[0], Verdict::kFaster), pairings[0].rows.size());
  EXPECT_EQ(Count(pairings[1], Verdict::kSlower), pairings[1].rows.size());
}

TEST_F(ComparisonTest, ReportsWithoutACommonRowAreRefused) {
  const Report base = SyntheticReport({.seed = 1, .threads = {1}});
  const Report other = SyntheticReport({.seed = 1, .threads = {4}});
  EXPECT_THROW(Compare({{"a", base}, {"b", other}}), Failure);
}

TEST_F(ComparisonTest, FewSlotsGetNoVerdict) {
  const Report base = SyntheticReport({.seed = 1, .slots = 2});
  const Report other = SyntheticReport({.seed = 2, .speed = 2, .slots = 2});
  const Pairing pairing = Compare({{"a", base}, {"b", other}})[0];
  EXPECT_EQ(Count(pairing, Verdict::kTooFewSlots), pairing.rows.size());
  EXPECT_NE(PairingSummary(pairing).find("too few slots"), std::string::npos);
}

}  // namespace
}  // namespace encore::tool
