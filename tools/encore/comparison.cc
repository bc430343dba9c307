// SPDX-License-Identifier: Apache-2.0
//
// Ratios and verdicts of all pairs of rows, and their words.

#include "tools/encore/comparison.h"

#include <algorithm>
#include <cmath>

#include "tools/encore/failure.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// Chance of a ratio so far beyond its band if there were no difference.
double ChanceOf(const ComparedRow& row) {
  const double log = std::log(row.ratio.value);
  const double beyond = std::max(log - std::log(row.band.high), std::log(row.band.low) - log);
  if (!row.ratio.enough || beyond <= 0) return 1;
  return TwoSidedChance(beyond / std::hypot(row.ratio.error, kRowError));
}

void Judge(std::vector<Pairing>& pairings) {
  std::vector<ComparedRow*> rows;
  std::vector<double> chances;
  for (Pairing& pairing : pairings) {
    for (ComparedRow& row : pairing.rows) {
      rows.push_back(&row);
      chances.push_back(ChanceOf(row));
    }
  }
  const std::vector<bool> real = HolmRejected(chances, kLevel);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool faster = rows[i]->ratio.value > 1;
    rows[i]->verdict = !rows[i]->ratio.enough                ? Verdict::kTooFewSlots
                       : !real[i] && rows[i]->band.disturbed ? Verdict::kInconclusive
                       : !real[i]                            ? Verdict::kNoDifference
                       : faster                              ? Verdict::kFaster
                                                             : Verdict::kSlower;
  }
}

Pairing PairReports(const NamedReport& base, const NamedReport& other) {
  const RowPairs pairs = PairRows(base.report, other.report);
  if (pairs.pairs.empty()) {
    throw Failure(
        other.name + ": found no row in common with " + base.name +
        "; wanted a workload of the same sizes, precision, threads, weights and layers in both; "
        "--precision compares rows of two precisions");
  }
  Pairing pairing;
  pairing.same_machine = SameMachine(base.report, other.report);
  pairing.noise_share = NoiseShare(base.report, other.report);
  pairing.peak_ratio = F32PeakRatio(base.report, other.report);
  pairing.across_engines = pairs.across_engines;
  pairing.across_precisions = pairs.across_precisions;
  pairing.base_alone = pairs.base_alone;
  pairing.other_alone = pairs.other_alone;
  for (const RowPair& rows : pairs.pairs) {
    pairing.rows.push_back({.rows = rows,
                            .ratio = RatioOfSpeeds(rows.base->slots, rows.other->slots),
                            .band = BandOf(base.report, other.report, rows)});
  }
  return pairing;
}

std::string Both(const std::string& base, const std::string& other) {
  return base == other ? base : base + " / " + other;
}

}  // namespace

std::string LetterOf(size_t report) { return std::string(1, static_cast<char>('A' + report)); }

std::vector<Pairing> CompareReports(const std::vector<NamedReport>& reports) {
  std::vector<Pairing> pairings;
  for (size_t i = 1; i < reports.size(); ++i) {
    pairings.push_back(PairReports(reports[0], reports[i]));
    pairings.back().other = i;
  }
  Judge(pairings);
  return pairings;
}

std::string RatioText(const Ratio& ratio) {
  return Number(ratio.value, 2) + " (" + Number(ratio.low, 2) + " to " + Number(ratio.high, 2) +
         ")";
}

std::string VerdictWord(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kTooFewSlots:
      return "too few slots to tell";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kNoDifference:
      break;
  }
  return "no real difference";
}

std::string VerdictText(const ComparedRow& row) {
  std::string word = VerdictWord(row.verdict);
  const bool real = row.verdict == Verdict::kFaster || row.verdict == Verdict::kSlower;
  if (!real) return word;
  return word + " " + Number(row.ratio.value, 2) + "x (" + Number(row.ratio.low, 2) + " to " +
         Number(row.ratio.high, 2) + ")";
}

std::string BandText(const NoiseBand& band) {
  return Number(band.low, 2) + " to " + Number(band.high, 2);
}

