// SPDX-License-Identifier: Apache-2.0
//
// How evenly calls take their time: one layer's forward pass, call after call, each of them timed,
// in a process of its own, so that the first call is the first thing that threads and caches see
// of it. With --busy N once more beside N processes that only burn time. With --beside-inline each
// call follows one of the same work on the calling thread alone, so that both meet the same
// machine. Not here: throughput (bench_encoder.cc, `encore bench`).
//
// Beside each row stands "arithmetic": multiply-adds in registers on one thread for as long as a
// median call, again and again. What it loses is lost to the machine: interrupts, other guests,
// other processes.
//
// A call's share: T threads and N busy processes on C cores should each get min(1, C / (T + N)) of
// a core. A call that takes p50 alone then takes p50 * max(1, (T + N) / C): its share. p50 is that
// of the same run without the busy processes.

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/context.h"
#include "bench/measure/flags.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "bench/measure/os.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "engine/kernels/peak.h"
#include "engine/platform/file_writer.h"
#include "nlohmann/json.hpp"

namespace encore::bench {
namespace {

constexpr char kUsage[] =
    "bench_latency: times single calls of encoder blocks.\n"
    "  --workload=NAME,...  as `encore bench --list` has them (default: minilm_1x16,base_1x128)\n"
    "  --calls=N            of each (default: 10000; of workloads over 1 GFLOP 2000)\n"
    "  --threads=N          (default: 2)\n"
    "  --executor=NAME      where they come from, pool or openmp (default: pool)\n"
    "  --idle-spin=US       how long a pool's threads look for the next call before they sleep\n"
    "                       (default: 0)\n"
    "  --busy=N             again with N busy processes beside it (default: 0)\n"
    "  --beside-inline      alternates with calls on the calling thread alone\n"
    "  --precision=NAME     f32, bf16 or int8 (default: f32)\n"
    "  --target=NAME        SIMD target, e.g. AVX2 (default: the best one)\n"
    "  --json=FILE          writes the figures there, too\n";

struct Flags {
  std::vector<const NamedWorkload*> workloads;
  size_t calls = 0;  // 0: the default
  int threads = 2;
  int busy = 0;
  bool beside_inline = false;
  Precision precision = Precision::kF32;
  std::string json;
};

[[noreturn]] void Fail(const std::string& sentence, int status = 2) {
  std::fprintf(stderr, "bench_latency: %s\n", sentence.c_str());
  std::exit(status);
}

template <typename T>
T OrFail(Result<T> result) {
  if (!result.ok()) Fail(result.status().message());
  return *std::move(result);
}

long IntOf(const std::string& flag, const std::string& text, long low, long high) {
  const std::optional<long> value = ParseInt(text, low, high);
  if (!value) {
    Fail(flag + ": found '" + text + "', wanted a number from " + std::to_string(low) + " to " +
         std::to_string(high));
  }
  return *value;
}

std::vector<const NamedWorkload*> ParseWorkloads(const std::string& text) {
  std::vector<const NamedWorkload*> found;
  for (const std::string& name : SplitAtCommas(text)) {
    found.push_back(FindWorkload(name));
    if (found.back() == nullptr) {
      Fail("--workload: found '" + name + "', wanted a name that `encore bench --list` has");
    }
  }
  return found;
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  flags.workloads = ParseWorkloads("minilm_1x16,base_1x128");
  ThreadChoice choice;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (name == "--beside-inline") {
      flags.beside_inline = true;
      continue;
    }
    const size_t equals = name.find('=');
    std::string value;
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (name == "--workload") {
      flags.workloads = ParseWorkloads(value);
    } else if (name == "--calls") {
      flags.calls = static_cast<size_t>(IntOf(name, value, 2, 100'000'000));
    } else if (name == "--threads") {
      flags.threads = static_cast<int>(IntOf(name, value, 1, 1024));
    } else if (name == "--busy") {
      flags.busy = static_cast<int>(IntOf(name, value, 0, 1024));
    } else if (name == "--executor") {
      const Result<ThreadSource> source = ThreadSourceFromName(value);
      if (!source.ok()) Fail("--executor: " + source.status().message());
      choice.source = *source;
    } else if (name == "--idle-spin") {
      choice.idle_spin = std::chrono::microseconds(IntOf(name, value, 0, kMaxIdleSpin));
    } else if (name == "--target") {
      const Status status = SetTarget(value);
      if (!status.ok()) Fail("--target: " + status.message());
    } else if (name == "--precision") {
      const Result<Precision> precision = PrecisionFromName(value);
      if (!precision.ok()) Fail("--precision: " + precision.status().message());
      flags.precision = *precision;
    } else if (name == "--json") {
      flags.json = value;
      // Before the work rather than after it; the file itself is not touched yet.
      OrFail(internal::FileWriter::Create(value));
    } else {
      Fail("unknown flag " + name + "; --help shows them");
    }
  }
  if (choice.source != ThreadSource::kPool && choice.idle_spin.count() > 0) {
    Fail("--idle-spin is for --executor pool");
  }
  ChooseThreads(choice);
  return flags;
}

// Processes that burn time until this object goes, or until their parent is gone.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    const pid_t parent = getpid();
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child < 0) Fail("a busy process cannot be made", 1);
      if (child == 0) Burn(parent);
      children_.push_back(child);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;
  ~BusyProcesses() {
    for (const pid_t child : children_) kill(child, SIGKILL);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }

 private:
  [[noreturn]] static void Burn(pid_t parent) {
    float sink = 0;
    while (getppid() == parent) internal::GetPeakKernels().multiply_adds(1 << 16, &sink);
    _exit(0);
  }

  std::vector<pid_t> children_;
};

