// SPDX-License-Identifier: Apache-2.0
//
// Columns and cells. The share of the roof is the first figure: it is the one that can be
// quoted without the machine.

#include "tools/encore/bench_table.h"

#include <algorithm>
#include <optional>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

std::string Microseconds(double seconds) {
  return seconds < 0.1 ? Number(1e6 * seconds, 1) : Grouped(1e6 * seconds);
}

std::string Milliseconds(double seconds) {
  return seconds < 10 ? Number(1e3 * seconds, 3) : Grouped(1e3 * seconds);
}

std::string Megabytes(size_t bytes) {
  return Number(static_cast<double>(bytes) / 1e6, bytes < 1'000'000'000 ? 1 : 0) + " MB";
}

std::string Millions(size_t values) { return Number(static_cast<double>(values) / 1e6, 1) + " M"; }

// "f32", "bf16 (AMX)".
std::string PrecisionOf(const ReportRow& row) {
  return row.amx_bf16 ? row.precision + " (AMX)" : row.precision;
}

// "64 texts" of "all-MiniLM-L6-v2 64 texts".
std::string TestOf(const ReportRow& row) {
  const std::string& model = row.model->name;
  return row.workload.starts_with(model + " ") ? row.workload.substr(model.size() + 1)
                                               : row.workload;
}

std::string MillisecondsOf(const std::optional<double>& seconds) {
  return seconds ? Milliseconds(*seconds) : "";
}

// "32 of 256", "256, all", "none" of which p99 is within the budget.
std::string TokensOf(const ReportRow& row) {
  const ReportBudget& budget = *row.budget;
  if (!budget.fits) return "none";
  std::string tokens = std::to_string(row.tokens);
  if (budget.max_length == 0) return tokens;
  return row.tokens >= budget.max_length ? tokens + ", all"
                                         : tokens + " of " + std::to_string(budget.max_length);
}

// Of a row in frames: as kLoop's and kBudget's columns have them.
std::vector<std::string> FrameCells(const ReportRow& row) {
  const ReportLoop& loop = *row.loop;
  std::vector<std::string> cells = {Printable(row.model->name), PrecisionOf(row),
                                    std::to_string(row.threads)};
  const std::vector<std::string> of_call = {
      MillisecondsOf(row.seconds.p50), MillisecondsOf(row.seconds.p99), MillisecondsOf(loop.p99_9),
      Milliseconds(row.seconds.max)};
  const std::vector<std::string> of_control = {MillisecondsOf(loop.control.p50),
                                               MillisecondsOf(loop.control.p99),
                                               Milliseconds(loop.control.max)};
  cells.push_back(row.budget ? TokensOf(row) : std::to_string(row.calls));
  cells.insert(cells.end(), of_call.begin(), of_call.end());
  cells.insert(cells.end(), of_control.begin(), of_control.end());
  if (row.budget) return cells;
  cells.push_back(std::to_string(loop.late));
  for (const std::optional<double>& count :
       {std::optional(loop.minor_faults), std::optional(loop.major_faults), loop.allocations,
        std::optional(loop.voluntary_switches), std::optional(loop.involuntary_switches)}) {
    cells.push_back(count ? Number(*count, 2) : "");
  }
  return cells;
}

// Of a row of a server.
std::vector<std::string> ServerCells(const ReportRow& row) {
  const ReportServer& server = *row.server;
  const std::string load =
      server.load_percent ? std::to_string(*server.load_percent) + " %" : "back to back";
  return {row.workload,
          PrecisionOf(row),
          std::to_string(row.threads),
          row.budget && !row.budget->fits ? "none" : load,
          Number(server.calls_per_s, server.calls_per_s < 99.95 ? 1 : 0),
          Grouped(row.useful_tokens_per_s),
          Milliseconds(row.seconds.p50),
          Milliseconds(row.seconds.p90),
          MillisecondsOf(row.seconds.p99),
          MillisecondsOf(server.p99_9),
          Milliseconds(row.seconds.max)};
}

std::string EscapedBars(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

}  // namespace

void PrintMarkdown(std::ostream& out, const std::vector<std::vector<std::string>>& lines,
                   size_t first_number, size_t last_number) {
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& cell : lines[i]) out << "| " << EscapedBars(cell) << " ";
    out << "|\n";
    if (i > 0) continue;
    for (size_t c = 0; c < lines[i].size(); ++c) {
      out << (first_number <= c && c < last_number ? "| ---: " : "| :--- ");
    }
    out << "|\n";
  }
}

