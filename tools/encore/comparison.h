// SPDX-License-Identifier: Apache-2.0
//
// Reports side by side: each further one against the first.

#ifndef ENCORE_TOOLS_ENCORE_COMPARISON_H_
#define ENCORE_TOOLS_ENCORE_COMPARISON_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/encore/compare_rows.h"
#include "tools/encore/compare_statistics.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

// What a verdict goes by, for people.
inline constexpr const char* kCompareRule =
    "Times are medians of a row's slots, each the median of some 20 ms; a ratio's interval (95 %) "
    "comes from 2,000 bootstrap draws of the slots of both. "
    "Runs differ by more than slots tell, so each ratio has a noise band, of the most of these: 3 "
    "%; "
    "half of both runs' peak drifts together; the time that other processes took, or a factor of 2 "
    "if that is over 5 % and the row's threads want all cores; and what any row of the engine on "
    "as "
    "many threads moved by while it was measured, from quarter to quarter of its slots. "
    "On one machine the band also reaches from 1 to the ratio of the two runs' roofs, which tells "
    "what the machine did in between. "
    "A difference is called real where the ratio lies further beyond its band than its standard "
    "error (that of the draws, and 0.7 % between runs) explains, at a level of 5 % for all rows of "
    "the comparison together (Holm). "
    "Where other work took more than 5 % of all cores' time in either run and the ratio lies "
    "within "
    "its band, the verdict is inconclusive: measure again on a quiet machine. "
    "Rows of fewer than 3 slots get no verdict.";

enum class Verdict { kFaster, kSlower, kNoDifference, kInconclusive, kTooFewSlots };

struct ComparedRow {
  RowPair rows;
  Ratio ratio;
  NoiseBand band;
  Verdict verdict = Verdict::kNoDifference;
};

// One report against the base.
struct Pairing {
  size_t other = 0;  // of the reports
  bool same_machine = false;
  std::optional<double> peak_ratio;  // F32PeakRatio
  double noise_share = 0;
  bool across_engines = false;
  bool across_precisions = false;
  size_t base_alone = 0;  // rows that the other report lacks
  size_t other_alone = 0;
  std::vector<ComparedRow> rows;
};

struct NamedReport {
  std::string name;  // of the file
  Report report;
};

// "A", "B", ... for the reports in their order.
std::string LetterOf(size_t report);

// At least two reports, which must outlive the result. Throws Failure if two have no row in common.
std::vector<Pairing> CompareReports(const std::vector<NamedReport>& reports);
std::vector<Pairing> CompareReports(std::vector<NamedReport>&& reports) = delete;

// "faster", "no real difference".
std::string VerdictWord(Verdict verdict);
// "faster 1.23x (1.20 to 1.26)", "no real difference".
std::string VerdictText(const ComparedRow& row);
// "0.97 to 1.03".
std::string BandText(const NoiseBand& band);
// "f32", or "f32 / int8" where they differ.
std::string PrecisionsText(const RowPair& rows);
// "1.23 (1.20 to 1.26)".
std::string RatioText(const Ratio& ratio);
// "AVX2", or "AVX2 / AVX3_ZEN4" where they differ; engines likewise, if across.
std::string TargetsText(const RowPair& rows);
// "base_1x128", "base_1x128, 12 layers".
std::string WorkloadText(const ReportRow& row);
// Sentences: the machine, its roofs, rows without a partner, targets and engines that differ.
std::vector<std::string> PairingNotes(const Pairing& pairing);
// "12 rows: 3 faster, 1 slower, 8 without a real difference".
std::string PairingSummary(const Pairing& pairing);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARISON_H_
