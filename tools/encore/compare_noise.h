// SPDX-License-Identifier: Apache-2.0
//
// What may differ between two runs though nothing was changed: a band of ratios around 1 for each
// pair of rows. Not here: the noise within a row (compare_statistics.h).

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_NOISE_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_NOISE_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/encore/compare_rows.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

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

// From 1 over to the ratio of the roofs that apply, if the machine is the same, and NoiseShare on
// either side.
NoiseBand BandOf(const Report& base, const Report& other, const RowPair& rows);

// Sentences about a run that was disturbed: "other processes took 48 % of ..."; none of a quiet
// one. The report's own notes come first.
std::vector<std::string> NoiseSentences(const ReportNoise& noise);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_NOISE_H_
