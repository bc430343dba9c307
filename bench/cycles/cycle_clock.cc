// SPDX-License-Identifier: Apache-2.0
//
// The chain of additions and the samples of cycle_clock.h.

#include "bench/cycles/cycle_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bench/measure/os.h"

namespace encore::bench {
namespace {

constexpr double kSampleSeconds = 10e-6;
constexpr size_t kLeastRounds = 5;
constexpr int kChain = 32768;  // some 10 us
constexpr int kUnrolled = 16;

// kChain dependent steps; returns the cycles that they take. An addition of two registers takes one
// cycle on every core of the last decades. The other chain is for compilers without this inline
// assembly: an exclusive or and an addition take two.
double RunChain() {
  static volatile uint64_t input = 1;
  uint64_t x = input;
  const uint64_t y = input;
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
  for (int i = 0; i < kChain / kUnrolled; ++i) {
    asm volatile(".rept 16\n\tadd %1, %0\n\t.endr" : "+r"(x) : "r"(y) : "cc");
  }
  const double cycles = kChain;
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
  for (int i = 0; i < kChain / kUnrolled; ++i) {
    asm volatile(".rept 16\n\tadd %0, %0, %1\n\t.endr" : "+r"(x) : "r"(y));
  }
  const double cycles = kChain;
#else
  for (int i = 0; i < kChain / kUnrolled; ++i) {
    for (int j = 0; j < kUnrolled / 2; ++j) x += x ^ y;
  }
  const double cycles = kChain;
#endif
  input = x | 1;
  return cycles;
}

// What asking for the time adds to a sample.
double ClockSeconds() {
  double least = 1;
  for (int i = 0; i < 1000; ++i) {
    const double start = WallSeconds();
    least = std::min(least, WallSeconds() - start);
  }
  return least;
}

// How many calls make a sample.
size_t CallsOf(const Contender& contender) {
  if (contender.pieces > 1) return 1;
  double least = 1;
  for (int i = 0; i < 3; ++i) {
    if (contender.prepare) contender.prepare();
    const double start = WallSeconds();
    contender.run(0);
    least = std::min(least, WallSeconds() - start);
  }
  const double calls = std::clamp(std::ceil(kSampleSeconds / std::max(least, 1e-9)), 1.0, 1e5);
  return std::min(static_cast<size_t>(calls), contender.most_calls);
}

}  // namespace

std::vector<double> LeastCycles(const std::vector<Contender>& contenders, double seconds) {
  const double overhead = ClockSeconds();
  std::vector<size_t> calls;
  std::vector<std::vector<double>> least;  // seconds of each piece
  for (const Contender& contender : contenders) {
    calls.push_back(CallsOf(contender));
    least.emplace_back(contender.pieces, 1e9);
  }
  double least_cycle = 1;  // seconds
  const double end = WallSeconds() + seconds * static_cast<double>(contenders.size());
  for (size_t round = 0; round < kLeastRounds || WallSeconds() < end; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Contender& contender = contenders[i];
      const double chain_start = WallSeconds();
      const double cycles = RunChain();
      least_cycle = std::min(least_cycle, (WallSeconds() - chain_start - overhead) / cycles);
      if (contender.prepare) contender.prepare();
      for (size_t piece = 0; piece < contender.pieces; ++piece) {
        const double start = WallSeconds();
        for (size_t call = 0; call < calls[i]; ++call) contender.run(piece);
        const double sample = WallSeconds() - start - overhead;
        least[i][piece] = std::min(least[i][piece], sample / static_cast<double>(calls[i]));
      }
    }
  }
  std::vector<double> cycles;
  for (const std::vector<double>& pieces : least) {
    double sum = 0;
    for (const double piece : pieces) sum += piece;
    cycles.push_back(sum / least_cycle);
  }
  return cycles;
}

}  // namespace encore::bench
