// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this folder share: texts, clocks and a line of percentiles. They use the
// public interface alone.

#ifndef ENCORE_BENCH_LATENCY_LATENCY_H_
#define ENCORE_BENCH_LATENCY_LATENCY_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace encore::latency {

using Clock = std::chrono::steady_clock;

inline double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

inline void PrintPercentiles(const char* what, std::vector<double> ms) {
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double p) {
    return ms[std::min(ms.size() - 1, static_cast<size_t>(p * static_cast<double>(ms.size())))];
  };
  std::printf("%-22s %5zu  p50 %7.3f  p99 %7.3f  max %7.3f ms\n", what, ms.size(), at(0.5),
              at(0.99), ms.back());
}

// A sentence of so many words.
inline std::string Sentence(size_t words, std::mt19937& random) {
  static constexpr const char* kWords[] = {
      "the", "engineer", "found", "a",  "broken", "river", "report",  "about", "three", "kinds",
      "of",  "bread",    "near",  "an", "old",    "north", "harbour", "and",   "quiet", "trains"};
  std::string text;
  for (size_t i = 0; i < words; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random() % std::size(kWords)];
  }
  return text;
}

}  // namespace encore::latency

#endif  // ENCORE_BENCH_LATENCY_LATENCY_H_
