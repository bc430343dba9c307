// SPDX-License-Identifier: Apache-2.0
//
// Curves of quantiles, three panels side by side.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/encore/compare_text.h"
#include "tools/encore/page.h"
#include "tools/encore/picture.h"
#include "tools/encore/report_pictures.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kWidth = 980;
constexpr size_t kAcross = 3;
constexpr double kPanelWidth = kWidth / kAcross;
constexpr double kPanelHeight = 226;

// The unit of a panel's axis.
struct Unit {
  double seconds;
  const char* name;
};
Unit UnitOf(double seconds) {
  if (seconds < 1e-3) return {1e-6, "us"};
  if (seconds < 1) return {1e-3, "ms"};
  return {1, "s"};
}

Rows RowsOf(const Report& report, int threads) {
  Rows rows;
  for (const ReportRow* row : RowsWithThreads(WarmRows(RowsOfBestTarget(report)), threads)) {
    if (!row->quantiles.empty()) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ReportRow* a, const ReportRow* b) {
    return PrecisionRank(*a) < PrecisionRank(*b);
  });
  if (rows.size() > kMostPanels) rows.resize(kMostPanels);
  return rows;
}

void DrawPanel(Canvas& canvas, const ReportRow& row, Point corner) {
  const Box plot = {corner.x + 52, corner.y + 40, corner.x + kPanelWidth - 22,
                    corner.y + kPanelHeight - 54};
  const Unit unit = UnitOf(row.seconds.p50);
  const double low = row.quantiles.front() / unit.seconds;
  const double high = std::max(row.seconds.p99 / unit.seconds, low * 1.02);
  const double margin = 0.15 * (high - low);
  const Axis x = {0, 100, plot.left, plot.right};
  const Axis y = {low - margin, high + margin, plot.bottom, plot.top};
  const std::string style = ColourOf(PrecisionRank(row));
  canvas.Text({corner.x, corner.y + 13},
              Shortened(Printable(row.workload + ", " + PrecisionOf(row)), 40), "strong");
  canvas.Text({corner.x, corner.y + 29},
              "p50 " + TimeText(row.seconds.p50) + ", p99 " + TimeText(row.seconds.p99) + ", max " +
                  TimeText(row.seconds.max),
              "muted");
  for (const double tick : LinearTicks(y.low, y.high, 4)) {
    canvas.Line({plot.left, y.At(tick)}, {plot.right, y.At(tick)}, "grid");
    canvas.Text({plot.left - 6, y.At(tick) + 4}, TickText(tick), "muted", Anchor::kEnd);
  }
  for (const double tick : {0.0, 25.0, 50.0, 75.0, 100.0}) {
    canvas.Text({x.At(tick), plot.bottom + 16}, TickText(tick), "muted", Anchor::kMiddle);
  }
  canvas.Text({0.5 * (plot.left + plot.right), plot.bottom + 31},
              "% of calls take at most so many " + std::string(unit.name), "muted",
              Anchor::kMiddle);
  std::vector<Point> points;
  for (size_t i = 0; i < row.quantiles.size(); ++i) {
    const double value = std::min(row.quantiles[i] / unit.seconds, y.high);
    points.push_back({x.At(static_cast<double>(i)), y.At(std::max(value, y.low))});
  }
  canvas.Path(points, style);
  const auto mark = [&](double percent, double seconds, const std::string& name) {
    const Point at = {x.At(percent), y.At(std::clamp(seconds / unit.seconds, y.low, y.high))};
    canvas.Mark(at, style, true, true, name + " " + TimeText(seconds));
    canvas.Text({at.x - 7, at.y - 7}, name, "ink", Anchor::kEnd);
  };
  mark(50, row.seconds.p50, "p50");
  mark(99, row.seconds.p99, "p99");
}

}  // namespace

std::string LatencyPicture(const Report& report, int threads) {
  const Rows rows = RowsOf(report, threads);
  if (rows.empty()) return "";
  const size_t down = (rows.size() + kAcross - 1) / kAcross;
  Canvas canvas(kWidth, static_cast<double>(down) * kPanelHeight);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t down_at = i / kAcross;
    DrawPanel(canvas, *rows[i],
              {static_cast<double>(i % kAcross) * kPanelWidth,
               static_cast<double>(down_at) * kPanelHeight});
  }
  return canvas.Svg("Latency of calls on " + ThreadsText(threads));
}

}  // namespace encore::tool
