// SPDX-License-Identifier: Apache-2.0
//
// `encore bench`: how fast blocks, or a folder's model, are on this machine. This file has the
// options and the order of things; measuring is in bench_measure, bench_texts and bench_roofs,
// tables in bench_table, JSON in report_data.

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/context.h"
#include "bench/measure/models.h"
#include "bench/measure/run_options.h"
#include "bench/measure/threads.h"
#include "tools/encore/bench_deadline.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/bench_roofs.h"
#include "tools/encore/bench_table.h"
#include "tools/encore/bench_texts.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/report_data.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kBenchFooter =
    R"(One call is the forward pass of one layer, or of a whole model where the name says so, with
weights packed beforehand. One thread is the calling one, bound to a core meanwhile; more are a
ThreadPool's, made once, which run on any core and sleep between calls unless --idle-spin says
otherwise. With --executor openmp they are OpenMP's, which wait between calls as OMP_WAIT_POLICY
says, and run on any core unless OMP_PROC_BIND=true is set. A sequence of S
tokens takes 8 S d^2 + 4 S d d_ff + 4 S^2 d operations a layer, whatever softmax, norms and
activation take. The roof that applies is the one under which the work takes longer: its operations
at the peak of multiply-adds, or its weights at the bandwidth of the cache that holds them, or of
memory. Figures of different runs compare by share, better still by runs that alternate. If two
threads together reach the peak of only one, they share a core (common on virtual machines): such
rows have a *, and a note below says so.

Each row is measured twice for half of its time, with all others in between: what slows a machine
for some seconds then shows within the row, and `python -m pyencore.lab compare` allows for it. Rows
are printed as they are done, in the second half.

--model takes a model's folder and measures texts to vectors (or scores, or logits): one query
again and again, and 64 texts in one call, or the texts of a file; in every precision unless
--precision says which. Tokenizing counts. Opening has a table of its own: the time with packing and
with packed weights in a folder, the first call, and memory. Files are read before that.

--loop keeps a model in a loop with a deadline: in each frame one text, one of four sentences of 17
words or of --texts, and then 0.5 ms of integer work, the control. --budget searches for the most
tokens of one text whose p99 is within a time, by calls of so many tokens, one after another or in
the frames of --loop. Both open the model with its files in memory (FileMemory::kCopied), and warm
up first. One thread is bound to a core. Allocations are calls of operator new, which the command
counts; larger buffers come from the C library alone, and show as faults.

--rate runs as many copies of a layer, or of --model on one text a call, as --threads says, each on
a core, with weights and memory of its own: what a server computes, beside one copy. --load lets
calls arrive by Poisson's process, the same one each time, and times them from their arrival, so
that a call that waits for a slow one counts as slow too. --rate --budget searches for the highest
load, in percent of the rate, whose p99 is within the time.

Before a row is timed, the model's layers are checked on four tokens against a reference in double
precision, and the row's output against the one of the calling thread alone, bit for bit.

JSON is what python/pyencore/lab/report.schema.json describes: machine, build, roofs, noise, and a
row for each line. A file is written at the end, whole or not at all. The end may be Ctrl-C: rows
that were measured are kept, with a note that it was stopped.

Examples:
  encore bench
  encore bench --list
  encore bench --model all-MiniLM-L6-v2
  encore bench --model all-MiniLM-L6-v2 --precision f32,int8 --threads 1,2,4 --format markdown
  encore bench --model all-MiniLM-L6-v2 --loop 60 --seconds 20 --executor inline
  encore bench --model all-MiniLM-L6-v2 --budget 16ms
  encore bench --model all-MiniLM-L6-v2 --load 50,80,95 --budget 20ms
  encore bench --workload base_1x16,base_1x128 --threads 1 --cold --json bench.json
  encore bench --target AVX2 --workload base_8x128 --seconds 2
  encore bench --workload minilm_1x16 --threads 2 --idle-spin 200
  encore bench --workload base_1x128 --cpus 0-15,no-smt --threads 1..all --warm --json scaling.json
  encore bench --workload custom --d-model 390 --heads 6 --d-ff 1000 --seq 129 --warm)";