// Fills seconds[0 .. n) in a process of its own; returns how often that was sent off a core.
long InAProcess(std::vector<double>& seconds,
                const std::function<void(std::span<double>)>& measure) {
  const size_t bytes = seconds.size() * sizeof(double);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) Fail("no memory for " + std::to_string(seconds.size()) + " times", 1);
  auto* times = static_cast<double*>(shared);
  std::fill_n(times, seconds.size(), 0.0);  // the pages are there before the clock runs
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) Fail("a process cannot be made", 1);
  if (child == 0) {
    measure({times, seconds.size()});
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail("a measuring process failed", 1);
  std::copy_n(times, seconds.size(), seconds.begin());
  munmap(shared, bytes);
  return usage.ru_nivcsw;
}

struct Row {
  std::string workload;
  std::string_view precision = {};
  int threads = 0;
  int busy = 0;
  size_t calls = 0;
  double first = 0;                  // seconds of the first call
  std::vector<double> seconds = {};  // of all others
  long switches = 0;                 // how often a thread was sent off its core
  std::vector<double> arithmetic = {};
  double share = 0;                         // seconds, with busy processes
  std::vector<double> inline_seconds = {};  // of the calls between them

  double At(double q) const { return Quantile(seconds, q); }
  double OverInline(double q) const { return At(q) / Quantile(inline_seconds, q); }
};

Row MeasureRow(const NamedWorkload& load, const Flags& flags, int busy, size_t calls) {
  const int threads = flags.threads;
  Row row{.workload = load.name,
          .precision = PrecisionName(flags.precision),
          .threads = threads,
          .busy = busy,
          .calls = calls};
  const size_t stride = flags.beside_inline ? 2 : 1;
  row.seconds.resize(stride * calls);
  const BusyProcesses others(busy);
  row.switches = InAProcess(row.seconds, [&](std::span<double> times) {
    // As a program does when it starts: threads, weights, memory. The first call is the first
    // Forward.
    const Executor executor = OrFail(ExecutorOf(threads));
    const std::vector<Encoder> encoders =
        OrFail(MakeEncoders(load.model, load.layers, 1, {flags.precision}));
    std::vector<ForwardCall> turns;
    turns.push_back(OrFail(ForwardCall::Create(encoders, load.lengths, executor)));
    if (flags.beside_inline) {
      turns.push_back(OrFail(ForwardCall::Create(encoders, load.lengths, Executor::Inline())));
    }
    // Which of a pair comes first is drawn: a call that slept leaves the next one a longer stay on
    // a core, which in a fixed order always the same of the two would have.
    std::mt19937 random(1);
    bool swapped = false;
    for (size_t i = 0; i < times.size(); ++i) {
      const size_t begin = i - i % stride;
      if (i == begin) swapped = begin > 0 && stride == 2 && random() % 2 == 1;
      const size_t turn = swapped ? 1 - i % stride : i % stride;
      Status status;
      times[begin + turn] = SecondsOf([&] { status = turns[turn].Run(0); });
      if (!status.ok()) Fail(status.message());
    }
  });
  row.first = row.seconds.front();
  if (flags.beside_inline) {
    for (size_t i = 0; i < calls; ++i) {
      row.inline_seconds.push_back(row.seconds[2 * i + 1]);
      row.seconds[i] = row.seconds[2 * i];
    }
    row.seconds.resize(calls);
  }
  row.seconds.erase(row.seconds.begin());

  row.arithmetic.resize(std::min<size_t>(calls, 2000));
  const double wanted = row.At(0.5);
  InAProcess(row.arithmetic, [&](std::span<double> times) {
    const auto multiply_adds = internal::GetPeakKernels().multiply_adds;
    constexpr size_t kProbe = 4096;
    float sink = 0;
    double probe = 1e9;
    for (int i = 0; i < 1000; ++i) {
      probe = std::min(probe, SecondsOf([&] { multiply_adds(kProbe, &sink); }));
    }
    const auto rounds = static_cast<size_t>(wanted / probe * kProbe) + 1;
    for (double& time : times) time = SecondsOf([&] { multiply_adds(rounds, &sink); });
  });
  return row;
}

