// SPDX-License-Identifier: Apache-2.0
//
// Rows of `encore bench --loop` and `--budget`: a folder's model in a loop with a deadline, and how
// many tokens of one text fit into a time.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/encore/bench_measure.h"
#include "tools/encore/bench_texts.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

struct Deadline {
  int hz = 0;  // of the frames; 0: back to back
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

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_DEADLINE_H_
