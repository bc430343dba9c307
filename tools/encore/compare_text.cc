// SPDX-License-Identifier: Apache-2.0
//
// Tables of a comparison, column by column.

#include "tools/encore/compare_text.h"

#include <algorithm>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

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
    lines.push_back({WorkloadText(base), PrecisionText(base), TargetsText(row.rows),
                     Printable(base.weights), std::to_string(base.threads),
                     TimeText(Median(base.slots)), TimeText(Median(row.rows.other->slots)),
                     RatioText(row.ratio), VerdictText(row)});
  }
  PrintTable(out, lines, 4, 8);
  out << "\n" << PairingSummary(pairing) << ".\n";
}

}  // namespace

std::string MachineText(const Report& report) {
  const ReportMachine& machine = report.machine;
  std::string text = machine.cpu + ", " + Counted(static_cast<size_t>(machine.cores), "core");
  for (const std::string& part : {machine.system, machine.compiler}) {
    if (!part.empty()) text += ", " + part;
  }
  if (!report.encore.empty()) text += ", encore " + report.encore;
  return Printable(text);
}

std::string TimeText(double seconds) {
  const auto three_digits = [](double value) {
    return Number(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  };
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

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

}  // namespace encore::tool
