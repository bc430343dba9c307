// SPDX-License-Identifier: Apache-2.0
//
// `encore compare`: reports of `encore bench --json` or `encore report` side by side, as text and
// as a page. Not here: what a difference is (comparison.h), the page (report_pages.h).

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "tools/encore/commands.h"
#include "tools/encore/comparison.h"
#include "tools/encore/failure.h"
#include "tools/encore/report_data.h"
#include "tools/encore/report_pages.h"
#include "tools/encore/report_series.h"
#include "tools/encore/shared_options.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// More than a person compares.
constexpr size_t kMaxReports = 8;

constexpr const char* kFooter =
    R"(The first report is the base: every further one is compared with it, row by row. Rows belong
together that agree in engine, workload and its sizes, layers, sequences, tokens, precision, AMX for
bf16, threads, weights and target. Where the best targets of two reports differ, their rows are
compared as well.)";

constexpr const char* kExamples =
    R"(Examples:
  encore compare before.json after.json
  encore compare laptop.json server.json phone.json --out machines.html)";

// Lines of words, none longer than 100 characters.
std::string Wrapped(const std::string& text) {
  constexpr size_t kColumns = 100;
  std::string out;
  size_t column = 0;
  for (const std::string& word : SplitWords(text)) {
    const bool breaks = column > 0 && column + 1 + word.size() > kColumns;
    out += (column == 0 ? "" : breaks ? "\n" : " ") + word;
    column = (breaks || column == 0 ? 0 : column + 1) + word.size();
  }
  return out;
}

struct Options {
  std::vector<std::string> files;
  std::string out;
};

using Lines = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell; words to the left, and numbers (from `first_number` to
// before `last_number`) to the right.
void PrintTable(std::ostream& out, const Lines& lines, size_t first_number, size_t last_number) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(line[i]));
    }
  }
  for (const auto& line : lines) {
    std::string text;
    for (size_t i = 0; i < line.size(); ++i) {
      const bool number = first_number <= i && i < last_number;
      text += (i == 0 ? "" : "  ") +
              (number ? PadLeft(line[i], widths[i]) : PadRight(line[i], widths[i]));
    }
    out << text.substr(0, text.find_last_not_of(' ') + 1) << "\n";
  }
}

void PrintPairing(std::ostream& out, const Pairing& pairing) {
  const std::string letter = LetterOf(pairing.other);
  out << "\n" << letter << " against A\n";
  for (const std::string& note : PairingNotes(pairing)) out << "  " << note << "\n";
  out << "\n";
  Lines lines = {{"workload", "precision", "target", "weights", "threads", "A", letter,
                  "speed of " + letter + " over A", "verdict"}};
  for (const ComparedRow& row : pairing.rows) {
    const ReportRow& base = *row.rows.base;
    lines.push_back({WorkloadText(base), Printable(PrecisionOf(base)), TargetsText(row.rows),
                     Printable(base.weights), std::to_string(base.threads),
                     TimeText(Median(base.slots)), TimeText(Median(row.rows.other->slots)),
                     RatioText(row.ratio), VerdictText(row)});
  }
  PrintTable(out, lines, 4, 8);
  out << "\n" << PairingSummary(pairing) << ".\n";
}

// The reports with what disturbed them, then a table for each but the first.
void PrintComparison(std::ostream& out, const std::vector<NamedReport>& reports,
                     const std::vector<Pairing>& pairings) {
  for (size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i].report;
    out << LetterOf(i) << "  " << Printable(reports[i].name) << ": " << MachineText(report) << ", "
        << Printable(report.created) << "\n";
    for (const std::string& sentence : NoiseSentences(report.noise)) {
      out << "   " << Printable(sentence) << "\n";
    }
  }
  for (const Pairing& pairing : pairings) PrintPairing(out, pairing);
}

int Run(const Options& options) {
  const size_t count = options.files.size();
  if (count < 2 || count > kMaxReports) {
    throw Failure("REPORT: found " + Counted(count, "file") + ", wanted 2 to " +
                  std::to_string(kMaxReports) + ": the base and what is compared with it");
  }
  for (const std::string& file : options.files) {
    WantOtherFile("--out", options.out, file, "a report to compare");
  }
  WantPageName(options.out, "--out");
  std::vector<NamedReport> reports;
  for (const std::string& file : options.files) reports.push_back({file, ReadReport(file)});
  const std::vector<Pairing> pairings = CompareReports(reports);
  if (!options.out.empty()) {
    WantWritable(options.out, "--out");
    WriteTextFile(options.out, ComparePage(reports, pairings));
  }
  PrintComparison(std::cout, reports, pairings);
  return kExitOk;
}

}  // namespace

void AddCompare(CLI::App& app, Action& action) {
  const auto [sub, options] =
      AddCommand(app, action, "compare", "Reports of bench or report side by side",
                 std::string(kFooter) + "\n\n" + Wrapped(kCompareRule) + "\n\n" + kExamples, Run);
  sub->add_option("REPORT", options->files, "Two reports or more (JSON); the first is the base")
      ->required()
      ->expected(-1)
      ->type_name("FILE");
  sub->add_option("--out", options->out, "Write the comparison there as an HTML page, too")
      ->type_name("FILE");
}

}  // namespace encore::tool