struct BenchOptions {
  std::vector<std::string> workloads;
  bench::RunOptions run;
  std::vector<std::string> precisions = {"f32"};
  bool amx_bf16 = false;
  bool cold = false;
  bool warm = false;
  std::optional<double> seconds;
  Option precision_option;
  std::string folder;  // of a model; empty: workloads
  std::string texts;
  std::optional<int> loop;  // Hz
  bool rate = false;
  std::vector<size_t> loads;  // percent
  std::string budget;
  std::string format = "table";
  std::string json;
  bool list = false;
  ModelOptions model;
  std::vector<Option> model_options;
  std::vector<Option> text_options;
};

// A query's p99 wants more calls.
constexpr double kSeconds = 0.5;
constexpr double kSecondsOfTexts = 2;
constexpr double kSecondsOfLoop = 10;

BenchKind KindOf(const BenchOptions& options) {
  if (options.rate || !options.loads.empty()) return BenchKind::kServer;
  if (!options.budget.empty()) return BenchKind::kBudget;
  if (options.loop) return BenchKind::kLoop;
  return options.folder.empty() ? BenchKind::kLayers : BenchKind::kTexts;
}

double SecondsOf(const BenchOptions& options) {
  const bool queue =
      KindOf(options) == BenchKind::kServer && (!options.loads.empty() || !options.budget.empty());
  const double seconds = options.loop || queue    ? kSecondsOfLoop
                         : options.folder.empty() ? kSeconds
                                                  : kSecondsOfTexts;
  return options.seconds.value_or(seconds);
}

// Each once, in their order.
std::vector<Precision> ChosenPrecisions(const BenchOptions& options) {
  std::vector<Precision> chosen;
  for (const std::string& name : options.precisions) {
    const Precision precision = *PrecisionFromName(name);
    if (std::count(chosen.begin(), chosen.end(), precision) == 0) chosen.push_back(precision);
  }
  return chosen;
}

struct ChosenRow {
  bench::NamedWorkload workload;
  bool cold;
};

std::vector<ChosenRow> ChosenRows(const BenchOptions& options) {
  std::vector<ChosenRow> chosen;
  const auto choose = [&](const bench::NamedWorkload& workload, bool warm, bool cold) {
    if (warm) chosen.push_back({workload, false});
    if (cold) chosen.push_back({workload, true});
  };
  const bool server = KindOf(options) == BenchKind::kServer;
  const bool both = options.cold == options.warm && !server;
  std::set<std::string> seen;
  for (const std::string& name : options.workloads) {
    if (!seen.insert(name).second) continue;
    const bench::NamedWorkload* named = bench::FindWorkload(name);
    if (named == nullptr && name != "custom") {
      throw Failure("--workload: found '" + Printable(name) +
                    "', wanted custom or a name that `encore bench --list` shows");
    }
    choose(named != nullptr ? *named : options.model.Workload(), both || server || options.warm,
           both || options.cold);
  }
  const bool custom = std::count(options.workloads.begin(), options.workloads.end(), "custom") > 0;
  for (const Option& option : options.model_options) {
    if (option.given() && !custom) {
      throw Failure(option.name() + " is for --workload custom, which was not asked for");
    }
  }
  for (const bench::NamedWorkload& workload : bench::NamedWorkloads()) {
    if (!options.workloads.empty() || !workload.warm_by_default) continue;
    choose(workload, both || server || options.warm,
           both ? workload.cold_by_default : options.cold);
  }
  return chosen;
}

