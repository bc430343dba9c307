// SPDX-License-Identifier: Apache-2.0
//
// `encore report`: all that this machine can do, as JSON or a page: every SIMD target, precision,
// one thread and all. This file has the options and what is measured; measuring is in
// bench_measure, the page in report_page.

#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "encore/cpu.h"
#include "encore/precision.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/commands.h"
#include "tools/encore/failure.h"
#include "tools/encore/progress.h"
#include "tools/encore/report_data.h"
#include "tools/encore/report_pages.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/terminal.h"

namespace encore::tool {
namespace {

constexpr const char* kFooter =
    R"(The best target runs every workload that `encore bench` runs by default, in f32, bf16 and
int8, on one thread and on all; every other target that this machine has runs a few of them with
warm weights. Outputs are checked before they are timed, as `encore bench --help` says, and the JSON
is of the same form. The page needs no other file and no network. --from makes the page of a JSON
file that is there, such as one with rows of other engines that bench/peers/compare.py wrote.

Examples:
  encore report --out report.html
  encore report --quick --json report.json --out report.html
  encore report --from peers.json --out peers.html)";

// Of targets that are not the best, and of --quick.
constexpr const char* kFewWorkloads[] = {"minilm_1x16", "minilm_1x128", "base_1x128"};
constexpr double kSeconds = 0.3;
constexpr double kQuickSeconds = 0.05;

struct Options {
  std::string from;
  std::string json;
  std::string out;
  bool quick = false;
};

struct PlannedRow {
  std::string target;
  bench::NamedWorkload workload;
  Precision precision;
  bool cold;
};

// Target after target, so that each is made active once.
std::vector<PlannedRow> PlannedRows(bool quick) {
  std::vector<PlannedRow> rows;
  const std::vector<std::string> targets = SupportedTargets();
  for (const std::string& target : targets) {
    const bool best = target == targets.front();
    const bool everything = best && !quick;
    for (const bench::NamedWorkload& workload : bench::NamedWorkloads()) {
      bool few = false;
      for (const char* name : kFewWorkloads) few = few || workload.name == name;
      if (!workload.warm_by_default || !(everything || few)) continue;
      for (const Precision precision : {Precision::kF32, Precision::kBF16, Precision::kInt8}) {
        rows.push_back({target, workload, precision, false});
        if (best && workload.cold_by_default) rows.push_back({target, workload, precision, true});
      }
    }
  }
  return rows;
}

Report MeasureAll(bool quick) {
  const int all = UsableCores();
  const std::vector<int> threads = all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
  const std::vector<PlannedRow> rows = PlannedRows(quick);
  BenchMeasurer measurer(quick ? kQuickSeconds : kSeconds);
  Progress progress(StderrIsTerminal(),
                    static_cast<double>(rows.size() * threads.size() * BenchMeasurer::kVisits));
  for (const std::string& target : SupportedTargets()) {
    Check(SetTarget(target));
    for (const int count : threads) measurer.roofs().Measure(count);
    for (int visit = 1; visit <= BenchMeasurer::kVisits; ++visit) {
      for (const PlannedRow& row : rows) {
        if (row.target != target) continue;
        for (const int count : threads) {
          progress.Begin(
              target + ", " + std::string(PrecisionName(row.precision)) + ": " + row.workload.name,
              1);
          measurer.Measure(row.workload, {row.precision}, count, row.cold);
        }
      }
    }
  }
  return measurer.Finish();
}

int Run(const Options& options) {
  if (options.json.empty() && options.out.empty()) {
    throw Failure("found neither --json nor --out, wanted one of them or both");
  }
  WantPageName(options.out, "--out");
  WantOtherFile("--out", options.out, options.json, "the file of --json");
  WantOtherFile("--out", options.out, options.from, "the file of --from");
  WantWritable(options.json, "--json");
  WantWritable(options.out, "--out");
  const Report report = options.from.empty() ? MeasureAll(options.quick) : ReadReport(options.from);
  if (!options.json.empty()) WriteTextFile(options.json, ReportJson(report));
  if (!options.out.empty()) WriteTextFile(options.out, ReportPage(report));
  return kExitOk;
}

}  // namespace

void AddReport(CLI::App& app, Action& action) {
  const auto [sub, options] = AddCommand(
      app, action, "report", "All that this machine can do, as JSON or a page", kFooter, Run);
  CLI::Option* json =
      sub->add_option("--json", options->json, "Write it there as JSON")->type_name("FILE");
  sub->add_option("--out", options->out, "Write it there as a page")->type_name("FILE.html");
  CLI::Option* quick = sub->add_flag("--quick", options->quick, "Fewer workloads and shorter rows");
  sub->add_option("--from", options->from, "Measure nothing; the page of this JSON")
      ->type_name("FILE")
      ->excludes(json, quick);
}

}  // namespace encore::tool