const std::vector<BenchTable::Column>& BenchTable::Columns() const {
  const auto of_layers = [](const char* operations) {
    return std::vector<Column>{
        {"workload", 27, false}, {"layers", 6, true},  {"precision", 11, true},
        {"threads", 9, true},    {"weights", 9, true}, {"of its roof", 13, true},
        {"p50 us", 11, true},    {"p99 us", 11, true}, {"tokens/s", 11, true},
        {operations, 10, true},  {"roof", 0, false}};
  };
  static const std::vector<Column> kLayers = of_layers("GFLOP/s");
  static const std::vector<Column> kIntegers = of_layers("GOP/s");
  static const std::vector<Column> kTexts = {
      {"model", 27, false}, {"file", 9, true},         {"packed", 9, true},
      {"values", 9, true},  {"precision", 11, true},   {"threads", 9, true},
      {"test", 11, true},   {"of its roof", 13, true}, {"p50 ms", 10, true},
      {"p99 ms", 10, true}, {"texts/s", 9, true},      {"tokens/s", 10, true},
      {"roof", 0, false}};
  static const std::vector<Column> kLoop = {
      {"model", 21, false},        {"precision", 11, true}, {"threads", 9, true},
      {"frames", 8, true},         {"p50 ms", 9, true},     {"p99 ms", 9, true},
      {"p99.9 ms", 10, true},      {"max ms", 9, true},     {"control: p50", 14, true},
      {"p99 ms", 8, true},         {"max ms", 8, true},     {"late", 6, true},
      {"minor faults", 14, true},  {"major", 7, true},      {"allocations", 13, true},
      {"switches: own", 15, true}, {"forced", 8, true}};
  static const std::vector<Column> kBudget = {
      {"model", 21, false},   {"precision", 11, true}, {"threads", 9, true},
      {"tokens", 13, true},   {"p50 ms", 9, true},     {"p99 ms", 9, true},
      {"p99.9 ms", 10, true}, {"max ms", 9, true},     {"control: p50", 14, true},
      {"p99 ms", 8, true},    {"max ms", 8, true}};
  static const std::vector<Column> kServer = {
      {"workload", 43, false}, {"precision", 11, true}, {"copies", 8, true}, {"load", 14, true},
      {"calls/s", 9, true},    {"tokens/s", 11, true},  {"p50 ms", 9, true}, {"p90 ms", 9, true},
      {"p99 ms", 9, true},     {"p99.9 ms", 10, true},  {"max ms", 9, true}};
  switch (kind_) {
    case BenchKind::kServer:
      return kServer;
    case BenchKind::kLayers:
      return integers_ ? kIntegers : kLayers;
    case BenchKind::kTexts:
      return kTexts;
    case BenchKind::kLoop:
      return kLoop;
    case BenchKind::kBudget:
      return kBudget;
  }
  return kLayers;
}

std::vector<std::string> BenchTable::Cells(const ReportRow& row) const {
  if (row.loop) return FrameCells(row);
  if (row.server) return ServerCells(row);
  const std::string share = row.roof ? Number(100 * row.roof->share, 1) + " %" : "";
  std::string roof = row.roof ? row.roof->name : "";
  if (row.joules) {
    const double tokens = static_cast<double>(row.useful_tokens);
    roof += "; " + Number(1e3 * *row.joules / tokens, 3) + " mJ/token";
  }
  if (row.sensors.clock_mhz) roof += "; " + std::to_string(*row.sensors.clock_mhz) + " MHz";
  if (row.sensors.temperature_c) roof += "; " + std::to_string(*row.sensors.temperature_c) + " C";
  if (row.sensors.throttled.value_or(false)) roof += "; throttled";
  if (!row.model) {
    return {row.workload,
            std::to_string(row.layers),
            PrecisionOf(row),
            std::to_string(row.threads),
            row.weights,
            share,
            Microseconds(row.seconds.p50),
            row.seconds.p99 ? Microseconds(*row.seconds.p99) : "",
            Grouped(row.useful_tokens_per_s),
            Number(row.gflops, 1),
            roof};
  }
  return {Printable(row.model->name),
          Megabytes(row.model->bytes),
          Megabytes(row.opening->packed_bytes),
          Millions(row.model->values),
          PrecisionOf(row),
          std::to_string(row.threads),
          Printable(TestOf(row)),
          share,
          Milliseconds(row.seconds.p50),
          MillisecondsOf(row.seconds.p99),
          Number(row.texts_per_s, row.texts_per_s < 99.95 ? 1 : 0),
          Grouped(row.tokens_per_s),
          roof};
}