std::string PrecisionsText(const RowPair& rows) {
  return Printable(Both(PrecisionOf(*rows.base), PrecisionOf(*rows.other)));
}

std::string TargetsText(const RowPair& rows) {
  const auto name = [&](const ReportRow& row) {
    return rows.base->engine == rows.other->engine ? row.target : row.engine + " " + row.target;
  };
  return Printable(Both(name(*rows.base), name(*rows.other)));
}

std::string WorkloadText(const ReportRow& row) {
  std::string text = row.engine == "encore" ? row.workload : row.engine + " " + row.workload;
  if (row.layers > 1) text += ", " + std::to_string(row.layers) + " layers";
  return Printable(text);
}

std::vector<std::string> PairingNotes(const Pairing& pairing) {
  std::vector<std::string> notes;
  const std::string letter = LetterOf(pairing.other);
  const std::string peak = pairing.peak_ratio ? "was " + Number(*pairing.peak_ratio, 2) + " of A's."
                                              : "is not in both reports.";
  notes.push_back(pairing.same_machine
                      ? letter + " ran on a machine like A's. Its f32 peak on one thread " + peak
                      : letter +
                            " ran on another machine than A, so ratios are those of machines "
                            "too. Its f32 peak on one thread " +
                            peak);
  notes.push_back("Noise between the runs: " + Number(100 * pairing.noise_share, 1) +
                  " %, and what the roofs moved.");
  const auto moved = [](const ComparedRow& row) { return row.band.moved; };
  const auto most = std::max_element(
      pairing.rows.begin(), pairing.rows.end(),
      [&](const ComparedRow& a, const ComparedRow& b) { return moved(a) < moved(b); });
  if (most != pairing.rows.end() && moved(*most) > pairing.noise_share) {
    notes.push_back("Rows of " + Counted(static_cast<size_t>(most->rows.base->threads), "thread") +
                    " moved by up to " + Number(100 * moved(*most), 0) +
                    " % while they were measured: what differs by less may be that.");
  }
  if (std::any_of(pairing.rows.begin(), pairing.rows.end(),
                  [](const ComparedRow& row) { return row.band.crowded; })) {
    notes.push_back(
        "Other work had a part of the cores: rows whose threads want all of them may "
        "differ by a factor of 2 for that alone.");
  }
  const auto other_target = [](const ComparedRow& row) {
    return row.rows.base->target != row.rows.other->target;
  };
  if (pairing.across_engines) {
    notes.push_back("The reports have no engine in common: rows are compared across engines.");
  } else if (std::any_of(pairing.rows.begin(), pairing.rows.end(), other_target)) {
    notes.push_back("Targets that differ are those of A / " + letter +
                    ": the best that each report has of the workload.");
  }
  if (pairing.across_precisions) {
    notes.push_back("Rows are compared across precisions, A / " + letter +
                    ": results differ, not speeds alone.");
  }
  if (pairing.base_alone + pairing.other_alone > 0) {
    notes.push_back("Rows without a partner: " + std::to_string(pairing.base_alone) + " of A, " +
                    std::to_string(pairing.other_alone) + " of " + letter + ".");
  }
  return notes;
}

std::string PairingSummary(const Pairing& pairing) {
  const auto count = [&](Verdict verdict) {
    return std::to_string(
        std::count_if(pairing.rows.begin(), pairing.rows.end(),
                      [&](const ComparedRow& row) { return row.verdict == verdict; }));
  };
  std::string text = Counted(pairing.rows.size(), "row") + ": " + count(Verdict::kFaster) +
                     " faster, " + count(Verdict::kSlower) + " slower, " +
                     count(Verdict::kNoDifference) + " without a real difference";
  if (count(Verdict::kInconclusive) != "0") {
    text += ", " + count(Verdict::kInconclusive) + " inconclusive";
  }
  if (count(Verdict::kTooFewSlots) != "0") {
    text += ", " + count(Verdict::kTooFewSlots) + " with too few slots";
  }
  return text;
}

}  // namespace encore::tool
