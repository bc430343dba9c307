// SPDX-License-Identifier: Apache-2.0
//
// The timing loop of `encore bench`, the checks before it and the roofs beside
// it.

#include "tools/encore/bench_measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>

#include "bench/measure/check.h"
#include "bench/measure/context.h"
#include "bench/measure/machine.h"
#include "bench/measure/os.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/executor.h"
#include "encore/version.h"
#include "tools/encore/failure.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr size_t kMinCalls = 2;  // of a visit
constexpr size_t kMostSlots = 64;

std::string ProductsName(bench::Products products) {
  return std::string(PrecisionName(products.precision)) + (products.amx_bf16 ? " (AMX)" : "");
}

// Program, machine and time.
Report NewReport() {
  Report report;
  report.encore = ENCORE_VERSION_STRING;
  report.created = bench::Now();
  const CacheSizes caches = Caches();
  const CoreCount cores = Cores();
  report.machine = {.cpu = bench::CpuModel(bench::ReadCpuInfo(bench::SystemTree())),
                    .architecture = bench::Architecture(),
                    .cores = cores.usable,
                    .cores_text = cores.reason,
                    .l1d_bytes = caches.l1d,
                    .l2_bytes = caches.l2,
                    .l3_bytes = caches.l3,
                    .system = bench::OperatingSystem(),
                    .compiler = bench::Compiler(),
                    .commit = bench::SourceCommit(),
                    .flags = bench::CompilerFlags(),
                    .targets = SupportedTargets(),
                    .hardware = bench::ReadHardware({}, bench::HypervisorOfCpuid())};
  const bench::ThreadChoice& threads = bench::ChosenThreads();
  report.run = {.threads_from = std::string(bench::ThreadSourceName(threads.source)),
                .idle_spin_us = static_cast<int>(threads.idle_spin.count()),
                .binding = bench::Binding() + "; " + bench::WaitPolicy()};
  return report;
}

ReportSeconds SecondsOfCalls(const std::vector<double>& calls) {
  ReportSeconds seconds = {.min = bench::Quantile(calls, 0),
                           .p50 = bench::Quantile(calls, 0.5),
                           .p90 = bench::Quantile(calls, 0.9),
                           .max = bench::Quantile(calls, 1)};
  if (calls.size() >= kCallsForP99) seconds.p99 = bench::Quantile(calls, 0.99);
  return seconds;
}

// What follows from the calls, but for the slots. Speeds are of so many calls a second, or of calls
// that take the median.
void SetFigures(const std::vector<double>& calls, bench::Products products, int threads,
                ReportRow* row, double calls_per_s = 0) {
  row->engine_version = ENCORE_VERSION_STRING;
  row->precision = PrecisionName(products.precision);
  row->target = ActiveTarget();
  row->threads = threads;
  row->calls = calls.size();
  row->seconds = SecondsOfCalls(calls);
  row->quantiles = bench::PercentilesOf(calls);
  const double median = calls_per_s > 0 ? 1 / calls_per_s : row->seconds.p50;
  row->gflops = row->flops / median * 1e-9;
  row->tokens_per_s = static_cast<double>(row->tokens) / median;
  row->useful_tokens_per_s = static_cast<double>(row->useful_tokens) / median;
  if (row->model) row->texts_per_s = static_cast<double>(row->sequences) / median;
}

}  // namespace

BenchMeasurer::BenchMeasurer(double seconds, bench::Sensors sensors)
    : seconds_(seconds),
      start_(bench::WallSeconds()),
      report_(NewReport()),
      times_(bench::ReadCpuTimes()),
      sensors_(std::move(sensors)) {
  report_.run.seconds_per_row = seconds;
  report_.run.energy_source = sensors_.energy_source();
  if (report_.run.energy_source.empty()) return;
  constexpr std::chrono::milliseconds kIdle(500);
  sensors_.Start();
  const double waited = bench::SecondsOf([&] { std::this_thread::sleep_for(kIdle); });
  report_.run.idle_watts = sensors_.Stop(waited, 0).watts;
}

