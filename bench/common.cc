// SPDX-License-Identifier: Apache-2.0
//
// Flags, main() and the timing of common.h.

#include "bench/common.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "CLI/CLI.hpp"
#include "bench/measure/context.h"
#include "bench/measure/os.h"
#include "bench/measure/run_options.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"

namespace encore::bench {
namespace {

// The median of samples much shorter than a time slice hardly notices other work. The clock's own
// cost stays under a part in 400: about 25 ns for wall time, 250 ns for a thread's.
constexpr double kWallSampleSeconds = 20e-6;
constexpr double kThreadSampleSeconds = 100e-6;

struct Flags {
  RunOptions run;
  std::vector<int> threads;
  std::string precision = "f32";
  std::string clock = "wall";
  bool precision_asked = false;
};

Flags& GetFlags() {
  static Flags flags;
  return flags;
}

// The fastest of a few calls, in seconds; it also warms the caches.
double EstimateCall(ClockFn now, const std::function<Status(size_t)>& call, size_t* index) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = now();
    (void)call((*index)++).ok();
    best = std::min(best, now() - start);
  }
  return std::max(best, 1e-9);
}

// Calls a sample of the benchmark that is running: chosen once, as Google Benchmark wants the same
// number of iterations in all repetitions. 0: not chosen yet.
size_t* calls_a_sample = nullptr;

// Whether any benchmark has failed; main() then returns 1, so that scripts notice.
bool any_failed = false;

void Skip(benchmark::State& state, const std::string& why) {
  any_failed = true;
  state.SkipWithError(why.c_str());
}

void SetCounters(benchmark::State& state, const Samples& samples, const Work& work) {
  const double median = samples.SecondsAt(0.5);
  const double best = samples.SecondsAt(0);
  if (work.flops > 0) {
    const std::string unit = OperationsName(work.precision);
    state.counters[unit] = work.flops / median * 1e-9;
    state.counters["best_" + unit] = work.flops / best * 1e-9;
    state.counters["peak_" + unit] = samples.PeakFlops() * 1e-9;
    state.counters["share_percent"] = 100 * samples.Share(work.flops);
    state.counters["best_share_percent"] = 100 * work.flops / best / samples.LargestPeakFlops();
  }
  if (work.elements > 0) state.counters["Gelem/s"] = work.elements / median * 1e-9;
  if (work.bytes > 0) state.counters["GB/s"] = work.bytes / median * 1e-9;
  if (work.tokens > 0) state.counters["tokens/s"] = work.tokens / median;
}

}  // namespace

const std::vector<int>& ThreadCounts() { return GetFlags().threads; }

Precision ChosenPrecision() {
  GetFlags().precision_asked = true;
  return *PrecisionFromName(GetFlags().precision);
}

ClockFn ClockOf(int threads) {
  return threads == 1 && GetFlags().clock == "cpu" ? ThreadSeconds : WallSeconds;
}

void Measure(benchmark::State& state, int threads, const Work& work,
             const std::function<Status(size_t)>& call) {
  const BoundThread bound(threads);
  const Status first = call(0);
  if (!first.ok()) {
    Skip(state, first.message());
    return;
  }
  const ClockFn now = ClockOf(threads);
  size_t index = 1;
  const double wanted = now == ThreadSeconds ? kThreadSampleSeconds : kWallSampleSeconds;
  if (*calls_a_sample == 0) {
    *calls_a_sample = static_cast<size_t>(
        std::clamp(std::ceil(wanted / EstimateCall(now, call, &index)), 1.0, 1e5));
  }
  const size_t calls = *calls_a_sample;

  Samples samples(OrFail(ExecutorOf(threads)), {work.precision});
  bool ok = true;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(calls))) {
    const double start = now();
    for (size_t i = 0; i < calls; ++i) ok = call(index++).ok() && ok;
    const double seconds = now() - start;
    state.SetIterationTime(seconds);
    samples.Add(seconds / static_cast<double>(calls));
  }
  if (!ok) {
    Skip(state, "a call failed that had worked before");
    return;
  }
  samples.Finish();
  SetCounters(state, samples, work);
  state.counters["pool_threads"] = threads;  // Google Benchmark has "threads", which is 1
  state.SetLabel(ActiveTarget());
}

void Register(const std::string& name, std::function<void(benchmark::State&)> body) {
  auto run = [body = std::move(body), calls = size_t{0}](benchmark::State& state) mutable {
    calls_a_sample = &calls;
    body(state);
  };
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void Fail(const Status& status) {
  std::cerr << status.message() << "\n";
  std::exit(1);
}

// Returns the exit status: 0, 1 if a benchmark failed, 2 for wrong flags.
int Main(int argc, char** argv) {
  Flags& flags = GetFlags();
  CLI::App line("A benchmark of encore. Precisions other than f32 are for whole encoders.");
  line.add_option("--cpus", flags.run.cpus, "Cores to run on, e.g. 0-7; else all")->delimiter(',');
  line.add_option("--threads", flags.run.threads, "Thread counts; all: as many as usable cores")
      ->delimiter(',');
  line.add_option("--executor", flags.run.executor, "Where threads come from")
      ->check(CLI::IsMember({"pool", "openmp"}));
  line.add_option("--idle-spin", flags.run.idle_spin,
                  "How many us a pool's threads look for the next call before they sleep")
      ->check(CLI::Range(0, kMaxIdleSpin));
  line.add_option("--target", flags.run.target, "SIMD target, e.g. AVX2; else the best");
  const CLI::Option* precision =
      line.add_option("--precision", flags.precision, "What weights and products are in")
          ->check(CLI::IsMember({"f32", "bf16", "int8", "int4"}));
  line.add_option(
          "--clock", flags.clock,
          "cpu: runs with one thread count only the time that it had the core, for machines "
          "with other work")
      ->check(CLI::IsMember({"wall", "cpu"}));
  static char help[] = "--help";  // what Google Benchmark knows
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-h") argv[i] = help;
  }
  if (std::find(argv, argv + argc, std::string("--help")) != argv + argc) {
    std::cout << line.help()
              << "\nNames, counters and their units: docs/benchmarks.md. The flags of "
              << "Google Benchmark:\n"
              << std::flush;
  }
  benchmark::Initialize(&argc, argv);
  const auto wrong = [](const std::string& sentence) {
    std::cerr << sentence << "\n";
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    if (!std::string_view(argv[i]).starts_with("--benchmark_")) continue;
    return wrong(
        std::string(argv[i]) + ": found a flag that this version of Google Benchmark does " +
        "not take, wanted one of --help; before 1.8 --benchmark_min_time has no s at its end");
  }
  try {
    line.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return wrong(error.what());
  }
  const Result<std::vector<int>> threads = flags.run.Apply();
  if (!threads.ok()) return wrong(threads.status().message());
  flags.threads = *threads;
  RegisterBenchmarks();
  if (!precision->empty() && !flags.precision_asked) {
    return wrong("--precision: found " + flags.precision +
                 ", wanted nothing: this benchmark is of f32");
  }
  for (const auto& [name, value] : Context()) {
    benchmark::AddCustomContext("encore_" + name, value);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return any_failed ? 1 : 0;
}

}  // namespace encore::bench

int main(int argc, char** argv) try {
  return encore::bench::Main(argc, argv);
} catch (const std::bad_alloc&) {
  std::fputs("out of memory\n", stderr);
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
  return 1;
}