nlohmann::ordered_json ToJson(const Row& row) {
  const double p50 = row.At(0.5);
  const double arithmetic = Quantile(row.arithmetic, 0.5);
  nlohmann::ordered_json json = {
      {"workload", row.workload},
      {"precision", row.precision},
      {"threads", row.threads},
      {"busy", row.busy},
      {"calls", row.calls},
      {"us_first", row.first * 1e6},
      {"us_min", row.At(0) * 1e6},
      {"us_p50", p50 * 1e6},
      {"us_p90", row.At(0.9) * 1e6},
      {"us_p99", row.At(0.99) * 1e6},
      {"us_p999", row.At(0.999) * 1e6},
      {"us_max", row.At(1) * 1e6},
      {"first_over_p50", row.first / p50},
      {"p99_over_p50", row.At(0.99) / p50},
      {"involuntary_switches", row.switches},
      {"arithmetic_p99_over_p50", Quantile(row.arithmetic, 0.99) / arithmetic},
      {"arithmetic_us_max", Quantile(row.arithmetic, 1) * 1e6}};
  if (!row.inline_seconds.empty()) {
    json["inline_us_p50"] = Quantile(row.inline_seconds, 0.5) * 1e6;
    json["inline_us_p99"] = Quantile(row.inline_seconds, 0.99) * 1e6;
    json["p50_over_inline"] = row.OverInline(0.5);
    json["p99_over_inline"] = row.OverInline(0.99);
  }
  if (row.busy > 0) {
    json["us_share"] = row.share * 1e6;
    json["max_over_share"] = row.At(1) / row.share;
    json["calls_over_ten_shares"] = std::count_if(row.seconds.begin(), row.seconds.end(),
                                                  [&](double s) { return s > 10 * row.share; });
  }
  return json;
}

void Print(const nlohmann::ordered_json& row) {
  const auto number = [&](const char* key) { return row[key].get<double>(); };
  std::printf("%s, %s, %d threads, %d busy processes, %d calls\n",
              row["workload"].get<std::string>().c_str(),
              row["precision"].get<std::string>().c_str(), row["threads"].get<int>(),
              row["busy"].get<int>(), row["calls"].get<int>());
  std::printf("  us: first %.1f  min %.1f  p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n",
              number("us_first"), number("us_min"), number("us_p50"), number("us_p90"),
              number("us_p99"), number("us_p999"), number("us_max"));
  std::printf("  first/p50 %.2f  p99/p50 %.2f  sent off a core %d times\n",
              number("first_over_p50"), number("p99_over_p50"),
              row["involuntary_switches"].get<int>());
  std::printf("  arithmetic of that length on one thread: p99/p50 %.2f  max %.1f us\n",
              number("arithmetic_p99_over_p50"), number("arithmetic_us_max"));
  if (row.contains("inline_us_p50")) {
    std::printf("  inline between them: p50 %.1f  p99 %.1f us; over inline's: p50 %.3f  p99 %.3f\n",
                number("inline_us_p50"), number("inline_us_p99"), number("p50_over_inline"),
                number("p99_over_inline"));
  }
  if (row.contains("us_share")) {
    std::printf("  share %.1f us  max/share %.2f (wanted: 10 at most)  calls over 10 shares: %d\n",
                number("us_share"), number("max_over_share"),
                row["calls_over_ten_shares"].get<int>());
  }
  std::fflush(stdout);
}

void WriteJson(const std::string& path, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(1) + "\n";
  internal::FileWriter writer = OrFail(internal::FileWriter::Create(path));
  Status status = writer.Write(std::as_bytes(std::span(text)));
  if (status.ok()) status = writer.Commit();
  if (!status.ok()) Fail("--json: " + status.message());
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  nlohmann::ordered_json json = {{"context", nlohmann::ordered_json::object()},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const auto& [name, value] : Context()) {
    std::printf("%-12s %s\n", name.c_str(), value.c_str());
    json["context"][name] = value;
  }
  for (const NamedWorkload* load : flags.workloads) {
    const bool large = LayerFlops(load->model, load->lengths) > 1e9;
    const size_t calls = flags.calls > 0 ? flags.calls : large ? 2000 : 10000;
    Row alone = MeasureRow(*load, flags, 0, calls);
    json["rows"].push_back(ToJson(alone));
    Print(json["rows"].back());
    if (flags.busy == 0) continue;
    Row busy = MeasureRow(*load, flags, flags.busy, calls);
    const double demand = static_cast<double>(flags.threads + flags.busy) / UsableCores();
    busy.share = alone.At(0.5) * std::max(1.0, demand);
    json["rows"].push_back(ToJson(busy));
    Print(json["rows"].back());
  }
  if (!flags.json.empty()) WriteJson(flags.json, json);
  return 0;
}

}  // namespace
}  // namespace encore::bench

int main(int argc, char** argv) try { return encore::bench::Main(argc, argv); } catch (...) {
  std::fputs("bench_latency: out of memory\n", stderr);
  return 1;
}