void BenchMeasurer::MakeEncoders(const bench::NamedWorkload& workload, bench::Products products,
                                 size_t copies) {
  const bench::Model& model = workload.model;
  std::string name = model.name;
  for (const size_t size : {model.d_model, model.heads, model.d_ff, workload.layers}) {
    name += "," + std::to_string(size);
  }
  name += "," + ProductsName(products) + "," + ActiveTarget();
  if (name == made_ && copies <= encoders_.size()) return;
  encoders_.clear();  // before there are others: they are large
  encoders_ = Take(bench::MakeEncoders(model, workload.layers, copies, products), model.name);
  made_ = name;
  next_copy_ = 1;
}

bool BenchMeasurer::LayersAreRight(const bench::Model& model, bench::Products products) {
  const std::string name = std::string(model.name) + std::to_string(model.d_model) + "," +
                           std::to_string(model.d_ff) + ProductsName(products) + ActiveTarget();
  const auto known = right_.find(name);
  if (known != right_.end()) return known->second;
  const std::optional<double> error = Take(bench::ErrorOfLayers(model, products), model.name);
  if (error && !(*error <= bench::MostError(products.precision))) {
    throw Failure(std::string(model.name) + " in " + ProductsName(products) + " on " +
                      ActiveTarget() + ": found an error of " + Number(1e6 * *error, 1) +
                      "e-6 of the largest element of the reference, wanted " +
                      Number(1e6 * bench::MostError(products.precision), 1) + "e-6 at most",
                  kExitCheckFailed);
  }
  return right_[name] = error.has_value();
}

bool BenchMeasurer::Verify(const bench::NamedWorkload& workload, bench::Products products,
                           ConstView y) {
  const size_t count = y.dim(0) * y.dim(1);
  if (!bench::AllFinite(y) || std::memcmp(y.data(), expected_.data(), count * sizeof(float)) != 0) {
    throw Failure(workload.name + " in " + ProductsName(products) + " on " + ActiveTarget() +
                      ": found other bits than the calling thread alone computes, or no numbers",
                  kExitCheckFailed);
  }
  return LayersAreRight(workload.model, products);
}

ReportRow BenchMeasurer::RowOf(const bench::NamedWorkload& workload, size_t tokens, size_t bytes,
                               bool cold) const {
  ReportRow row;
  row.workload = workload.name;
  row.d_model = workload.model.d_model;
  row.heads = workload.model.heads;
  row.d_ff = workload.model.d_ff;
  row.activation = ActivationName(workload.model.activation);
  row.layers = workload.layers;
  row.sequences = workload.lengths.size();
  row.tokens = tokens;
  row.useful_tokens = tokens - workload.padding;
  row.amx_bf16 = encoders_.front().amx_bf16();
  row.weights = cold ? "cold" : "warm";
  row.flops = bench::StackFlops(workload.model, workload.lengths, workload.layers);
  row.weight_bytes = static_cast<double>(bytes);
  return row;
}

std::pair<std::vector<bench::ForwardCall>, ReportRow> BenchMeasurer::Copies(
    const bench::NamedWorkload& workload, bench::Products products, size_t copies) {
  MakeEncoders(workload, products, copies);
  std::vector<bench::ForwardCall> calls;
  const size_t bytes = bench::LayerBytes(workload.model, products.precision) * workload.layers;
  bool verified = true;
  expected_of_.clear();
  for (size_t i = 0; i < copies; ++i) {
    calls.push_back(
        Take(bench::ForwardCall::Create({encoders_[i]}, workload.lengths, Executor::Inline()),
             workload.name));
    Check(calls[i].Run(0), workload.name);
    const ConstView y = calls[i].y();
    if (i == 0) expected_.assign(y.data(), y.data() + y.dim(0) * y.dim(1));
    verified = Verify(workload, products, y);
  }
  ReportRow row = RowOf(workload, calls[0].tokens(), bytes, false);
  row.verified = verified;
  return {std::move(calls), std::move(row)};
}