void BenchTable::PrintHead(std::ostream& out) const {
  if (kind_ == BenchKind::kServer) {
    out << "\nCopies: of the model, one thread each. A call has one workload, or one text. Load: "
           "calls that arrive,\nat random, in percent of what is done back to back; their times "
           "count from the arrival, so with the wait\nfor a copy. p99: of "
        << kCallsForP99 << " calls and more.\n\n";
  } else if (kind_ == BenchKind::kLoop || kind_ == BenchKind::kBudget) {
    out << "\nA call takes one text from its characters to a vector or scores. Control: integer "
           "work in the same\nframes, whose p99 and maximum are the machine's doing. ";
    out << (kind_ == BenchKind::kLoop
                ? "Faults, allocations (calls of operator new) and\ncontext switches are a frame's,"
                  " of the whole process; to wait for the next frame is a switch of its own.\nLate:"
                  " calls that took longer than a frame."
                : "Tokens: the most whose p99 is within\nthe time, of those that the model takes.")
        << " p99: of " << kCallsForP99 << " calls and more.\n\n";
  } else {
    out << "\nOf its roof: the share of the roof that applies, as measured between the calls. "
        << (kind_ == BenchKind::kTexts
                ? "A call takes\ntexts from their characters to vectors or scores."
                : "Warm: the same\nlayers again and again. Cold: the layers of models that "
                  "together are larger than the caches.\nTokens are those of so many layers; those "
                  "that "
                  "only pad count as none.")
        << " p99: of " << kCallsForP99
        << " calls and more.\n*: the threads had less than their peak, see the notes below.\n\n";
  }
  for (const Column& column : Columns()) {
    out << (column.number ? PadLeft(column.title, column.width)
                          : (column.width == 0 ? "  " : "") + PadRight(column.title, column.width));
  }
  out << "\n";
}

void BenchTable::PrintRow(std::ostream& out, const ReportRow& row, bool shares_core) const {
  const std::vector<std::string> cells = Cells(row);
  const std::vector<Column>& columns = Columns();
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t width = columns[i].width;
    // A long name does not touch the next cell.
    line += columns[i].number ? PadLeft(cells[i], width)
            : width == 0      ? "  " + cells[i]
                              : PadRight(Shortened(Printable(cells[i]), width - 1), width);
  }
  if (!row.verified) line += "; not checked, too large for the reference";
  if (shares_core) line += " *";
  out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  out.flush();  // rows take their time
}

void BenchTable::PrintOpenings(std::ostream& out, const std::vector<ReportRow>& rows,
                               bool markdown) const {
  std::vector<std::vector<std::string>> lines = {
      {"opening", "file", "packed", "resident", "ms", "cached, ms", "first call, ms"}};
  for (const ReportRow& row : rows) {
    if (lines.back()[0] == PrecisionOf(row)) continue;
    const ReportOpening& opening = *row.opening;
    lines.push_back({PrecisionOf(row), Megabytes(row.model->bytes), Megabytes(opening.packed_bytes),
                     Megabytes(opening.resident_bytes), Milliseconds(opening.seconds),
                     MillisecondsOf(opening.cached), Milliseconds(opening.first_call)});
  }
  out << "\n";
  if (markdown) PrintMarkdown(out, lines, 1, lines[0].size());
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size() && !markdown; ++i) {
      out << (i == 0 ? PadRight(line[i], 12) : PadLeft(line[i], 15));
    }
    if (!markdown) out << "\n";
  }
}

void BenchTable::PrintAsMarkdown(std::ostream& out, const std::vector<ReportRow>& rows) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : Columns()) lines[0].emplace_back(column.title);
  for (const ReportRow& row : rows) lines.push_back(Cells(row));
  const auto number = [](const Column& column) { return column.number; };
  const auto first = std::find_if(Columns().begin(), Columns().end(), number) - Columns().begin();
  const bool last = Columns().back().number;
  PrintMarkdown(out, lines, static_cast<size_t>(first), lines[0].size() - (last ? 0 : 1));
}

}  // namespace encore::tool
