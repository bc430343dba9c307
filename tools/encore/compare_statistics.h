// SPDX-License-Identifier: Apache-2.0
//
// Ratios of speeds with their uncertainty, and what of many differences is more than chance. Not
// here: which rows belong together and what differs between two runs (compare_rows.h).

#ifndef ENCORE_TOOLS_ENCORE_COMPARE_STATISTICS_H_
#define ENCORE_TOOLS_ENCORE_COMPARE_STATISTICS_H_

#include <cstddef>
#include <vector>

namespace encore::tool {

// Draws of a bootstrap.
inline constexpr int kDraws = 2000;
// Chance of one wrong verdict or more in a whole comparison.
inline constexpr double kLevel = 0.05;
// Fewer slots than this tell nothing of their noise.
inline constexpr size_t kLeastSlots = 3;

// The middle value, or the mean of both. values must not be empty.
double Median(std::vector<double> values);

struct Ratio {
  double value = 1;  // speed of the other over that of the base; above 1 the other is faster
  double low = 1;    // 95 % bootstrap interval
  double high = 1;
  double error = 0;    // standard error of log(value)
  bool enough = true;  // slots to tell the error
};

// Times of consecutive slots, all positive, none of the lists empty. Draws slots of each with
// replacement, kDraws times, and takes the ratio of their medians: low and high are its 2.5 and
// 97.5 percentiles (Efron & Tibshirani, An Introduction to the Bootstrap, 13.3). With under 5 slots
// the medians' range says too little: the error is at least the logarithm of largest over smallest.
// The draws are the same in every call.
Ratio RatioOfSpeeds(const std::vector<double>& base, const std::vector<double>& other);

// Chance that a normal variable is at least this many standard deviations from its mean.
double TwoSidedChance(double deviations);

// Which hypotheses to reject so that one or more true ones are rejected with a chance of `level` at
// most, whatever their dependence (Holm 1979).
std::vector<bool> HolmRejected(const std::vector<double>& chances, double level);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_COMPARE_STATISTICS_H_