const ReportRow& BenchMeasurer::Measure(const bench::NamedWorkload& workload,
                                        bench::Products products, int threads, bool cold) {
  const size_t bytes = bench::LayerBytes(workload.model, products.precision) * workload.layers;
  const size_t copies = cold ? bench::CopiesForCold(bytes) : 1;
  cold_in_l3_ |= cold && copies * bytes < 2 * report_.machine.l3_bytes;
  MakeEncoders(workload, products, copies);

  const auto call_of = [&](const Executor& executor) {
    return Take(bench::ForwardCall::Create(
                    {encoders_.begin(), encoders_.begin() + static_cast<std::ptrdiff_t>(copies)},
                    workload.lengths, executor),
                workload.name);
  };
  const std::string expected_of =
      workload.name + "," + made_ + "," + bench::DescribeLengths(workload.lengths);
  const std::string row_name = expected_of + (cold ? ",cold," : ",warm,") + std::to_string(threads);
  const ReportRow* const before = Find(row_name);
  const bool is_new = before == nullptr;
  const auto expect = [&](ConstView y) {
    expected_.assign(y.data(), y.data() + y.dim(0) * y.dim(1));
    expected_of_ = expected_of;
  };
  if (is_new && expected_of != expected_of_ && threads > 1) {
    bench::BindFor(1);
    bench::ForwardCall alone = call_of(Executor::Inline());
    Check(alone.Run(0), workload.name);
    expect(alone.y());
  }
  bench::BindFor(threads);
  const Executor executor = ExecutorFor(threads);
  bench::ForwardCall call = call_of(executor);
  const double first = bench::SecondsOf([&] { Check(call.Run(0), workload.name); });
  if (is_new && expected_of != expected_of_) expect(call.y());  // it was alone
  const size_t bits =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(call.y().data()),
                                     call.y().dim(0) * call.y().dim(1) * sizeof(float)});
  const bool verified = is_new ? Verify(workload, products, call.y()) : before->verified;

  ReportRow row = RowOf(workload, call.tokens(), bytes, cold);
  row.verified = verified;
  return Time({.name = row_name,
               .bits = bits,
               .first_seconds = first,
               .run = [&](size_t i) { Check(call.Run(i), workload.name); },
               .row = std::move(row)},
              products, threads, executor);
}

const ReportRow* BenchMeasurer::Find(const std::string& name) const {
  const auto found = visited_.find(name);
  return found == visited_.end() ? nullptr : &report_.rows[found->second.row];
}

