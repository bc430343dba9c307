// SPDX-License-Identifier: Apache-2.0
//
// Timing of the multiply-add chains on each thread of an executor.

#include "bench/measure/peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "bench/measure/roof_kernels.h"
#include "engine/platform/amx.h"
#include "engine/platform/thread_team.h"

namespace encore::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindows = 4;
constexpr double kWindowSeconds =
    100e-6;  // thousands of times the clock's resolution, far below a time slice

auto KernelOf(Products products) {
  const internal::PeakKernels& kernels = internal::GetPeakKernels();
  switch (products.precision) {
    case Precision::kF32:
      break;
    case Precision::kBF16:
      return products.amx_bf16 && internal::UseAmxBf16() ? kernels.bf16_amx : kernels.bf16;
    case Precision::kInt8:
      return internal::UseAmx() ? kernels.int8_amx : kernels.int8;
    case Precision::kInt4:
      return kernels.int4;
  }
  return kernels.multiply_adds;
}

}  // namespace

double PeakMeter::Speed(size_t rounds) const {
  float sink = 0;
  const Clock::time_point start = Clock::now();
  const double flops = multiply_adds_(rounds, &sink);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return flops / std::max(seconds, 1e-9);
}

// How many rounds fill a window. Its first millisecond also wakes the wide units, which some CPUs
// clock up late.
size_t PeakMeter::RoundsOfAWindow() const {
  constexpr size_t kProbe = 4096;
  float sink = 0;
  double best = 0;
  double flops = 0;
  const Clock::time_point start = Clock::now();
  do {
    flops = multiply_adds_(kProbe, &sink);
    best = std::max(best, Speed(kProbe));
  } while (Clock::now() - start < std::chrono::milliseconds(1));
  return std::max<size_t>(1, static_cast<size_t>(kWindowSeconds * best / (flops / kProbe)));
}

PeakMeter::PeakMeter(const Executor& executor, Products products)
    : executor_(executor),
      multiply_adds_(KernelOf(products)),
      rounds_(RoundsOfAWindow()),
      speed_(static_cast<size_t>(executor.threads())) {}

double PeakMeter::Measure() {
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    std::fill(speed_.begin(), speed_.end(), 0.0);
    (void)internal::RunTeam(executor_, [this](internal::Team& team) {
      // One task a thread. The first stage wakes all of them, so that they start the next together.
      // A thread that is late all the same leaves its speed at 0.
      const size_t tasks = static_cast<size_t>(team.threads());
      team.ForEach(tasks, [&](size_t, int) { Speed(rounds_ / 16 + 1); });
      team.ForEach(
          tasks, [&](size_t, int thread) { speed_[static_cast<size_t>(thread)] = Speed(rounds_); });
    });
    best = std::max(best, std::accumulate(speed_.begin(), speed_.end(), 0.0));
  }
  return best;
}

}  // namespace encore::bench
