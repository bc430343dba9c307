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

Samples::Samples(const Executor& executor, Precision precision)
    : meter_(executor, precision), peak_before_(meter_.Measure()), slot_start_(WallSeconds()) {}

void Samples::Add(double seconds) {
  all_.push_back(seconds);
  if (WallSeconds() - slot_start_ > kSlotSeconds) CloseSlot();
}

void Samples::Finish() {
  if (calls_per_flop_.size() < all_.size()) CloseSlot();
}

void Samples::CloseSlot() {
  const double peak_after = meter_.Measure();
  peaks_.push_back(std::max(peak_before_, peak_after));
  while (calls_per_flop_.size() < all_.size()) {
    calls_per_flop_.push_back(1 / (all_[calls_per_flop_.size()] * peaks_.back()));
  }
  peak_before_ = peak_after;
  slot_start_ = WallSeconds();
}

}  // namespace encore::bench
