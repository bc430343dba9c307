// SPDX-License-Identifier: Apache-2.0
//
// Lines of speed-up over threads; their names stand at their right ends.

#include <algorithm>
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
constexpr double kHeight = 380;
constexpr Box kPlot = {60, 14, 660, 330};

struct Series {
  std::string name;
  std::map<int, double> tokens_per_s;  // by threads
};

// That of most rows.
std::string CommonPrecision(const Rows& rows) {
  std::map<std::string, size_t> counts;
  for (const ReportRow* row : rows) ++counts[PrecisionOf(*row)];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second || (a.second == b.second && a.first < b.first);
      });
  return most->first;
}

std::vector<Series> SeriesOf(const Report& report) {
  const Rows rows = WarmRows(RowsOfBestTarget(report));
  if (rows.empty()) return {};
  const std::string precision =
      std::any_of(rows.begin(), rows.end(),
                  [](const ReportRow* row) { return PrecisionRank(*row) == 0; })
          ? "f32"
          : CommonPrecision(rows);
  std::vector<Series> series;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const ReportRow* row : rows) {
    if (PrecisionOf(*row) != precision) continue;
    const auto [place, is_new] = places.insert({{row->engine, row->workload}, series.size()});
    if (is_new) {
      series.push_back(
          {row->engine == "encore" ? row->workload : row->engine + " " + row->workload, {}});
    }
    series[place->second].tokens_per_s.insert({row->threads, row->tokens_per_s});
  }
  std::erase_if(series, [](const Series& one) { return one.tokens_per_s.size() < 2; });
  if (series.size() > kColours) series.resize(kColours);
  return series;
}

}  // namespace

std::string ScalingPicture(const Report& report) {
  const std::vector<Series> series = SeriesOf(report);
  if (series.empty()) return "";
  int least = series[0].tokens_per_s.begin()->first;
  int most = least;
  double highest = 1;
  for (const Series& one : series) {
    const double base = one.tokens_per_s.begin()->second;
    least = std::min(least, one.tokens_per_s.begin()->first);
    most = std::max(most, one.tokens_per_s.rbegin()->first);
    for (const auto& [threads, speed] : one.tokens_per_s) highest = std::max(highest, speed / base);
  }
  const double ideal = static_cast<double>(most) / least;
  const double top = std::max(highest, ideal);
  const Axis x = {static_cast<double>(least), static_cast<double>(most), kPlot.left, kPlot.right};
  const Axis y = {0, top * 1.08, kPlot.bottom, kPlot.top};

  Canvas canvas(kWidth, kHeight);
  for (const double tick : LinearTicks(0, y.high, 6)) {
    canvas.Line({kPlot.left, y.At(tick)}, {kPlot.right, y.At(tick)}, "grid");
    canvas.Text({kPlot.left - 8, y.At(tick) + 4}, TickText(tick), "muted", Anchor::kEnd);
  }
  double last = -100;
  for (const int threads : ThreadCounts(report)) {
    if (threads < least || threads > most || x.At(threads) < last + 30) continue;
    last = x.At(threads);
    canvas.Line({last, kPlot.top}, {last, kPlot.bottom}, "grid");
    canvas.Text({last, kPlot.bottom + 18}, std::to_string(threads), "muted", Anchor::kMiddle);
  }
  canvas.Text({0.5 * (kPlot.left + kPlot.right), kPlot.bottom + 42}, "threads", "muted",
              Anchor::kMiddle);
  canvas.TurnedText({16, 0.5 * (kPlot.top + kPlot.bottom) + 36}, -90, "speed-up", "muted");
  canvas.Line({x.At(least), y.At(1)}, {x.At(most), y.At(ideal)}, "muted", true);

  std::vector<double> wanted = {y.At(ideal) + 4};
  for (size_t i = 0; i < series.size(); ++i) {
    const double base = series[i].tokens_per_s.begin()->second;
    std::vector<Point> points;
    for (const auto& [threads, speed] : series[i].tokens_per_s) {
      points.push_back({x.At(threads), y.At(speed / base)});
      canvas.Mark(points.back(), ColourOf(i), true, true,
                  series[i].name + ", " + ThreadsText(threads) + ": " + Number(speed / base, 2));
    }
    canvas.Path(points, ColourOf(i));
    wanted.push_back(points.back().y + 4);
  }
  const std::vector<double> heights = Spread(wanted, 16, kPlot.top + 6, kPlot.bottom);
  canvas.Line({kPlot.right + 6, wanted[0] - 4}, {kPlot.right + 26, heights[0] - 4}, "muted", true);
  canvas.Text({kPlot.right + 30, heights[0]}, "ideal", "muted");
  for (size_t i = 0; i < series.size(); ++i) {
    const double speedup =
        series[i].tokens_per_s.rbegin()->second / series[i].tokens_per_s.begin()->second;
    canvas.Line({kPlot.right + 6, wanted[i + 1] - 4}, {kPlot.right + 26, heights[i + 1] - 4},
                ColourOf(i));
    canvas.Text({kPlot.right + 30, heights[i + 1]},
                Shortened(Printable(series[i].name), 30) + "  " + Number(speedup, 2), ColourOf(i));
  }
  return canvas.Svg("Speed by number of threads");
}

}  // namespace encore::tool
