// SPDX-License-Identifier: Apache-2.0
//
// Bars of tokens a second, two panels side by side.

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "tools/encore/page.h"
#include "tools/encore/picture.h"
#include "tools/encore/report_pictures.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kWidth = 980;
constexpr double kPanelGap = 40;
constexpr double kPanelWidth = (kWidth - kPanelGap) / 2;
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
  for (Panel& panel : panels) {
    std::stable_sort(panel.rows.begin(), panel.rows.end(),
                     [](const ReportRow* a, const ReportRow* b) {
                       return PrecisionRank(*a) < PrecisionRank(*b);
                     });
  }
  return panels;
}

void DrawPanel(Canvas& canvas, const Panel& panel, Point corner) {
  double label = 0;
  double most = 0;
  for (const ReportRow* row : panel.rows) {
    label = std::max(label, TextWidth(LabelOf(*row)));
    most = std::max(most, row->tokens_per_s);
  }
  const double left = corner.x + label + 8;
  const Axis axis = {0, most, left, corner.x + kPanelWidth - kNumber};
  canvas.Text({corner.x, corner.y + 14}, panel.title, "strong");
  double y = corner.y + kTitle;
  canvas.Line({left, y - 2}, {left, y + kBar * static_cast<double>(panel.rows.size())}, "grid");
  for (const ReportRow* row : panel.rows) {
    const double end = axis.At(row->tokens_per_s);
    canvas.Text({left - 8, y + 13}, LabelOf(*row), "ink", Anchor::kEnd);
    canvas.Bar({left, y + 2, end, y + kBar - 2}, ColourOf(PrecisionRank(*row)),
               Number(row->gflops, 1) + " GFLOP/s");
    canvas.Text({end + 6, y + 13}, TickText(row->tokens_per_s));
    y += kBar;
  }
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
    corners.push_back({static_cast<double>(column) * (kPanelWidth + kPanelGap), heights[column]});
    heights[column] += HeightOf(panel);
  }
  Canvas canvas(kWidth, std::max(heights[0], heights[1]));
  for (size_t i = 0; i < panels.size(); ++i) DrawPanel(canvas, panels[i], corners[i]);
  return canvas.Svg("Tokens a second by precision and target, on " + ThreadsText(threads));
}

}  // namespace encore::tool
