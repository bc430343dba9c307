// SPDX-License-Identifier: Apache-2.0
//
// Roofs, what the peak did between rows, and tables.

#include "tools/encore/bench_roofs.h"

#include <algorithm>
#include <utility>

#include "bench/measure/os.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/precision.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr int kSamples = 8;
// Samples of the drift before the first row and after the last.
constexpr int kDriftSamples = 5;
// Names of rows in one note; with more, their number.
constexpr size_t kMostNames = 4;

double Largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

constexpr size_t kNumberWidth = 11;

}  // namespace

Executor ExecutorFor(int threads) {
  return Take(bench::ExecutorOf(threads), std::to_string(threads) + " threads");
}

BenchRoofs::BenchRoofs() : drift_meter_(Executor::Inline()) { MeasureDrift(kDriftSamples); }

void BenchRoofs::MeasureDrift(int times) {
  bench::BindFor(1);
  for (int i = 0; i < times; ++i) drift_.push_back(drift_meter_.Measure());
  bench::BindFor(0);
}

void BenchRoofs::Measure(int threads) {
  bench::BindFor(threads);
  const Executor executor = ExecutorFor(threads);
  const auto measure = [](auto& meter, std::vector<double>& samples) {
    for (int i = 0; i < kSamples; ++i) samples.push_back(meter.Measure());
    return Largest(samples);
  };
  for (const Precision precision :
       {Precision::kF32, Precision::kBF16, Precision::kInt8, Precision::kInt4}) {
    bench::PeakMeter meter(executor, {precision});
    ReportRoof& roof = roofs_.emplace_back();
    roof = {.kind = "compute",
            .target = ActiveTarget(),
            .precision = std::string(PrecisionName(precision)),
            .threads = threads};
    roof.flops_per_s = measure(meter, roof.samples);
  }
  if (memory_.count(threads) == 0) {
    for (const bench::ReadLevel& level : bench::ReadLevels(threads)) {
      bench::ReadMeter meter =
          Take(bench::ReadMeter::Create(executor, level.bytes), level.name + "'s bandwidth");
      ReportRoof& roof = roofs_.emplace_back();
      roof = {.kind = "read", .level = level.name, .bytes = level.bytes, .threads = threads};
      roof.bytes_per_s = measure(meter, roof.samples);
      if (level.name == "memory") {
        memory_.emplace(threads, MemoryMeter{std::move(meter), roofs_.size() - 1});
      }
    }
  }
  bench::BindFor(0);
}

double BenchRoofs::MemoryNow(int threads) {
  MemoryMeter& memory = memory_.at(threads);
  return roofs_[memory.roof].samples.emplace_back(memory.meter.Measure());
}

ReportRowRoof BenchRoofs::Applying(const ReportRow& row, const bench::Samples& samples,
                                   double memory) const {
  ReportRowRoof compute{.kind = "compute",
                        .level = "",
                        .name = row.precision + " peak",
                        .value = samples.PeakFlops(),
                        .share = samples.Share(row.flops)};
  if (compute.share > 1) {  // other work took the cores while the peak was measured
    compute.value = samples.LargestPeakFlops();
    for (const ReportRoof& roof : roofs_) {
      if (roof.kind == "compute" && roof.target == row.target && roof.precision == row.precision &&
          roof.threads == row.threads) {
        compute.value = std::max(compute.value, roof.flops_per_s);
      }
    }
    compute.share = row.flops / row.seconds.p50 / compute.value;
  }
  const std::vector<bench::ReadLevel> levels = bench::ReadLevels(row.threads);
  const bench::ReadLevel& level =
      memory > 0 ? levels.back() : bench::LevelFor(row.weight_bytes, levels);
  double bandwidth = memory;
  for (const ReportRoof& roof : roofs_) {
    if (memory == 0 && roof.level == level.name && roof.threads == row.threads) {
      bandwidth = roof.bytes_per_s;
    }
  }
  // Other work may have held it down while it was measured: the row shows that there is more.
  bandwidth = std::max(bandwidth, row.weight_bytes / row.seconds.p50);
  if (row.weight_bytes / bandwidth <= row.flops / compute.value) return compute;
  return {.kind = "read",
          .level = level.name,
          .name = level.name + " bandwidth",
          .value = bandwidth,
          .share = row.weight_bytes / row.seconds.p50 / bandwidth};
}

