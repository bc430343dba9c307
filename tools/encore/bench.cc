// SPDX-License-Identifier: Apache-2.0
//
// `encore bench`: how fast blocks are on this machine. This file has the options and the order of
// things; measuring is in bench_measure, tables and JSON in bench_report.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/context.h"
#include "bench/measure/models.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/executor.h"
#include "engine/platform/file_writer.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/bench_report.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/model_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(One call is the forward pass of one layer, with weights packed beforehand. One thread is the
calling one, bound to a core meanwhile; more are a ThreadPool's, made once, which run on any core
and sleep between calls unless --idle-spin says otherwise. With --executor openmp they are OpenMP's,
which sleep between calls unless OMP_WAIT_POLICY=active is set, and run on any core unless
OMP_PROC_BIND=true is. A sequence of S tokens takes 8 S d^2 + 4 S d d_ff + 4 S^2 d operations,
whatever softmax, norms and activation take. Figures of different runs compare by share, better
still by runs that alternate. Two threads whose peak is that of one share a core, as virtual
machines may let them.

The JSON file has a "context" and "rows", one for each workload, thread count, warm or cold:
workload, precision, threads, cold, us_min, us_median, us_p99, gflops, peak_gflops, share,
gbytes_per_s, target, tokens_per_s, calls, and the workload's sizes. It is written at the end, whole
or not at all.

Examples:
  encore bench
  encore bench --list
  encore bench --workload base_1x16,base_1x128 --threads 1 --cold --json bench.json
  encore bench --target AVX2 --workload base_8x128 --seconds 2
  encore bench --workload minilm_1x16 --threads 2 --idle-spin 200
  encore bench --workload custom --d-model 390 --heads 6 --d-ff 1000 --seq 129 --warm)";

constexpr double kMaxSeconds = 600;

struct Options {
  std::vector<std::string> workloads;
  std::string precision = "f32";
  std::vector<int> threads;
  std::string executor = "pool";
  int idle_spin = 0;  // us
  bool cold = false;
  bool warm = false;
  std::string target;
  double seconds = 0.5;
  std::string json;
  bool list = false;
  ModelOptions model;
  std::vector<CLI::Option*> model_options;
};

std::vector<bench::NamedWorkload> ChosenWorkloads(const Options& options) {
  std::vector<bench::NamedWorkload> chosen;
  for (const std::string& name : options.workloads) {
    const bench::NamedWorkload* named = bench::FindWorkload(name);
    if (named == nullptr && name != "custom") {
      throw Failure("--workload: found '" + Printable(name) +
                    "', wanted custom or a name that `encore bench --list` shows");
    }
    chosen.push_back(named != nullptr ? *named : options.model.Workload());
  }
  const bool custom = std::count(options.workloads.begin(), options.workloads.end(), "custom") > 0;
  for (const CLI::Option* option : options.model_options) {
    if (option->count() > 0 && !custom) {
      throw Failure(option->get_name() + " is for --workload custom, which was not asked for");
    }
  }
  for (const bench::NamedWorkload& workload : bench::NamedWorkloads()) {
    if (options.workloads.empty() && workload.is_default) chosen.push_back(workload);
  }
  return chosen;
}

bench::ThreadChoice ChosenSource(const Options& options) {
  const bench::ThreadSource source =
      Take(bench::ThreadSourceFromName(options.executor), "--executor");
  if (options.idle_spin > 0 && source != bench::ThreadSource::kPool) {
    throw Failure("--idle-spin is for --executor pool, found " + options.executor);
  }
  return {.source = source, .idle_spin = std::chrono::microseconds(options.idle_spin)};
}

std::vector<int> ChosenCounts(const Options& options, bench::ThreadSource source) {
  const bool openmp = source == bench::ThreadSource::kOpenMp;
  if (options.threads.empty()) {
    const int all = openmp ? Executor::OpenMP().threads() : UsableCores();
    return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
  }
  for (const int threads : options.threads) {
    const int given = openmp ? Executor::OpenMP(threads).threads() : threads;
    if (given < threads) {
      throw Failure("--threads: found " + std::to_string(threads) +
                    ", wanted as many as OpenMP gives here at most, " + std::to_string(given));
    }
  }
  return options.threads;
}

void WriteWhole(const std::string& path, const std::string& text) {
  internal::FileWriter writer = Take(internal::FileWriter::Create(path), "--json");
  Check(writer.Write(std::as_bytes(std::span(text))), "--json");
  Check(writer.Commit(), "--json");
}

int Run(const Options& options) {
  if (options.list) {
    PrintWorkloads(std::cout);
    return kExitOk;
  }
  if (!(options.seconds >= 0 && options.seconds <= kMaxSeconds)) {
    throw Failure("--seconds is " + Number(options.seconds, 2) + ", wanted 0 to " +
                  Number(kMaxSeconds, 0));
  }
  const std::vector<bench::NamedWorkload> workloads = ChosenWorkloads(options);
  const bench::ThreadChoice choice = ChosenSource(options);
  const std::vector<int> threads = ChosenCounts(options, choice.source);
  bench::ChooseThreads(choice);
  if (!options.target.empty()) Check(SetTarget(options.target), "--target");
  // Before the work rather than after it; what is there stays as it is until the end.
  if (!options.json.empty()) Take(internal::FileWriter::Create(options.json), "--json");

  const BenchContext context = bench::Context();
  PrintBenchHead(std::cout, context);
  const Precision precision = Take(PrecisionFromName(options.precision), "--precision");
  BenchMeasurer measurer(options.seconds, precision);
  std::vector<BenchRow> rows;
  for (const bench::NamedWorkload& workload : workloads) {
    for (const bool cold : {false, true}) {
      if (options.cold != options.warm && options.cold != cold) continue;
      for (const int count : threads) {
        rows.push_back(measurer.Measure(workload, count, cold));
        PrintBenchRow(std::cout, rows.back());
      }
    }
  }
  if (!options.json.empty()) WriteWhole(options.json, BenchJson(context, rows));
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("bench", "How fast blocks are here, beside the machine's peak");
  sub->add_option("--workload", options->workloads,
                  "What to measure (--list shows what there is), or custom; else a standard set")
      ->delimiter(',')
      ->type_name("NAME,...");
  sub->add_option("--precision", options->precision, "What weights and products are in")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->capture_default_str();
  sub->add_option("--threads", options->threads, "Thread counts; else 1 and all usable cores")
      ->delimiter(',')
      ->check(ThreadCount())
      ->type_name("N,...");
  sub->add_option("--executor", options->executor, "Where threads come from: pool or openmp")
      ->check(CLI::IsMember({"pool", "openmp"}))
      ->capture_default_str();
  sub->add_option("--idle-spin", options->idle_spin,
                  "How long a pool's threads look for the next call before they sleep")
      ->check(CLI::Range(0, bench::kMaxIdleSpin))
      ->capture_default_str()
      ->type_name("US");
  sub->add_flag("--warm", options->warm, "Only with weights in cache, as far as they fit");
  sub->add_flag("--cold", options->cold, "Only with weights from memory");
  sub->add_option("--target", options->target, "SIMD target, e.g. AVX2; else the best")
      ->type_name("NAME");
  sub->add_option("--seconds", options->seconds, "How long each row is measured; 3 calls at least")
      ->capture_default_str();
  sub->add_option("--json", options->json, "Write the rows there, too")->type_name("FILE");
  sub->add_flag("--list", options->list, "Show the workloads and exit");
  options->model_options = options->model.AddTo(*sub);
  sub->footer(kFooter);
  sub->callback([options, &action] { action = [options] { return Run(*options); }; });
}

}  // namespace encore::tool
