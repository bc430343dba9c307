// SPDX-License-Identifier: Apache-2.0
//
// Which rows of two reports belong together, and what may differ between the runs though nothing
// was changed: a band of ratios around 1 for each pair.

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/encore/report_data.h"

namespace encore::tool {

struct RowPair {
  const ReportRow* base = nullptr;
  const ReportRow* other = nullptr;
};

struct RowPairs {
  std::vector<RowPair> pairs;  // in the order of the base's rows
  size_t base_alone = 0;       // rows of the base in no pair
  size_t other_alone = 0;
  bool across_engines = false;
  bool across_precisions = false;
};

// Pairs rows of one engine, workload (its name and all its sizes, for every custom one has the same
// name), layers, precision, amx_bf16, threads, weights and target. Where the best target of one
// report is not that of the other, the rows of these two are a pair as well. Two reports without an
// engine in common are paired across engines; those without a precision in common (bf16 on AMX is
// one of its own) across precisions, each of the base with each of the other. Of rows that are
// alike in all this, the first counts. The reports must outlive the pairs.
RowPairs PairRows(const Report& base, const Report& other);

// Runs of one binary differ by this much where nothing else is seen: pages of memory lie
// elsewhere, and clocks move.
inline constexpr double kLeastNoise = 0.03;
// Standard deviation of what a row's ratio has of its own between two runs: where its memory lies.
inline constexpr double kRowError = 0.007;
// What is assumed where two runs on one machine have no roof in common.
inline constexpr double kUnknownNoise = 0.05;

// Ratios of speeds within it may be noise.
struct NoiseBand {
  double low = 1;
  double high = 1;
  double moved = 0;        // by how much rows like these moved in the course of a run: 0.3 for 30 %
  bool crowded = false;    // other work had a core that their threads wanted
  bool disturbed = false;  // other work took much of a run: what lies within the band may be either
};

// Processor, cores and caches are alike; virtual machines on different hosts may be.
bool SameMachine(const Report& base, const Report& other);

// The largest of kLeastNoise, half of both runs' drifts together, and the share of time that other
// processes and other machines took in either run.
double NoiseShare(const Report& base, const Report& other);

// Peak of the other run over that of the base, on the best target, precision and number of threads
// that both have, as near as can be to those of the rows; nothing if there is none.
std::optional<double> PeakRatio(const Report& base, const Report& other, const RowPair& rows);

// The same of f32 on one thread and no other: on the base's best target, or on another that both
// measured; nothing if there is none.
std::optional<double> F32PeakRatio(const Report& base, const Report& other);

// From 1 over to the ratio of the roofs that apply, if the machine is the same; and on either side
// the most of NoiseShare, what any row of the engine on as many threads moved by in the course of
// its run, and a factor of 2 if other work had more than 5 % of all cores' time and the row's
// threads wanted these cores.
NoiseBand BandOf(const Report& base, const Report& other, const RowPair& rows);

// Sentences about a run that was disturbed: "other processes took 48 % of ..."; none of a quiet
// one. The report's own notes come first.
std::vector<std::string> NoiseSentences(const ReportNoise& noise);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_ROWS_H_