double BenchRoofs::Watch(const ReportRow& row, bench::Products products, double peak) {
  MeasureDrift(1);
  bench::BindFor(1);
  double share = 1;
  const std::string name =
      row.workload + " " + row.weights + " " + row.precision + " on " + row.target;
  if (row.threads > 1) {
    Shared& shared = shared_[row.threads];
    shared.watched.insert(name);
    bench::PeakMeter single(Executor::Inline(), products);
    share = peak / (single.Measure() * row.threads);
    if (share < kLeastOfPeaks) {
      shared.least = std::min(shared.least, share);
      shared.names.insert(name);
    }
  }
  bench::BindFor(0);
  return share;
}

void BenchRoofs::Finish(Report* report) {
  MeasureDrift(kDriftSamples);
  for (const auto& [threads, memory] : memory_) {
    bench::BindFor(threads);
    for (int i = 0; i < kDriftSamples; ++i) (void)MemoryNow(threads);
  }
  bench::BindFor(0);
  report->noise.peak_drift_percent = 100 * bench::Spread(drift_);
  for (const auto& [threads, shared] : shared_) {
    if (shared.names.empty()) continue;
    const std::string rows =
        shared.names.size() <= kMostNames
            ? Joined({shared.names.begin(), shared.names.end()})
            : std::to_string(shared.names.size()) + " of " + Counted(shared.watched.size(), "row");
    const size_t cores = report->machine.cores;
    report->noise.notes.push_back(
        std::to_string(threads) + " threads " +
        (static_cast<size_t>(threads) > cores
             ? "shared " + Counted(cores, "core")
             : "together had less than " + Number(kLeastOfPeaks * threads, 1) +
                   " times the peak of one, as they shared a core or other work had it") +
        ": " + rows);
  }
  for (const auto& [threads, memory] : memory_) {
    ReportRoof& roof = roofs_[memory.roof];
    report->noise.memory_drift_percent =
        std::max(report->noise.memory_drift_percent, 100 * bench::Spread(roof.samples));
    roof.bytes_per_s = Largest(roof.samples);
    if (roof.bytes * static_cast<size_t>(threads) < 2 * report->machine.l3_bytes) {
      report->noise.notes.push_back("L3 holds a part of what " + std::to_string(threads) +
                                    " threads read to measure memory's bandwidth");
    }
  }
  report->roofs = std::move(roofs_);
}

void PrintRoofs(std::ostream& out, const std::vector<ReportRoof>& roofs) {
  out << "\nRoofs of all threads together: multiply-adds in GFLOP/s (int8, int4: GOP/s), "
         "reading in GB/s\n"
      << PadLeft("threads", kNumberWidth);
  std::map<int, std::map<std::string, double>> lines;
  for (const ReportRoof& roof : roofs) {
    const bool compute = roof.kind == "compute";
    lines[roof.threads][compute ? roof.precision : roof.level] =
        1e-9 * (compute ? roof.flops_per_s : roof.bytes_per_s);
  }
  // A level may be there for some numbers of threads alone, as L3 is.
  std::vector<std::string> names;
  for (const char* name : {"f32", "bf16", "int8", "int4", "L1", "L2", "L3", "memory"}) {
    const bool known = std::any_of(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.second.contains(name); });
    if (known) names.emplace_back(name);
  }
  for (const std::string& name : names) out << PadLeft(name, kNumberWidth);
  out << "\n";
  for (const auto& [threads, values] : lines) {
    out << PadLeft(std::to_string(threads), kNumberWidth);
    for (const std::string& name : names) {
      const auto value = values.find(name);
      out << PadLeft(value == values.end() ? "" : Number(value->second, 1), kNumberWidth);
    }
    out << "\n";
  }
}

}  // namespace encore::tool