const ReportRow& BenchMeasurer::Time(TimedCall call, bench::Products products, int threads,
                                     const Executor& executor) {
  const auto before = visited_.find(call.name);
  const bool is_new = before == visited_.end();
  ReportRow& row = call.row;
  if (!is_new && call.bits != before->second.bits) {
    throw Failure(row.workload + ": found other bits than in the first visit", kExitCheckFailed);
  }
  const bool from_memory =
      row.weights == "cold" ||
      bench::LevelFor(row.weight_bytes, bench::ReadLevels(threads)).name == "memory";
  double memory = from_memory ? roofs_.MemoryNow(threads) : 0;
  const double seconds_of_visit = seconds_ / kVisits;
  const double warm_up = std::min(seconds_of_visit, kMaxWarmUpSeconds);
  if (call.first_seconds < warm_up) {  // a longer one stays warm
    const double start = bench::WallSeconds();
    while (bench::WallSeconds() - start < warm_up) call.run(next_copy_++);
  }
  // Now, for a slot begins here.
  if (!is_new) before->second.samples.Resume();
  Visited& visited = is_new ? visited_
                                  .emplace(call.name, Visited{report_.rows.size(), call.bits,
                                                              bench::Samples(executor, products)})
                                  .first->second
                            : before->second;
  bench::Samples& samples = visited.samples;
  // The peak is measured outside of the calls' time, and counts as none of the seconds. Power is
  // that of both.
  sensors_.Start();
  const double start = bench::WallSeconds();
  double spent = 0;
  for (size_t calls = 0; calls < kMinCalls || spent < seconds_of_visit; ++calls) {
    ThrowIfStopped();
    const double seconds = bench::SecondsOf([&] { call.run(next_copy_++); });
    spent += seconds;
    samples.Add(seconds);
  }
  visited.sensors.push_back(sensors_.Stop(bench::WallSeconds() - start, bench::CurrentProcessor()));
  samples.Finish();
  if (from_memory) {
    const std::vector<double>& beside = visited.memory;
    visited.memory.push_back(std::max(memory, roofs_.MemoryNow(threads)));
    const auto visits = static_cast<double>(beside.size());
    memory = std::accumulate(beside.begin(), beside.end(), 0.0) / visits;
  }

  SetFigures(samples.all(), products, threads, &row);
  row.slots = samples.SlotMedians(kMostSlots);
  row.sensors = bench::Together(visited.sensors);
  if (row.sensors.watts) {
    const double all = std::accumulate(samples.all().begin(), samples.all().end(), 0.0);
    row.joules = *row.sensors.watts * all / static_cast<double>(samples.count());
  }
  row.roof = roofs_.Applying(row, samples, memory);
  shares_core_ = roofs_.Watch(row, products, samples.PeakFlops()) < kLeastOfPeaks;
  if (is_new) report_.rows.emplace_back();
  return report_.rows[visited.row] = std::move(row);
}

const ReportRow& BenchMeasurer::Add(ReportRow row, bench::Products products, int threads,
                                    const bench::FrameTimes& times, int hz) {
  if (row.server) row.server->calls_per_s = static_cast<double>(times.calls.size()) / times.seconds;
  SetFigures(times.calls, products, threads, &row, row.server ? row.server->calls_per_s : 0);
  std::vector<size_t> ends(times.calls.size());  // a slot is a frame
  std::iota(ends.begin(), ends.end(), size_t{1});
  row.slots = bench::MediansOfSlots(times.calls, ends, kMostSlots);
  row.sensors = sensors_.Stop(times.seconds, bench::CurrentProcessor());
  std::optional<double> p99_9;
  if (row.calls >= 10 * kCallsForP99) p99_9 = bench::Quantile(times.calls, 0.999);
  if (row.server) {
    row.server->p99_9 = p99_9;
  } else {
    row.loop = {.hz = hz,
                .p99_9 = p99_9,
                .late = times.late,
                .minor_faults = times.counts.minor_faults,
                .major_faults = times.counts.major_faults,
                .allocations = times.allocations,
                .voluntary_switches = times.counts.voluntary_switches,
                .involuntary_switches = times.counts.involuntary_switches,
                .control = SecondsOfCalls(times.control)};
  }
  report_.rows.push_back(std::move(row));
  return report_.rows.back();
}

Report BenchMeasurer::Finish() {
  if (StopRequested()) {
    report_.noise.notes.emplace_back("The run was stopped: rows are absent or had half their time");
  }
  const bench::OtherLoad load = bench::LoadBetween(times_, bench::ReadCpuTimes());
  report_.noise.steal_percent = load.steal_percent;
  report_.noise.busy_percent = load.busy_percent;
  roofs_.Finish(&report_);
  const auto throttled =
      std::count_if(report_.rows.begin(), report_.rows.end(),
                    [](const ReportRow& row) { return row.sensors.throttled.value_or(false); });
  if (throttled > 0) {
    report_.noise.notes.push_back("The processor was throttled, by heat or its power limit, in " +
                                  std::to_string(throttled) + " of " +
                                  Counted(report_.rows.size(), "row"));
  }
  if (cold_in_l3_) report_.noise.notes.emplace_back("L3 holds a part of what cold rows read");
  report_.run.seconds = bench::WallSeconds() - start_;
  return std::move(report_);
}

}  // namespace encore::tool
