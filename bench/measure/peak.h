// SPDX-License-Identifier: Apache-2.0
//
// The machine's peak of multiply-adds of an element type at this moment, to which the benchmarks
// relate their figures.

#ifndef ENCORE_BENCH_MEASURE_PEAK_H_
#define ENCORE_BENCH_MEASURE_PEAK_H_

#include <cstddef>
#include <vector>

#include "encore/executor.h"
#include "encore/precision.h"

namespace encore::bench {

// What an encoder's products are in, as EncoderOptions has it.
struct Products {
  Precision precision = Precision::kF32;
  bool amx_bf16 = false;
};

// The unit of products' speed: integers' are no floating-point operations.
inline const char* OperationsName(Precision precision) {
  return IsInteger(precision) ? "GOP/s" : "GFLOP/s";
}

class PeakMeter {
 public:
  // Finds out how long a window must be, on the active SIMD target. Takes over 1 ms.
  explicit PeakMeter(const Executor& executor, Products products = {});

  // FLOP/s of all the executor's threads together, now: each thread counts its own speed while all
  // of them run, and the best of several short windows is taken, so that other work on the machine
  // hardly lowers it. Takes about 0.5 ms.
  double Measure();

 private:
  // Operations a second of the calling thread over so many rounds.
  double Speed(size_t rounds) const;
  size_t RoundsOfAWindow() const;

  Executor executor_;
  double (*multiply_adds_)(size_t rounds, float* sink);
  size_t rounds_;              // of multiply-adds in a window
  std::vector<double> speed_;  // of each thread
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_PEAK_H_
