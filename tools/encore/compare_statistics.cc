// SPDX-License-Identifier: Apache-2.0
//
// The bootstrap and Holm's procedure; the declarations say what each function does.

#include "tools/encore/compare_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace encore::tool {
namespace {

constexpr size_t kFewSlots = 5;

// SplitMix64 (Steele, Lea & Flood 2014), for the same draws with every standard library.
class Draws {
 public:
  // Below `count`, which is small: the bias of the remainder is under count / 2^64.
  size_t Below(size_t count) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<size_t>((z ^ (z >> 31)) % count);
  }

 private:
  uint64_t state_ = 1;
};

// The middle of `values`, whose order it changes.
double MedianInPlace(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*std::max_element(values.begin(), middle) + *middle);
}

double LogRange(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return std::log(*high / *low);
}

double StandardDeviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1));
}

// Of sorted values, between neighbours by their distance.
double Percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace

double Median(std::vector<double> values) { return MedianInPlace(values); }

Ratio RatioOfSpeeds(const std::vector<double>& base, const std::vector<double>& other) {
  Draws draws;
  std::vector<double> logs(kDraws);
  std::vector<double> drawn;
  const auto median_of_draw = [&](const std::vector<double>& slots) {
    drawn.resize(slots.size());
    for (double& value : drawn) value = slots[draws.Below(slots.size())];
    return MedianInPlace(drawn);
  };
  for (double& log : logs) {
    const double time = median_of_draw(base);
    log = std::log(time / median_of_draw(other));
  }
  Ratio ratio;
  ratio.value = Median(base) / Median(other);
  ratio.error = StandardDeviation(logs);
  std::sort(logs.begin(), logs.end());
  ratio.low = std::exp(Percentile(logs, 0.025));
  ratio.high = std::exp(Percentile(logs, 0.975));
  for (const std::vector<double>* slots : {&base, &other}) {
    if (slots->size() < kLeastSlots) ratio.enough = false;
    if (slots->size() < kFewSlots) ratio.error = std::max(ratio.error, LogRange(*slots));
  }
  return ratio;
}

double TwoSidedChance(double deviations) {
  return std::erfc(std::fabs(deviations) * 0.70710678118654752);  // sqrt(1/2)
}

std::vector<bool> HolmRejected(const std::vector<double>& chances, double level) {
  std::vector<size_t> order(chances.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return chances[a] < chances[b]; });
  std::vector<bool> rejected(chances.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    if (!(chances[order[i]] <= level / static_cast<double>(order.size() - i))) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

}  // namespace encore::tool
