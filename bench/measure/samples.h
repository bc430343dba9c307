// SPDX-License-Identifier: Apache-2.0
//
// How long calls took, related to the peak of multiply-adds at the same time.

#ifndef ENCORE_BENCH_MEASURE_SAMPLES_H_
#define ENCORE_BENCH_MEASURE_SAMPLES_H_

#include <cstddef>
#include <vector>

#include "bench/measure/peak.h"
#include "encore/executor.h"

namespace encore::bench {

// The smallest of the values that a share q in (0, 1] of all values do not exceed: 0.5 is the
// (lower) median, 1 the largest. values must not be empty.
double Quantile(std::vector<double> values, double q);

// Relative spread, whatever the count: (90 % - 10 % quantile) / median.
double Spread(const std::vector<double>& values);

// At 0, 1, ... 100 %. values must not be empty.
std::vector<double> PercentilesOf(std::vector<double> values);

// Medians of consecutive slots, which end before `ends`, or of groups of them where there are more
// than `most`.
std::vector<double> MediansOfSlots(const std::vector<double>& values,
                                   const std::vector<size_t>& ends, size_t most);

// The samples of one measurement, in slots of 20 ms with the peak measured between them.
class Samples {
 public:
  // The peak is that of this executor's threads together, for elements of this type. Takes about 2
  // ms.
  explicit Samples(const Executor& executor, Products products = {});

  // seconds that one call took. Not to be called in timed code: it may measure the peak.
  void Add(double seconds);

  // Call after the last Add; those below want at least one sample and Finish().
  void Finish();
  // Further samples after Finish(), some time later: as the constructor, with those that are there.
  void Resume();

  size_t count() const { return all_.size(); }
  double SecondsAt(double q) const { return Quantile(all_, q); }
  const std::vector<double>& all() const { return all_; }
  std::vector<double> Percentiles() const { return PercentilesOf(all_); }
  std::vector<double> SlotMedians(size_t most) const {
    return MediansOfSlots(all_, slot_ends_, most);
  }
  double PeakFlops() const { return Quantile(peaks_, 0.5); }  // FLOP/s; the median
  double LargestPeakFlops() const { return Quantile(peaks_, 1); }
  // What a call of `flops` operations reached of the peak: the median over the samples of its
  // FLOP/s / the larger one of the peaks before and after. Clocks change in the course of a run, so
  // both sides of the quotient are always neighbours.
  double Share(double flops) const { return flops * Quantile(calls_per_flop_, 0.5); }

 private:
  void CloseSlot();

  PeakMeter meter_;
  double peak_before_;
  std::vector<double> all_;  // seconds
  double slot_start_;
  std::vector<double> peaks_;           // one a slot: FLOP/s
  std::vector<size_t> slot_ends_;       // samples up to the end of each slot
  std::vector<double> calls_per_flop_;  // one a sample: how much of a call is done in the time of a
                                        // FLOP at the peak
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_SAMPLES_H_
