// SPDX-License-Identifier: Apache-2.0
//
// Rows of `encore bench --loop`, `--budget` and `--rate`: a folder's model in a loop with a
// deadline, how many tokens of one text fit into a time, and copies of a model as a server.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/frames.h"
#include "bench/measure/models.h"
#include "bench/measure/peak.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/bench_texts.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

struct Deadline {
  bool server = false;
  std::vector<size_t> loads = {};  // of a server: arrivals, in percent of what it can do
  int hz = 0;                      // of the frames; 0: back to back
  // Seconds that p99 may be; nothing: texts as they are, no search.
  std::optional<double> budget = {};
  double seconds = 0;  // of a row
};

// "16ms" or "500us": whole numbers, up to ten seconds. Throws Failure, naming --budget.
double SecondsOfBudget(const std::string& text);

// Sentences of 17 words, or the texts of the file if a path is given. Throws Failure.
std::vector<std::string> SentencesOfLoop(const std::string& path);

// Adds a row: frames of one text each, in turns. With a budget it is a text of as many tokens as
// p99 of kCallsForP99 calls and more allows; texts does not matter then. Throws Failure.
const ReportRow& MeasureDeadline(const BenchModel& model, const Deadline& deadline,
                                 const std::vector<std::string>& texts, size_t precision,
                                 int threads, BenchMeasurer* measurer);

// Adds rows: what so many copies of one thread each compute, each with weights and memory of its
// own; the same under each load; with a budget, under the highest load whose p99 is within it. A
// call has one of the texts, or the workload. Throws Failure.
std::vector<ReportRow> MeasureServer(const BenchModel& model, const Deadline& deadline,
                                     const std::vector<std::string>& texts, size_t precision,
                                     size_t copies, BenchMeasurer* measurer);
std::vector<ReportRow> MeasureServer(const bench::NamedWorkload& workload, bench::Products products,
                                     const Deadline& deadline, size_t copies,
                                     BenchMeasurer* measurer);

// The most of least..most of which p99 is within the budget, or the least, and its times: where
// guess() is last true run() is tried, three times each; steps down from there become larger.
std::pair<size_t, bench::FrameTimes> MostWithin(
    double budget, size_t least, size_t most, const std::function<bool(size_t)>& guess,
    const std::function<bench::FrameTimes(size_t)>& run);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_
