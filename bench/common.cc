// SPDX-License-Identifier: Apache-2.0
//
// Flags, main() and the timing of common.h. Not here: the benchmarks themselves (bench_*.cc).

#include "bench/common.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/measure/context.h"
#include "bench/measure/flags.h"
#include "bench/measure/os.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"

namespace encore::bench {
namespace {

constexpr char kUsage[] =
    "Flags of encore's benchmarks:\n"
    "  --target=NAME      SIMD target, e.g. AVX2 (default: the best one)\n"
    "  --precision=NAME   of whole encoders: f32, bf16 or int8 (default: f32)\n"
    "  --threads=1,2,all  thread counts to measure with (default: 1,all)\n"
    "  --executor=pool|openmp  where more than one thread come from (default: pool)\n"
    "  --idle-spin=US     how long a pool's threads look for the next call before they sleep\n"
    "                     (default: 0)\n"
    "  --cpu=N            core for the runs with one thread, -1 for any (default: the last one)\n"
    "  --clock=wall|cpu   cpu: runs with one thread count only the time that it had the core, for\n"
    "                     machines with other work (default: wall)\n"
    "and those of Google Benchmark:\n";

// The median of samples much shorter than a time slice hardly notices other work. The clock's own
// cost stays under a part in 400: about 25 ns for wall time, 250 ns for a thread's.
constexpr double kWallSampleSeconds = 20e-6;
constexpr double kThreadSampleSeconds = 100e-6;

struct Flags {
  std::vector<int> threads;
  int cpu = -1;
  bool thread_clock = false;
  Precision precision = Precision::kF32;
  bool precision_given = false;
  bool precision_asked = false;
};

Flags& GetFlags() {
  static Flags flags;
  return flags;
}

const CoreMask& GetCores() {
  static const CoreMask cores;
  return cores;
}

// Binds the calling thread as long as it lives, for the runs with one thread. With several the
// calling thread must be free, since those that it starts inherit its mask.
class BoundCall {
 public:
  explicit BoundCall(int threads) {
    if (threads == 1) GetCores().Bind(GetFlags().cpu);
  }
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;
  ~BoundCall() { GetCores().Bind(-1); }
};

bool ReadInt(const std::string& text, int low, int high, int* value) {
  const std::optional<long> parsed = ParseInt(text, low, high);
  if (parsed) *value = static_cast<int>(*parsed);
  return parsed.has_value();
}

// "1,2,all"; "all" is the number of usable cores. Each count once.
bool ParseThreads(const std::string& text, std::vector<int>* threads) {
  threads->clear();
  for (const std::string& item : SplitAtCommas(text)) {
    int count = UsableCores();
    if (item != "all" && !ReadInt(item, 1, 1024, &count)) return false;
    if (std::find(threads->begin(), threads->end(), count) == threads->end())
      threads->push_back(count);
  }
  return true;
}

// Reads and removes encore's own flags; false with a message if one is wrong.
bool ParseFlags(int* argc, char** argv) {
  Flags& flags = GetFlags();
  std::string threads = "1,all";
  ThreadChoice choice;
  int idle_spin = 0;  // us
  flags.cpu = GetCores().Last();
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--target=", 0) == 0) {
      const Status status = SetTarget(arg.substr(9));
      if (!status.ok()) {
        std::fprintf(stderr, "--target: %s\n", status.message().c_str());
        return false;
      }
    } else if (arg.rfind("--precision=", 0) == 0) {
      const Result<Precision> precision = PrecisionFromName(arg.substr(12));
      if (!precision.ok()) {
        std::fprintf(stderr, "--precision: %s\n", precision.status().message().c_str());
        return false;
      }
      flags.precision = *precision;
      flags.precision_given = true;
    } else if (arg.rfind("--threads=", 0) == 0) {
      threads = arg.substr(10);
    } else if (arg.rfind("--cpu=", 0) == 0) {
      if (!ReadInt(arg.substr(6), -1, 1024, &flags.cpu) || !GetCores().Bind(flags.cpu)) {
        std::fprintf(stderr, "--cpu: '%s' is not a core that this process may use, nor -1\n",
                     arg.c_str() + 6);
        return false;
      }
      GetCores().Bind(-1);
    } else if (arg.rfind("--executor=", 0) == 0) {
      const Result<ThreadSource> source = ThreadSourceFromName(arg.substr(11));
      if (!source.ok()) {
        std::fprintf(stderr, "--executor: %s\n", source.status().message().c_str());
        return false;
      }
      choice.source = *source;
    } else if (arg.rfind("--idle-spin=", 0) == 0) {
      if (!ReadInt(arg.substr(12), 0, kMaxIdleSpin, &idle_spin)) {
        std::fprintf(stderr, "--idle-spin: '%s' is not a number from 0 to %d\n", arg.c_str() + 12,
                     kMaxIdleSpin);
        return false;
      }
    } else if (arg == "--clock=wall" || arg == "--clock=cpu") {
      flags.thread_clock = arg == "--clock=cpu";
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  if (!ParseThreads(threads, &flags.threads)) {
    std::fprintf(stderr, "--threads: '%s' is not a list of numbers from 1 to 1024 or 'all'\n",
                 threads.c_str());
    return false;
  }
  if (idle_spin > 0 && choice.source != ThreadSource::kPool) {
    std::fprintf(stderr, "--idle-spin is for --executor=pool\n");
    return false;
  }
  choice.idle_spin = std::chrono::microseconds(idle_spin);
  ChooseThreads(choice);
  return true;
}

using ClockFn = double (*)();

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
    state.counters["GFLOP/s"] = work.flops / median * 1e-9;
    state.counters["best"] = work.flops / best * 1e-9;
    state.counters["peak"] = samples.PeakFlops() * 1e-9;
    state.counters["share"] = samples.Share(work.flops);
    state.counters["best_share"] = work.flops / best / samples.LargestPeakFlops();
  }
  if (work.elements > 0) state.counters["Gelem/s"] = work.elements / median * 1e-9;
  if (work.bytes > 0) state.counters["GB/s"] = work.bytes / median * 1e-9;
  if (work.tokens > 0) state.counters["tokens/s"] = work.tokens / median;
}

}  // namespace

const std::vector<int>& ThreadCounts() { return GetFlags().threads; }

Precision ChosenPrecision() {
  GetFlags().precision_asked = true;
  return GetFlags().precision;
}

void Measure(benchmark::State& state, int threads, const Work& work,
             const std::function<Status(size_t)>& call) {
  const BoundCall bound(threads);
  const Status first = call(0);
  if (!first.ok()) {
    Skip(state, first.message());
    return;
  }
  const bool thread_clock = threads == 1 && GetFlags().thread_clock;
  const ClockFn now = thread_clock ? ThreadSeconds : WallSeconds;
  size_t index = 1;
  const double wanted = thread_clock ? kThreadSampleSeconds : kWallSampleSeconds;
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
  state.counters["threads"] = threads;
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
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

// Returns the exit status: 0, 1 if a benchmark failed, 2 for wrong flags.
int Main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(kUsage, stdout);
      std::fflush(stdout);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (!ParseFlags(&argc, argv)) return 2;
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& [name, value] : Context()) {
    benchmark::AddCustomContext("encore_" + name, value);
  }
  RegisterBenchmarks();
  if (GetFlags().precision_given && !GetFlags().precision_asked) {
    std::fprintf(stderr,
                 "--precision: found a benchmark of f32 alone; whole encoders have others\n");
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return any_failed ? 1 : 0;
}

}  // namespace encore::bench

int main(int argc, char** argv) { return encore::bench::Main(argc, argv); }
