// SPDX-License-Identifier: Apache-2.0
//
// How evenly calls take their time: one layer's forward pass, call after call, each of them timed,
// in a process of its own, so that the first call is the first thing that threads and caches see
// of it. With --busy N once more beside N processes that only burn time. With --beside-inline each
// call follows one of the same work on the calling thread alone, so that both meet the same
// machine.
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
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/context.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "bench/measure/os.h"
#include "bench/measure/roof_kernels.h"
#include "bench/measure/run_options.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "engine/platform/file_writer.h"
#include "nlohmann/json.hpp"

namespace encore::bench {
namespace {

struct Flags {
  RunOptions run;
  std::vector<std::string> workloads = {"minilm_1x16", "base_1x128"};
  size_t calls = 0;  // 0: the default
  int busy = 0;
  bool beside_inline = false;
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

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  flags.run.threads = {"2"};
  CommandLine line("bench_latency", "Times single calls of encoder blocks.");
  const Command all = line.all();
  all.Add("--workload", &flags.workloads, "As `encore bench --list` has them",
          {.type = "NAME,...", .show_default = true});
  all.Add("--calls", &flags.calls, "Of each; else 10000, of workloads over 1 GFLOP 2000",
          {.range = Range{2, 100'000'000}});
  all.Add("--busy", &flags.busy, "Again with so many busy processes beside it",
          {.range = Range{0, 1024}});
  all.Add("--beside-inline", &flags.beside_inline,
          "Alternates with calls on the calling thread alone");
  all.Add("--json", &flags.json, "Write the figures there, too", {.type = "FILE"});
  flags.run.AddTo(all);
  bool done = false;
  const std::string wrong = line.Read(argc, argv, &done);
  if (!wrong.empty()) Fail(wrong);
  if (done) std::exit(0);
  // Before the work rather than after it; the file itself is not touched yet.
  if (!flags.json.empty()) OrFail(internal::FileWriter::Create(flags.json));
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

// Seconds of so many runs of multiply-adds on one thread, about `wanted` seconds each.
std::vector<double> TimeArithmetic(double wanted, size_t count) {
  std::vector<double> seconds(count);
  InAProcess(seconds, [&](std::span<double> times) {
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
  return seconds;
}

// A row of figures. alone: p50 without the busy processes, in seconds; 0 where there are none.
nlohmann::ordered_json MeasureRow(const NamedWorkload& load, const Flags& flags, int threads,
                                  double alone) {
  const bool large = LayerFlops(load.model, load.lengths) > 1e9;
  const size_t calls = flags.calls > 0 ? flags.calls : large ? 2000 : 10000;
  const int busy = alone > 0 ? flags.busy : 0;
  const size_t stride = flags.beside_inline ? 2 : 1;
  std::vector<double> seconds(stride * calls);
  const BusyProcesses others(busy);
  const long switches = InAProcess(seconds, [&](std::span<double> times) {
    // As a program does when it starts: threads, weights, memory. The first call is the first
    // Forward.
    const Executor executor = OrFail(ExecutorOf(threads));
    const std::vector<Encoder> encoders =
        OrFail(MakeEncoders(load.model, load.layers, 1, {flags.run.precision()}));
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
  const double first = seconds.front();
  std::vector<double> inline_seconds;  // of the calls between them
  if (flags.beside_inline) {
    for (size_t i = 0; i < calls; ++i) {
      inline_seconds.push_back(seconds[2 * i + 1]);
      seconds[i] = seconds[2 * i];
    }
    seconds.resize(calls);
  }
  seconds.erase(seconds.begin());
  const auto at = [&](double q) { return Quantile(seconds, q); };
  const double p50 = at(0.5);

  const std::vector<double> arithmetic = TimeArithmetic(p50, std::min<size_t>(calls, 2000));
  nlohmann::ordered_json row = {
      {"workload", load.name},
      {"precision", flags.run.precision_name},
      {"threads", threads},
      {"busy", busy},
      {"calls", calls},
      {"us_first", first * 1e6},
      {"us_min", at(0) * 1e6},
      {"us_p50", p50 * 1e6},
      {"us_p90", at(0.9) * 1e6},
      {"us_p99", at(0.99) * 1e6},
      {"us_p999", at(0.999) * 1e6},
      {"us_max", at(1) * 1e6},
      {"first_over_p50", first / p50},
      {"p99_over_p50", at(0.99) / p50},
      {"involuntary_switches", switches},  // how often a thread was sent off its core
      {"arithmetic_p99_over_p50", Quantile(arithmetic, 0.99) / Quantile(arithmetic, 0.5)},
      {"arithmetic_us_max", Quantile(arithmetic, 1) * 1e6}};
  for (const auto& [name, q] : {std::pair("p50", 0.5), {"p99", 0.99}}) {
    if (!flags.beside_inline) continue;
    const double beside = Quantile(inline_seconds, q);
    row[std::string("inline_us_") + name] = beside * 1e6;
    row[std::string(name) + "_over_inline"] = at(q) / beside;
  }
  if (busy > 0) {
    const double share = alone * std::max(1.0, static_cast<double>(threads + busy) / UsableCores());
    row["us_share"] = share * 1e6;
    row["max_over_share"] = at(1) / share;  // wanted: 10 at most
    row["calls_over_ten_shares"] =
        std::count_if(seconds.begin(), seconds.end(), [&](double s) { return s > 10 * share; });
  }
  return row;
}

void Print(const nlohmann::ordered_json& row) {
  for (const auto& [name, value] : row.items()) {
    if (value.is_number_float()) {
      std::printf("  %-24s %.2f\n", name.c_str(), value.get<double>());
    } else {
      std::printf("  %-24s %s\n", name.c_str(), value.dump().c_str());
    }
  }
  std::printf("\n");
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
  const std::vector<int> counts = OrFail(flags.run.Apply());
  for (const std::string& name : flags.workloads) {
    if (FindWorkload(name) == nullptr) {
      Fail("--workload: found '" + name + "', wanted a name that `encore bench --list` has");
    }
  }
  nlohmann::ordered_json json = {{"context", nlohmann::ordered_json::object()},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const auto& [name, value] : Context()) {
    std::printf("%-26s %s\n", name.c_str(), value.c_str());
    json["context"][name] = value;
  }
  const auto add = [&](const nlohmann::ordered_json& row) {
    Print(row);
    json["rows"].push_back(row);
  };
  for (const std::string& name : flags.workloads) {
    const NamedWorkload& load = *FindWorkload(name);
    for (const int threads : counts) {
      const nlohmann::ordered_json alone = MeasureRow(load, flags, threads, 0);
      add(alone);
      if (flags.busy == 0) continue;
      add(MeasureRow(load, flags, threads, 1e-6 * alone["us_p50"].get<double>()));
    }
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
