// SPDX-License-Identifier: Apache-2.0
//
// Slots of samples between measurements of the peak.

#include "bench/measure/samples.h"

#include <algorithm>
#include <cmath>

#include "bench/measure/os.h"

namespace encore::bench {
namespace {

// Between two measurements of the peak. Clocks follow load and heat over milliseconds to seconds;
// the peak takes 2 %.
constexpr double kSlotSeconds = 20e-3;

}  // namespace

double Quantile(std::vector<double> values, double q) {
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto place = values.begin() + static_cast<ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double Spread(const std::vector<double>& values) {
  return (Quantile(values, 0.9) - Quantile(values, 0.1)) / Quantile(values, 0.5);
}

std::vector<double> PercentilesOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> found;
  for (size_t percent = 0; percent <= 100; ++percent) {
    const size_t rank = (percent * values.size() + 99) / 100;  // rounded up, as Quantile has it
    found.push_back(values[std::max<size_t>(rank, 1) - 1]);
  }
  return found;
}

std::vector<double> MediansOfSlots(const std::vector<double>& values,
                                   const std::vector<size_t>& ends, size_t most) {
  const size_t group = (ends.size() + most - 1) / most;
  std::vector<double> medians;
  size_t begin = 0;
  for (size_t slot = 0; slot < ends.size(); slot += group) {
    const size_t end = ends[std::min(slot + group, ends.size()) - 1];
    medians.push_back(Quantile({values.begin() + static_cast<ptrdiff_t>(begin),
                                values.begin() + static_cast<ptrdiff_t>(end)},
                               0.5));
    begin = end;
  }
  return medians;
}

Samples::Samples(const Executor& executor, Products products)
    : meter_(executor, products), peak_before_(meter_.Measure()), slot_start_(WallSeconds()) {}

void Samples::Add(double seconds) {
  all_.push_back(seconds);
  if (WallSeconds() - slot_start_ > kSlotSeconds) CloseSlot();
}

void Samples::Finish() {
  if (calls_per_flop_.size() < all_.size()) CloseSlot();
}

void Samples::Resume() {
  peak_before_ = meter_.Measure();
  slot_start_ = WallSeconds();
}

void Samples::CloseSlot() {
  const double peak_after = meter_.Measure();
  peaks_.push_back(std::max(peak_before_, peak_after));
  while (calls_per_flop_.size() < all_.size()) {
    calls_per_flop_.push_back(1 / (all_[calls_per_flop_.size()] * peaks_.back()));
  }
  slot_ends_.push_back(all_.size());
  peak_before_ = peak_after;
  slot_start_ = WallSeconds();
}

}  // namespace encore::bench
