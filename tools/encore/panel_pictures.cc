// SPDX-License-Identifier: Apache-2.0
//
// Pictures with a panel for each workload: bars of tokens a second, two panels side by side, and
// curves of quantiles, three of them.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tools/encore/page.h"
#include "tools/encore/report_pages.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kWidth = 980;

void SortByPrecision(Rows& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const ReportRow* a, const ReportRow* b) {
    return PrecisionRank(*a) < PrecisionRank(*b);
  });
}

// ---- Bars --------------------------------------------------------------------------------------

constexpr double kBarsGap = 40;
constexpr double kBarsWidth = (kWidth - kBarsGap) / 2;
constexpr double kTitle = 26;
constexpr double kBar = 18;
constexpr double kBelow = 20;
constexpr double kNumber = 74;  // room right of the longest bar

struct Panel {
  std::string title;
  Rows rows;
};

std::string LabelOf(const ReportRow& row) {
  return Shortened(Printable(PrecisionOf(row) + "  " + EngineOf(row)), 26);
}

double HeightOf(const Panel& panel) {
  return kTitle + kBar * static_cast<double>(panel.rows.size()) + kBelow;
}

std::vector<Panel> PanelsOf(const Report& report, int threads) {
  Rows all;
  for (const ReportRow& row : report.rows) all.push_back(&row);
  std::vector<Panel> panels;
  std::map<std::pair<std::string, size_t>, size_t> places;
  for (const ReportRow* row : RowsWithThreads(WarmRows(all), threads)) {
    const auto [place, is_new] = places.insert({{row->workload, row->layers}, panels.size()});
    if (is_new) {
      panels.push_back({row->workload, {}});
      if (row->layers > 1) panels.back().title += ", " + Counted(row->layers, "layer");
    }
    panels[place->second].rows.push_back(row);
  }
  if (panels.size() > kMostPanels) panels.resize(kMostPanels);
  for (Panel& panel : panels) SortByPrecision(panel.rows);
  return panels;
}

void DrawBars(Canvas& canvas, const Panel& panel, Point corner) {
  double label = 0;
  double most = 0;
  for (const ReportRow* row : panel.rows) {
    label = std::max(label, TextWidth(LabelOf(*row)));
    most = std::max(most, row->tokens_per_s);
  }
  const double left = corner.x + label + 8;
  const Axis axis = {0, most, left, corner.x + kBarsWidth - kNumber};
  canvas.Text({corner.x, corner.y + 14}, panel.title, "strong");
  double y = corner.y + kTitle;
  canvas.Line({left, y - 2}, {left, y + kBar * static_cast<double>(panel.rows.size())}, "grid");
  for (const ReportRow* row : panel.rows) {
    const double end = axis.At(row->tokens_per_s);
    canvas.Text({left - 8, y + 13}, LabelOf(*row), "ink", Anchor::kEnd);
    canvas.Bar({left, y + 2, end, y + kBar - 2}, ColourOf(PrecisionRank(*row)),
               Number(row->gflops, 1) + " GFLOP/s");
    const double speed = row->tokens_per_s;
    canvas.Text({end + 6, y + 13}, speed < 1000 ? TickText(speed) : Grouped(speed));
    y += kBar;
  }
}

// ---- Curves ------------------------------------------------------------------------------------

constexpr size_t kAcross = 3;
constexpr double kCurveWidth = kWidth / kAcross;
constexpr double kCurveHeight = 226;

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
  SortByPrecision(rows);
  if (rows.size() > kMostPanels) rows.resize(kMostPanels);
  return rows;
}

void DrawCurve(Canvas& canvas, const ReportRow& row, Point corner) {
  const Box plot = {corner.x + 52, corner.y + 40, corner.x + kCurveWidth - 22,
                    corner.y + kCurveHeight - 54};
  const Unit unit = UnitOf(row.seconds.p50);
  const double low = row.quantiles.front() / unit.seconds;
  const double high =
      std::max(row.seconds.p99.value_or(row.seconds.p90) / unit.seconds, low * 1.02);
  const double margin = 0.15 * (high - low);
  const Axis x = {0, 100, plot.left, plot.right};
  const Axis y = {low - margin, high + margin, plot.bottom, plot.top};
  const std::string style = ColourOf(PrecisionRank(row));
  canvas.Text({corner.x, corner.y + 13},
              Shortened(Printable(row.workload + ", " + PrecisionOf(row)), 40), "strong");
  canvas.Text({corner.x, corner.y + 29},
              "p50 " + TimeText(row.seconds.p50) +
                  (row.seconds.p99 ? ", p99 " + TimeText(*row.seconds.p99) : "") + ", max " +
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
  if (row.seconds.p99) mark(99, *row.seconds.p99, "p99");
}

}  // namespace

std::string SpeedPicture(const Report& report, int threads) {
  const std::vector<Panel> panels = PanelsOf(report, threads);
  if (panels.empty()) return "";
  // Each panel goes where there is less.
  std::array<double, 2> heights = {0, 0};
  std::vector<Point> corners;
  for (const Panel& panel : panels) {
    const size_t column = heights[1] < heights[0] ? 1 : 0;
    corners.push_back({static_cast<double>(column) * (kBarsWidth + kBarsGap), heights[column]});
    heights[column] += HeightOf(panel);
  }
  Canvas canvas(kWidth, std::max(heights[0], heights[1]));
  for (size_t i = 0; i < panels.size(); ++i) DrawBars(canvas, panels[i], corners[i]);
  return canvas.Svg("Tokens a second by precision and target, on " + ThreadsText(threads));
}

std::string LatencyPicture(const Report& report, int threads) {
  const Rows rows = RowsOf(report, threads);
  if (rows.empty()) return "";
  const size_t down = (rows.size() + kAcross - 1) / kAcross;
  Canvas canvas(kWidth, static_cast<double>(down) * kCurveHeight);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = i / kAcross;
    DrawCurve(
        canvas, *rows[i],
        {static_cast<double>(i % kAcross) * kCurveWidth, static_cast<double>(row) * kCurveHeight});
  }
  return canvas.Svg("Latency of calls on " + ThreadsText(threads));
}

}  // namespace encore::tool
