// SPDX-License-Identifier: Apache-2.0
//
// Fills a report: the machine's roofs, rows of workloads beside them, and what disturbed them. Not
// here: flags (bench.cc, report.cc).

#ifndef ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "bench/measure/noise.h"
#include "bench/measure/peak.h"
#include "encore/encoder.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

class BenchMeasurer {
 public:
  // About `seconds` a row; at least 3 calls. Threads are those of bench/measure/threads.h. Make it
  // while the best of the targets to measure is active, as BenchRoofs wants.
  explicit BenchMeasurer(double seconds);

  // Adds a row of the active target and returns it, after roofs().Measure(threads). Warm: a call is
  // the workload's layers, the same again and again. Cold: calls take turns among so many
  // copies of them that these exceed the last-level cache four times; of one layer, a call is a
  // model of up to 12, fewer where they are large, and its time is divided by them. One thread is
  // the calling one, bound to a core meanwhile.
  //
  // Before the clock starts, the model's first layers are checked on four tokens against the
  // double-precision reference (bench/measure/check.h), and this workload's output must be finite
  // and, to the bit, what the calling thread alone computes. Throws Failure.
  const ReportRow& Measure(const bench::NamedWorkload& workload, bench::Products products,
                           int threads, bool cold);

  BenchRoofs& roofs() { return roofs_; }
  // What threads had of the peak of as many single ones at the last row, 1 of one thread.
  double shared_peak() const { return shared_peak_; }

  // The whole report, with what disturbed it.
  Report Finish();

 private:
  void MakeEncoders(const bench::NamedWorkload& workload, bench::Products products, size_t layers,
                    size_t copies);
  bool Verify(const bench::NamedWorkload& workload, bench::Products products, ConstView y);
  bool LayersAreRight(const bench::Model& model, bench::Products products);

  double seconds_;
  double start_;
  Report report_;
  std::optional<bench::CpuTimes> times_;
  BenchRoofs roofs_;
  double shared_peak_ = 1;

  std::string made_;               // what encoders_ are
  std::vector<Encoder> encoders_;  // of the model measured last: making takes longer than measuring
  std::string expected_of_;
  std::vector<float> expected_;        // the output of the calling thread alone
  std::map<std::string, bool> right_;  // by model, products and target
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
