// SPDX-License-Identifier: Apache-2.0
//
// The page of a comparison: the reports, then for each but the first a picture and a table. The
// picture has dots and whiskers on a logarithmic axis: a ratio of 2 is as far from 1 as one of 0.5.

#include <algorithm>
#include <vector>

#include "tools/encore/page.h"
#include "tools/encore/report_pages.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kLine = 22;
constexpr double kTop = 8;
constexpr double kPlotWidth = 380;
constexpr double kVerdictWidth = 215;
constexpr size_t kLabelColumns = 72;
// Of TextWidth, which is that of digits: labels are mostly small letters.
constexpr double kLabelWidth = 0.9;

std::string LabelOf(const ComparedRow& row) {
  const ReportRow& base = *row.rows.base;
  return Shortened(WorkloadText(base) + "  " + Printable(PrecisionOf(base)) + "  " +
                       TargetsText(row.rows) + "  " + Printable(base.weights) + "  " +
                       Counted(static_cast<size_t>(base.threads), "thread"),
                   kLabelColumns);
}

const char* StyleOf(Verdict verdict) {
  return verdict == Verdict::kFaster ? "c3" : verdict == Verdict::kSlower ? "c2" : "c8";
}

Axis AxisOf(const Pairing& pairing, double left) {
  double low = 1;
  double high = 1;
  for (const ComparedRow& row : pairing.rows) {
    low = std::min({low, row.ratio.low, row.ratio.value, row.band.low});
    high = std::max({high, row.ratio.high, row.ratio.value, row.band.high});
  }
  // Both sides seen, and at least a tenth of either.
  return {std::min(low / 1.02, 0.9), std::max(high * 1.02, 1.1), left, left + kPlotWidth, true};
}

std::vector<double> Ticks(const Axis& axis) {
  return axis.high / axis.low > 4 ? LogTicks(axis.low, axis.high)
                                  : LinearTicks(axis.low, axis.high, 6);
}

void DrawRow(Canvas& canvas, const Axis& axis, const ComparedRow& row, double y) {
  const std::string style = StyleOf(row.verdict);
  const double middle = y + kLine / 2;
  canvas.Text({axis.from - 12, middle + 4}, LabelOf(row), "ink", Anchor::kEnd);
  canvas.Line({axis.At(row.ratio.low), middle}, {axis.At(row.ratio.high), middle}, style);
  for (const double end : {row.ratio.low, row.ratio.high}) {
    canvas.Line({axis.At(end), middle - 5}, {axis.At(end), middle + 5}, style);
  }
  canvas.Mark({axis.At(row.ratio.value), middle}, style, true, true, RatioText(row.ratio));
  const std::string words =
      row.verdict == Verdict::kNoDifference ? RatioText(row.ratio) : VerdictText(row);
  canvas.Text({axis.to + 12, middle + 4}, words, style);
}

// Ratios with intervals on their noise bands, one line a row.
std::string RatioPicture(const Pairing& pairing) {
  double label = 0;
  for (const ComparedRow& row : pairing.rows) {
    label = std::max(label, kLabelWidth * TextWidth(LabelOf(row)));
  }
  const double bottom = kTop + kLine * static_cast<double>(pairing.rows.size());
  const Axis axis = AxisOf(pairing, label + 12);
  Canvas canvas(axis.to + 12 + kVerdictWidth, bottom + 46);
  for (size_t i = 0; i < pairing.rows.size(); ++i) {
    const double y = kTop + kLine * static_cast<double>(i);
    const NoiseBand& band = pairing.rows[i].band;
    canvas.Bar({axis.At(band.low), y + 2, axis.At(band.high), y + kLine - 2}, "band",
               "noise band " + Number(band.low, 2) + " to " + Number(band.high, 2));
  }
  for (const double tick : Ticks(axis)) {
    canvas.Line({axis.At(tick), kTop}, {axis.At(tick), bottom}, "grid");
    canvas.Text({axis.At(tick), bottom + 16}, TickText(tick), "muted", Anchor::kMiddle);
  }
  canvas.Line({axis.At(1), kTop}, {axis.At(1), bottom}, "ink");
  canvas.Text({0.5 * (axis.from + axis.to), bottom + 38},
              "speed of " + LetterOf(pairing.other) + " over A", "muted", Anchor::kMiddle);
  for (size_t i = 0; i < pairing.rows.size(); ++i) {
    DrawRow(canvas, axis, pairing.rows[i], kTop + kLine * static_cast<double>(i));
  }
  return canvas.Svg("Ratios of speeds, " + LetterOf(pairing.other) + " over A");
}

std::string Head(const std::vector<NamedReport>& reports) {
  std::string out;
  for (size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i].report;
    out += Paragraph(LetterOf(i) + ": " + reports[i].name + ", " + MachineText(report) + ", " +
                     report.created);
    out += List(NoiseSentences(report.noise), "warn");
  }
  return out + Paragraph(kCompareRule, "muted");
}

std::string Table(const Pairing& pairing) {
  const std::string letter = LetterOf(pairing.other);
  std::vector<std::vector<std::string>> lines = {
      {"workload", "precision", "target", "weights", "threads", "A: time", letter + ": time",
       "speed of " + letter + " over A", "noise band", "verdict"}};
  for (const ComparedRow& row : pairing.rows) {
    const ReportRow& base = *row.rows.base;
    lines.push_back({WorkloadText(base), PrecisionOf(base), TargetsText(row.rows), base.weights,
                     std::to_string(base.threads), TimeText(Median(base.slots)),
                     TimeText(Median(row.rows.other->slots)), RatioText(row.ratio),
                     Number(row.band.low, 2) + " to " + Number(row.band.high, 2),
                     VerdictWord(row.verdict)});
  }
  return HtmlTable(lines, 4, 9);
}

}  // namespace

std::string ComparePage(const std::vector<NamedReport>& reports,
                        const std::vector<Pairing>& pairings) {
  std::string body = Head(reports);
  for (const Pairing& pairing : pairings) {
    const std::string letter = LetterOf(pairing.other);
    body += Heading(letter + " against A") + List(PairingNotes(pairing));
    body += LegendLine(
        {{"c3", "faster"}, {"c2", "slower"}, {"c8", "no real difference"}, {"band", "noise band"}});
    body += Figure(RatioPicture(pairing), PairingSummary(pairing) + ".");
    body += Table(pairing);
  }
  return Page("Reports side by side", body);
}

}  // namespace encore::tool
