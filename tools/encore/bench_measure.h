// SPDX-License-Identifier: Apache-2.0
//
// One row of `encore bench`: a workload on so many threads, warm or cold, measured. Not here: flags
// (bench.cc) and how rows are shown (bench_report.h).

#ifndef ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "encore/encoder.h"

namespace encore::tool {

struct BenchRow {
  const bench::NamedWorkload* workload = nullptr;
  Precision precision = Precision::kF32;
  int threads = 1;
  bool cold = false;
  std::string target;
  size_t calls = 0;  // timed
  // Of one layer.
  double us_min = 0;
  double us_median = 0;
  double us_p99 = 0;
  double gflops = 0;        // from the median
  double peak_gflops = 0;   // of multiply-adds on as many threads, measured between the calls
  double share = 0;         // median of each call's GFLOP/s over the peak next to it
  double gbytes_per_s = 0;  // a layer's weights / the median
  double tokens_per_s = 0;  // from the median
};

// Keeps the encoders of the model measured last, since making them takes longer than a measurement.
class BenchMeasurer {
 public:
  // About this long a row; at least 3 calls.
  BenchMeasurer(double seconds, Precision precision) : seconds_(seconds), precision_(precision) {}

  // Warm: a call is one layer, the same again and again. Cold: a call is a model of at least 12
  // layers, and of as many as exceed twice the last-level cache; its time is divided by them. One
  // thread is the calling one,
  // bound to a core meanwhile; more are those of bench/measure/threads.h. Throws Failure.
  BenchRow Measure(const bench::NamedWorkload& workload, int threads, bool cold);

 private:
  const Encoder& EncoderOf(const bench::Model& model, size_t layers);

  double seconds_;
  Precision precision_;
  bench::Model model_{};
  std::vector<Encoder> encoder_;  // of model_, or none yet
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
