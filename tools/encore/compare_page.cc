// SPDX-License-Identifier: Apache-2.0
//
// The page's sections: the reports, then a picture and a table for each but the first.

#include "tools/encore/compare_page.h"

#include "tools/encore/compare_text.h"
#include "tools/encore/page.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

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
    lines.push_back({WorkloadText(base), PrecisionText(base), TargetsText(row.rows), base.weights,
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