// What is measured: workloads, or a folder's model on texts in each precision.
class BenchRows {
 public:
  BenchRows(const BenchOptions& options, BenchMeasurer* measurer)
      : options_(options), measurer_(measurer) {
    if (KindOf(options) != BenchKind::kLayers && KindOf(options) != BenchKind::kTexts) {
      deadline_ = {.server = KindOf(options) == BenchKind::kServer,
                   .loads = options.loads,
                   .hz = options.loop.value_or(0),
                   .seconds = SecondsOf(options)};
      if (!options.budget.empty()) deadline_->budget = SecondsOfBudget(options.budget);
    }
    if (options.folder.empty()) {
      precisions_ = ChosenPrecisions(options);
      chosen_ = ChosenRows(options);
      return;
    }
    std::vector<Precision> precisions;
    if (options.precision_option.given()) precisions = ChosenPrecisions(options);
    OpenOptions open = {.amx_bf16 = options.amx_bf16};
    if (!deadline_) {
      texts_ = TextWorkloads(options.texts);
    } else {
      texts_ = {{options.budget.empty() ? "loop" : "search", SentencesOfLoop(options.texts)}};
      open.weights = FileMemory::kCopied;
    }
    model_.emplace(options.folder, std::move(precisions), open);
    precisions_ = model_->precisions();
    if (!deadline_) model_->MeasureCachedOpening();
  }

  int visits() const { return deadline_ ? 1 : BenchMeasurer::kVisits; }
  size_t count() const { return precisions_.size() * of_precision(); }
  std::string Name(size_t i) const {
    const size_t place = i % of_precision();
    return model_ ? texts_[place].name : chosen_[place].workload.name;
  }
  std::vector<ReportRow> Measure(size_t i, int threads) {
    const size_t precision = i / of_precision();
    const size_t place = i % of_precision();
    const auto copies = static_cast<size_t>(threads);
    if (!model_) {
      const ChosenRow& row = chosen_[place];
      const bench::Products products = {precisions_[precision], options_.amx_bf16};
      if (deadline_) return MeasureServer(row.workload, products, *deadline_, copies, measurer_);
      return {measurer_->Measure(row.workload, products, threads, row.cold)};
    }
    const TextWorkload& texts = texts_[place];
    if (!deadline_) return {model_->Measure(texts, precision, threads, measurer_)};
    if (deadline_->server) {
      return MeasureServer(*model_, *deadline_, texts.texts, precision, copies, measurer_);
    }
    return {MeasureDeadline(*model_, *deadline_, texts.texts, precision, threads, measurer_)};
  }

 private:
  size_t of_precision() const { return model_ ? texts_.size() : chosen_.size(); }

  const BenchOptions& options_;
  BenchMeasurer* measurer_;
  std::vector<Precision> precisions_;  // of each of those below
  std::vector<ChosenRow> chosen_;
  std::vector<TextWorkload> texts_;
  std::optional<BenchModel> model_;
  std::optional<Deadline> deadline_;
};

void PrintNoise(std::ostream& out, const ReportRun& run, const ReportNoise& noise) {
  const auto percent = [](double value) {
    return value < 0 ? std::string("an unknown part") : Number(value, 1) + " %";
  };
  out << "\nNoise: other processes took " << percent(noise.busy_percent)
      << " of all cores' time, the hypervisor " << percent(noise.steal_percent)
      << "; one thread's peak varied by " << percent(noise.peak_drift_percent);
  // 0: not measured.
  if (noise.memory_drift_percent > 0) {
    out << ", memory's bandwidth by " << percent(noise.memory_drift_percent);
  }
  out << ".\n";
  for (const std::string& note : noise.notes) out << note << ".\n";
  if (run.idle_watts) {
    out << "Energy of " << run.energy_source << "; idle: " << Number(*run.idle_watts, 1) << " W.\n";
  }
}

// Machine, build and threads: lines, or one line above a table of Markdown.
void PrintContext(std::ostream& out, bool lines) {
  if (lines) out << "encore bench\n";
  std::string together = "encore";
  for (const auto& [name, value] : bench::Context()) {
    if (lines) out << "  " << PadRight(name, 13) << value << "\n";
    together.append(name == "version" ? " " : "; " + name + ": ").append(value);
  }
  if (!lines) out << together << "\n\n";
  out.flush();
}

