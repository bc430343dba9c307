// SPDX-License-Identifier: Apache-2.0
//
// The machine's roofs as a report has them, which of them applies to a row, what says that the
// machine changed meanwhile, and the tables of `encore bench`.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_ROOFS_H_
#define ENCORE_TOOLS_ENCORE_BENCH_ROOFS_H_

#include <cstddef>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/measure/peak.h"
#include "bench/measure/read.h"
#include "bench/measure/samples.h"
#include "encore/executor.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

// That of bench/measure/threads.h; throws Failure.
Executor ExecutorFor(int threads);

class BenchRoofs {
 public:
  // Make it while the best of the targets to measure is active: reading, and the peak whose drift
  // is watched, are measured with that one.
  BenchRoofs();

  // The peak of each precision on the active target, and the bandwidth of each level if that was
  // not measured yet. Throws Failure.
  void Measure(int threads);

  // After Measure(threads): memory's bandwidth at this moment. Other machines on the same memory
  // take their part of it, from the rows as from this.
  double MemoryNow(int threads);

  // The roof under which the row's work takes longer: its operations at the peak that was measured
  // between the samples, or its weights at the bandwidth of the level that they fit into. That is
  // memory's if given.
  ReportRowRoof Applying(const ReportRow& row, const bench::Samples& samples, double memory) const;

  // Looks at the peak after a row that had `peak`. Returns what its threads had of the peak of as
  // many single ones; 1 of one thread.
  double Watch(const ReportRow& row, bench::Products products, double peak);

  const std::vector<ReportRoof>& roofs() const { return roofs_; }

  // Moves the roofs and what was seen into the report.
  void Finish(Report* report);

 private:
  void MeasureDrift(int times);

  struct MemoryMeter {
    bench::ReadMeter meter;
    size_t roof;  // its place in roofs_
  };
  struct Shared {  // rows whose threads had less than their peak
    double least = 1;
    std::set<std::string> names;
    std::set<std::string> watched;  // all rows of so many threads
  };

  std::vector<ReportRoof> roofs_;
  std::map<int, MemoryMeter> memory_;  // by threads
  std::map<int, Shared> shared_;       // likewise
  bench::PeakMeter drift_meter_;
  std::vector<double> drift_;  // peaks of one thread
};

// A line for each number of threads, for people.
void PrintRoofs(std::ostream& out, const std::vector<ReportRoof>& roofs);

// Threads that have less than this of as many single ones' peak share a core, or do not all run.
inline constexpr double kLeastOfPeaks = 0.75;

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_ROOFS_H_
