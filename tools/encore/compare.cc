// SPDX-License-Identifier: Apache-2.0
//
// `encore compare`: reports of `encore bench --json` or `encore report` side by side, as text and
// as a page.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/encore/bench_table.h"
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
compared as well. Reports without a precision in common are compared across precisions; --precision
f32,int8 takes the f32 rows of the base and the int8 rows of the others, which may be the same
file.)";

constexpr const char* kExamples =
    R"(Examples:
  encore compare before.json after.json
  encore compare report.json report.json --precision f32,int8
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
  std::vector<std::string> precisions;  // of the base and of the others; or none
  std::string out;
  OutputFormat format = OutputFormat::kTable;
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

// The lines of a pairing's table, its head first. Numbers are in columns 4 to 8.
Lines PairingLines(const Pairing& pairing) {
  const std::string letter = LetterOf(pairing.other);
  Lines lines = {{"workload", "precision", "target", "weights", "threads", "A", letter,
                  "speed of " + letter + " over A", "noise band", "verdict"}};
  for (const ComparedRow& row : pairing.rows) {
    const ReportRow& base = *row.rows.base;
    lines.push_back({WorkloadText(base), PrecisionsText(row.rows), TargetsText(row.rows),
                     Printable(base.weights), std::to_string(base.threads),
                     TimeText(Median(base.slots)), TimeText(Median(row.rows.other->slots)),
                     RatioText(row.ratio), BandText(row.band), VerdictText(row)});
  }
  return lines;
}

constexpr size_t kFirstNumber = 4;
constexpr size_t kLastNumber = 9;

void PrintPairing(std::ostream& out, const Pairing& pairing, bool markdown) {
  const std::string item = markdown ? "- " : "  ";
  out << "\n" << (markdown ? "### " : "") << LetterOf(pairing.other) << " against A\n";
  if (markdown) out << "\n";
  for (const std::string& note : PairingNotes(pairing)) out << item << note << "\n";
  out << "\n";
  const Lines lines = PairingLines(pairing);
  if (markdown) {
    PrintMarkdown(out, lines, kFirstNumber, kLastNumber);
  } else {
    PrintTable(out, lines, kFirstNumber, kLastNumber);
  }
  out << "\n" << PairingSummary(pairing) << ".\n";
}

// The reports with what disturbed them, then a table for each but the first.
void PrintComparison(std::ostream& out, const std::vector<NamedReport>& reports,
                     const std::vector<Pairing>& pairings, bool markdown) {
  for (size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i].report;
    out << (markdown ? "- " : "") << LetterOf(i) << (markdown ? ": " : "  ")
        << Printable(reports[i].name) << ": " << MachineText(report) << ", "
        << Printable(report.created) << "\n";
    for (const std::string& sentence : NoiseSentences(report.noise)) {
      out << (markdown ? "  - " : "   ") << Printable(sentence) << "\n";
    }
  }
  for (const Pairing& pairing : pairings) PrintPairing(out, pairing, markdown);
}

// The same for programs: numbers are ratios of speeds, above 1 where the other report is faster.
std::string ComparisonJson(const std::vector<NamedReport>& reports,
                           const std::vector<Pairing>& pairings) {
  using Json = nlohmann::ordered_json;
  const auto range = [](double low, double high) { return Json{{"low", low}, {"high", high}}; };
  Json json = {{"encore_comparison", 1}, {"reports", Json::array()}, {"pairings", Json::array()}};
  for (const NamedReport& named : reports) {
    json["reports"].push_back({{"name", Printable(named.name)},
                               {"commit", named.report.machine.commit},
                               {"noise", NoiseSentences(named.report.noise)}});
  }
  for (const Pairing& pairing : pairings) {
    Json rows = Json::array();
    for (const ComparedRow& row : pairing.rows) {
      const ReportRow& base = *row.rows.base;
      const ReportRow& other = *row.rows.other;
      Json ratio = range(row.ratio.low, row.ratio.high);
      ratio["value"] = row.ratio.value;
      rows.push_back({{"engine", {base.engine, other.engine}},
                      {"workload", base.workload},
                      {"layers", base.layers},
                      {"precision", {PrecisionOf(base), PrecisionOf(other)}},
                      {"target", {base.target, other.target}},
                      {"weights", base.weights},
                      {"threads", base.threads},
                      {"seconds", {Median(base.slots), Median(other.slots)}},
                      {"ratio", ratio},
                      {"band", range(row.band.low, row.band.high)},
                      {"verdict", VerdictWord(row.verdict)}});
    }
    json["pairings"].push_back(
        {{"base", 0}, {"other", pairing.other}, {"notes", PairingNotes(pairing)}, {"rows", rows}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void KeepPrecision(const std::string& precision, NamedReport* named) {
  std::vector<ReportRow>& rows = named->report.rows;
  std::erase_if(rows, [&](const ReportRow& row) { return PrecisionOf(row) != precision; });
  if (rows.empty()) {
    throw Failure(Printable(named->name) + ": found no row in " + Printable(precision) +
                  ", which --precision wants of it");
  }
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
  for (size_t i = 0; i < reports.size() && !options.precisions.empty(); ++i) {
    KeepPrecision(options.precisions[i == 0 ? 0 : 1], &reports[i]);
  }
  const std::vector<Pairing> pairings = CompareReports(reports);
  if (!options.out.empty()) {
    WantWritable(options.out, "--out");
    WriteTextFile(options.out, ComparePage(reports, pairings));
  }
  if (options.format == OutputFormat::kJson) {
    std::cout << ComparisonJson(reports, pairings);
  } else {
    PrintComparison(std::cout, reports, pairings, options.format == OutputFormat::kMarkdown);
  }
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
  sub->add_option("--precision", options->precisions,
                  "Rows of the base in the first, of the others in the second, e.g. f32,int8")
      ->delimiter(',')
      ->expected(2)
      ->type_name("A,B");
  AddFormat(*sub, options->format);
  sub->add_option("--out", options->out, "Write the comparison there as an HTML page, too")
      ->type_name("FILE");
}

}  // namespace encore::tool