// The workloads there are: names, sizes, operations.
void PrintWorkloads(std::ostream& out) {
  constexpr size_t kWidth = 27;  // "modernbert_22_layers_1x512"
  out << PadRight("workload", kWidth) << PadRight("d_model, heads, d_ff", 24)
      << PadRight("sequences x tokens", 20) << PadLeft("GFLOP", 9) << "\n";
  for (const bench::NamedWorkload& load : bench::NamedWorkloads()) {
    const bench::Model& model = load.model;
    out << PadRight(load.name, kWidth)
        << PadRight(std::to_string(model.d_model) + ", " + std::to_string(model.heads) + ", " +
                        std::to_string(model.d_ff) + ", " +
                        std::string(ActivationName(model.activation)),
                    24)
        << PadRight(bench::DescribeLengths(load.lengths), 20)
        << PadLeft(Number(bench::StackFlops(model, load.lengths, load.layers) * 1e-9, 3), 9)
        << (load.warm_by_default ? "" : "  by name only") << "\n";
  }
  out << PadRight("custom", kWidth)
      << "sizes from --d-model, --heads, --d-ff, --batch and --seq or "
         "--lengths\n";
}

int RunBench(const BenchOptions& options) {
  if (options.list) {
    PrintWorkloads(std::cout);
    return kExitOk;
  }
  const BenchKind kind = KindOf(options);
  if (options.folder.empty()) {
    for (const Option& option : options.text_options) {
      const bool of_server = kind == BenchKind::kServer && option.name() == "--budget";
      if (option.given() && !of_server)
        throw Failure(option.name() + " is for --model, which was not given");
    }
  }
  if (kind == BenchKind::kBudget && !options.texts.empty()) {
    throw Failure("--budget excludes --texts, but for --rate");
  }
  if (!options.budget.empty()) (void)SecondsOfBudget(options.budget);
  const double seconds = SecondsOf(options);
  CheckSeconds(seconds);
  (void)ChosenRows(options);  // names what is wrong before anything is opened
  const std::vector<int> threads = Take(options.run.Apply());
  WantWritable(options.json, "--json");
  CatchStopSignals();

  const bool table = options.format == "table";
  const bool json = options.format == "json";
  BenchMeasurer measurer(seconds);
  BenchRows rows(options, &measurer);
  if (!json) PrintContext(std::cout, table);
  const auto visits = static_cast<size_t>(rows.visits());
  Progress progress(StderrIsTerminal(),
                    static_cast<double>((1 + rows.count() * visits) * threads.size()));
  const bool roofs = kind == BenchKind::kLayers || kind == BenchKind::kTexts;
  for (const int count : threads) {
    if (!roofs) break;
    progress.Begin("roofs", 1);
    measurer.roofs().Measure(count);
  }
  progress.Clear();
  const BenchTable printed(kind, ChosenPrecisions(options));
  if (table) {
    if (roofs) PrintRoofs(std::cout, measurer.roofs().roofs());
    printed.PrintHead(std::cout);
  }
  size_t shown = 0;
  try {
    for (size_t visit = 1; visit <= visits; ++visit) {
      for (size_t i = 0; i < rows.count(); ++i) {
        for (const int count : threads) {
          progress.Begin(rows.Name(i), 1);
          const std::vector<ReportRow> measured = rows.Measure(i, count);
          progress.Clear();
          for (const ReportRow& row : measured) {
            if (visit == visits && table) printed.PrintRow(std::cout, row, measurer.shares_core());
          }
          if (visit == visits) shown += measured.size();
        }
      }
    }
  } catch (const Stopped&) {
    progress.Clear();
  }
  const Report report = measurer.Finish();
  if (StopRequested() && report.rows.empty()) throw Failure("stopped before a row was measured");
  for (; table && shown < report.rows.size(); ++shown) {  // those of a run that was stopped
    printed.PrintRow(std::cout, report.rows[shown], false);
  }
  if (!table && !json) printed.PrintAsMarkdown(std::cout, report.rows);
  if (!json && kind == BenchKind::kTexts) printed.PrintOpenings(std::cout, report.rows, !table);
  if (json) {
    std::cout << ReportJson(report);
  } else {
    PrintNoise(std::cout, report.run, report.noise);
  }
  if (!options.json.empty()) WriteTextFile(options.json, ReportJson(report));
  if (!StopRequested()) return kExitOk;
  throw Failure("stopped; rows that were measured before are shown", kExitIncomplete);
}

