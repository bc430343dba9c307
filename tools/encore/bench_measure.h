// SPDX-License-Identifier: Apache-2.0
//
// Fills a report: the machine's roofs, rows of workloads beside them, and what disturbed them.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/forward.h"
#include "bench/measure/frames.h"
#include "bench/measure/models.h"
#include "bench/measure/noise.h"
#include "bench/measure/peak.h"
#include "bench/measure/samples.h"
#include "bench/measure/sensors.h"
#include "encore/encoder.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

// A row's calls are made for so long before the clock starts, or for its seconds if they are fewer.
inline constexpr double kMaxWarmUpSeconds = 0.1;

// What is timed as a row, after a first call.
struct TimedCall {
  std::string name;  // unlike that of any other row
  size_t bits = 0;   // a hash of what it computed, which every visit must have
  double first_seconds = 0;
  std::function<void(size_t i)> run;  // the i-th call; of all rows together
  ReportRow row;                      // names and sizes; figures are filled in
};

class BenchMeasurer {
 public:
  // Rows are measured in visits, between which others are: what slows a machine for some seconds
  // slows a part of a row, which then shows how far it may be trusted.
  static constexpr int kVisits = 2;

  // About `seconds` a row, in kVisits; 2 calls of a visit at least. Threads are those of
  // bench/measure/threads.h. Make it while the best of the targets to measure is active, as
  // BenchRoofs wants. Waits for half a second if energy can be read, to see what idling takes.
  explicit BenchMeasurer(double seconds, bench::Sensors sensors = bench::Sensors());

  // Adds a row of the active target and returns it, after roofs().Measure(threads); or, called for
  // the same once more, a further visit to that row. Warm: a call is the workload's layers, the
  // same again and again. Cold: calls take turns among so many copies of them that these exceed the
  // last-level cache 16 times. One thread is the calling one, bound to a core meanwhile.
  //
  // Before the clock starts, the model's first layers are checked on four tokens against the
  // double-precision reference (bench/measure/check.h), and this workload's output must be finite
  // and, to the bit, what the calling thread alone computes. Throws Failure.
  const ReportRow& Measure(const bench::NamedWorkload& workload, bench::Products products,
                           int threads, bool cold);

  // The same of any call, which is checked already. The executor has so many threads, bound as
  // BindFor does.
  const ReportRow& Time(TimedCall call, bench::Products products, int threads,
                        const Executor& executor);
  // Adds a row of calls in frames, or of a server if the row says that it is one. Just
  // before the first, sensors().Start() was called.
  const ReportRow& Add(ReportRow row, bench::Products products, int threads,
                       const bench::FrameTimes& times, int hz = 0);
  // A workload's calls on the calling thread, with so many copies of its layers, warm and checked
  // as in Measure; and their row, without what is measured.
  std::pair<std::vector<bench::ForwardCall>, ReportRow> Copies(const bench::NamedWorkload& workload,
                                                               bench::Products products,
                                                               size_t copies);
  // The row of that name so far; nullptr before its first visit.
  const ReportRow* Find(const std::string& name) const;

  BenchRoofs& roofs() { return roofs_; }
  bench::Sensors& sensors() { return sensors_; }
  // Whether the threads of the last row had less than kLeastOfPeaks of as many single ones' peak.
  bool shares_core() const { return shares_core_; }

  // The whole report, with what disturbed it.
  Report Finish();

 private:
  void MakeEncoders(const bench::NamedWorkload& workload, bench::Products products, size_t copies);
  ReportRow RowOf(const bench::NamedWorkload& workload, size_t tokens, size_t bytes,
                  bool cold) const;
  bool Verify(const bench::NamedWorkload& workload, bench::Products products, ConstView y);
  bool LayersAreRight(const bench::Model& model, bench::Products products);

  double seconds_;
  double start_;
  Report report_;
  std::optional<bench::CpuTimes> times_;
  BenchRoofs roofs_;
  bench::Sensors sensors_;
  bool shares_core_ = false;
  bool cold_in_l3_ = false;

  struct Visited {
    size_t row;
    size_t bits;  // a hash of the output, which every visit must have
    bench::Samples samples;
    std::vector<double> memory = {};  // its bandwidth beside each visit
    std::vector<bench::SensorValues> sensors = {};
  };
  std::map<std::string, Visited> visited_;
  std::string made_;  // what encoders_ are
  // Copies of the model measured last: making them takes longer than measuring.
  std::vector<Encoder> encoders_;
  // Whose turn it is when cold: row after row, or caches would hold the first ones.
  size_t next_copy_ = 1;
  std::string expected_of_;
  std::vector<float> expected_;        // the output of the calling thread alone
  std::map<std::string, bool> right_;  // by model, products and target
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_MEASURE_H_
