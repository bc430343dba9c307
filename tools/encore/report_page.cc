// SPDX-License-Identifier: Apache-2.0
//
// The page's sections and their words.

#include "tools/encore/report_pages.h"

#include <algorithm>
#include <vector>

#include "tools/encore/compare_rows.h"
#include "tools/encore/page.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string PercentText(double percent) {
  return percent < 0 ? "unknown" : Number(percent, 1) + " %";
}

std::string Head(const Report& report) {
  const ReportMachine& machine = report.machine;
  std::string out = Paragraph(MachineText(report));
  out += Paragraph(
      "L1d " + BytesText(machine.l1d_bytes) + ", L2 " + BytesText(machine.l2_bytes) + ", L3 " +
          BytesText(machine.l3_bytes) + "; " + machine.architecture +
          "; SIMD targets, best first: " + Joined(machine.targets) + "; cores: " +
          (machine.cores_text.empty() ? std::to_string(machine.cores) : machine.cores_text),
      "muted");
  out +=
      Paragraph("Measured " + report.created + " in " + Number(report.run.seconds, 0) +
                    " s, about " + TimeText(report.run.seconds_per_row) +
                    " a row. Threads from: " + report.run.threads_from + "; " + report.run.binding,
                "muted");
  out += Paragraph(
      "Time of all cores that other processes took: " + PercentText(report.noise.busy_percent) +
          ", other virtual machines: " + PercentText(report.noise.steal_percent) +
          ". Drift of one core's peak in the course of the run: " +
          PercentText(report.noise.peak_drift_percent) + ".",
      "muted");
  return out + List(NoiseSentences(report.noise), "warn");
}

std::string PrecisionLegend(const Report& report) {
  std::vector<Legend> legend;
  for (size_t rank = 0; rank <= 4; ++rank) {
    const auto found =
        std::find_if(report.rows.begin(), report.rows.end(),
                     [&](const ReportRow& row) { return PrecisionRank(row) == rank; });
    if (found != report.rows.end()) legend.push_back({ColourOf(rank), PrecisionOf(*found)});
  }
  return LegendLine(legend);
}

std::string RooflineSection(const Report& report) {
  std::vector<int> counts = ThreadCounts(report);
  if (counts.size() > 2) counts = {counts.front(), counts.back()};
  std::string out;
  for (const int threads : counts) {
    const std::string picture = RooflinePicture(report, threads);
    if (picture.empty()) continue;
    std::string caption = ThreadsText(threads) + ", " + BestTarget(report) + ".";
    const std::vector<std::string> names = WorkloadNames(report);
    for (size_t i = 0; i < names.size(); ++i) {
      caption += " " + std::to_string(i + 1) + " " + names[i] + (i + 1 < names.size() ? "," : "");
    }
    out += Figure(picture, caption);
  }
  if (out.empty()) return "";
  return Heading("Roofline") +
         Paragraph(
             "Filled: weights in cache (warm). Rings: weights from memory (cold). Squares: "
             "other engines. Bytes are those of the weights alone.",
             "muted") +
         PrecisionLegend(report) + out;
}

std::string SpeedSection(const Report& report) {
  const std::vector<int> counts = ThreadCounts(report);
  const std::string picture = counts.empty() ? "" : SpeedPicture(report, counts.front());
  if (picture.empty()) return "";
  std::string caption = "Tokens a second on " + ThreadsText(counts.front()) +
                        ", weights in cache. Each panel has its own scale.";
  if (WorkloadNames(report).size() > kMostPanels) caption += " More workloads are in the table.";
  return Heading("Speed by precision and SIMD target") + PrecisionLegend(report) +
         Figure(picture, caption);
}

std::string ScalingSection(const Report& report) {
  const std::string picture = ScalingPicture(report);
  return Heading("Scaling by threads") +
         (picture.empty() ? Paragraph("Only one number of threads was measured.", "muted")
                          : Figure(picture, "Speed over that of the fewest threads, " +
                                                BestTarget(report) + ", weights in cache."));
}

std::string LatencySection(const Report& report) {
  const std::vector<int> counts = ThreadCounts(report);
  std::string out;
  for (const int threads : counts) {
    if (threads != counts.front() && threads != counts.back()) continue;
    const std::string picture = LatencyPicture(report, threads);
    if (picture.empty()) continue;
    out += Figure(picture, ThreadsText(threads) + ", " + BestTarget(report) +
                               ", weights in cache. Axes end a little above p99.");
  }
  return out.empty() ? "" : Heading("Latency") + out;
}

std::string Table(const Report& report) {
  Lines lines = {{"engine", "workload", "precision", "target", "weights", "checked", "layers",
                  "threads", "calls", "p50", "p99", "GFLOP/s", "tokens/s", "useful tokens/s",
                  "of its roof"}};
  for (const ReportRow& row : report.rows) {
    lines.push_back({row.engine + " " + row.engine_version, row.workload, PrecisionOf(row),
                     row.target, row.weights, row.verified ? "yes" : "no",
                     std::to_string(row.layers), std::to_string(row.threads),
                     Grouped(static_cast<double>(row.calls)), TimeText(row.seconds.p50),
                     row.seconds.p99 ? TimeText(*row.seconds.p99) : "", Number(row.gflops, 1),
                     Grouped(row.tokens_per_s), Grouped(row.useful_tokens_per_s),
                     row.roof ? Number(100 * row.roof->share, 0) + " % of " + row.roof->name : ""});
  }
  return Heading("All rows") +
         Paragraph(
             "Times are those of one call of so many layers. Checked: before timing, the model's "
             "first layers on four tokens agreed with a reference in double precision, and the "
             "output was finite and, bit for bit, what one thread alone computes.",
             "muted") +
         HtmlTable(lines, 6, 14);
}

}  // namespace

std::string ReportPage(const Report& report) {
  return Page("encore on " + report.machine.cpu, Head(report) + RooflineSection(report) +
                                                     SpeedSection(report) + ScalingSection(report) +
                                                     LatencySection(report) + Table(report));
}

}  // namespace encore::tool