void AddRunOptions(const Command& command, bench::RunOptions* run) {
  command.Add("--cpus", &run->cpus,
              "Cores to run on, e.g. 0-7, or parts: no-smt, p-cores, e-cores, node0; else all",
              {.type = "LIST"});
  command.Add("--threads", &run->threads,
              "Thread counts; all: as many as usable cores; 1..all: each number up to that",
              {.type = "N,...", .show_default = true});
  command.Add("--executor", &run->executor,
              "Where threads come from: pool or openmp; inline: one thread",
              {.show_default = true, .one_of = {"pool", "openmp", "inline"}});
  command.Add("--idle-spin", &run->idle_spin,
              "How long a pool's threads look for the next call before they sleep",
              {.type = "US", .show_default = true, .range = Range{0, bench::kMaxIdleSpin}});
  command.Add("--target", &run->target, "SIMD target, e.g. AVX2; else the best", {.type = "NAME"});
}

}  // namespace

void AddBench(CommandLine& line, Action& action) {
  const auto [command, options] =
      AddCommand(line, action, "bench", "How fast layers are here, beside the machine's peak",
                 kBenchFooter, RunBench);
  const Option workload =
      command.Add("--workload", &options->workloads,
                  "What to measure (--list shows what there is), or custom; else a standard set",
                  {.type = "NAME,..."});
  const Option folder =
      command.Add("--model", &options->folder, "A model's folder, to be measured on texts",
                  {.type = "FOLDER", .excludes = {workload}});
  const Option texts =
      command.Add("--texts", &options->texts,
                  "Texts for --model, one per line; default: built-in texts", {.type = "FILE"});
  const Option loop = command.Add(
      "--loop", &options->loop,
      "A text of --model in each frame of a loop, so many a second; 0: one after another",
      {.type = "HZ", .range = Range{0, 1000}});
  const Option budget =
      command.Add("--budget", &options->budget,
                  "How many tokens of one text --model computes within a time at p99, e.g. 16ms",
                  {.type = "TIME"});
  options->text_options = {texts, loop, budget};
  const Option rate =
      command.Add("--rate", &options->rate,
                  "What as many copies of the model as --threads compute, one thread each; with "
                  "--budget also the highest rate of arrivals whose p99 is within it",
                  {.excludes = {loop}});
  const Option load = command.Add(
      "--load", &options->loads,
      "--rate, and latency while calls arrive at random, at shares of it, e.g. 50,80,95",
      {.type = "PERCENT,...", .range = Range{1, 200}, .excludes = {loop}});
  AddRunOptions(command, &options->run);
  options->precision_option = command.Add(
      "--precision", &options->precisions, "What weights and products are in, e.g. f32,int8",
      {.type = "NAME", .show_default = true, .one_of = {"f32", "bf16", "int8", "int4"}});
  command.Add("--amx-bf16", &options->amx_bf16, kAmxBf16Help);
  command.Add("--warm", &options->warm, "Only with weights in cache, as far as they fit",
              {.excludes = {folder}});
  command.Add("--cold", &options->cold, "Only with weights from memory",
              {.excludes = {folder, rate, load}});
  command.Add(
      "--seconds", &options->seconds,
      "Seconds per row (default 0.5, 2 with --model, 10 with --loop and --load); at least 4 calls");
  command.Add("--json", &options->json, "Write the rows there, too", {.type = "FILE"});
  command.Add("--format", &options->format, "What is printed: table, markdown or json",
              {.show_default = true, .one_of = {"table", "markdown", "json"}});
  command.Add("--list", &options->list, "Show the workloads and exit");
  options->model_options = options->model.AddTo(command);
}

}  // namespace encore::tool
