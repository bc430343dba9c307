// SPDX-License-Identifier: Apache-2.0
//
// Roofs are drawn first, then marks, then numbers where there is room.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tools/encore/page.h"
#include "tools/encore/report_pages.h"
#include "tools/encore/report_series.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kWidth = 980;
constexpr double kHeight = 500;
constexpr Box kPlot = {76, 14, 800, 448};

double Intensity(const ReportRow& row) { return row.flops / row.weight_bytes; }
double Gflops(const ReportRow& row) { return row.flops / row.seconds.p50 * 1e-9; }

struct Roofs {
  std::vector<const ReportRoof*> compute;
  std::vector<const ReportRoof*> read;
};

// Peaks only of precisions that rows have.
Roofs RoofsOf(const Report& report, const Rows& rows, int threads) {
  const std::string best = BestTarget(report);
  Roofs roofs;
  for (const ReportRoof& roof : report.roofs) {
    if (roof.threads != threads) continue;
    if (roof.kind == "read") roofs.read.push_back(&roof);
    const bool has_rows = std::any_of(rows.begin(), rows.end(), [&](const ReportRow* row) {
      return row->precision == roof.precision;
    });
    if (roof.kind == "compute" && roof.target == best && has_rows) roofs.compute.push_back(&roof);
  }
  return roofs;
}

class Roofline {
 public:
  Roofline(const Report& report, int threads)
      : report_(report),
        threads_(threads),
        rows_(RowsWithThreads(RowsOfBestTarget(report), threads)),
        roofs_(RoofsOf(report, rows_, threads)) {}

  std::string Draw() {
    if (rows_.empty()) return "";
    SetAxes();
    DrawGrid();
    DrawReadRoofs();
    DrawComputeRoofs();
    DrawRows();
    return canvas_.Svg("Roofline of " + report_.machine.cpu + " on " + ThreadsText(threads_));
  }

 private:
  void SetAxes() {
    double x_low = Intensity(*rows_[0]);
    double x_high = x_low;
    double y_low = Gflops(*rows_[0]);
    top_ = y_low;
    for (const ReportRow* row : rows_) {
      x_low = std::min(x_low, Intensity(*row));
      x_high = std::max(x_high, Intensity(*row));
      y_low = std::min(y_low, Gflops(*row));
      top_ = std::max(top_, Gflops(*row));
    }
    for (const ReportRoof* roof : roofs_.compute) top_ = std::max(top_, roof->flops_per_s * 1e-9);
    // So far to the left that the slopes are seen.
    for (const ReportRoof* roof : roofs_.read) {
      x_low = std::min(x_low, 0.4 * top_ / (roof->bytes_per_s * 1e-9));
    }
    x_ = {x_low / 2, x_high * 2, kPlot.left, kPlot.right, true};
    y_ = {y_low / 3, top_ * 1.7, kPlot.bottom, kPlot.top, true};
  }

  Point At(double intensity, double gflops) const { return {x_.At(intensity), y_.At(gflops)}; }

  void DrawGrid() {
    for (const double tick : LogTicks(x_.low, x_.high)) {
      const double x = x_.At(tick);
      canvas_.Line({x, kPlot.top}, {x, kPlot.bottom}, "grid");
      canvas_.Text({x, kPlot.bottom + 18}, TickText(tick), "muted", Anchor::kMiddle);
    }
    for (const double tick : LogTicks(y_.low, y_.high)) {
      const double y = y_.At(tick);
      canvas_.Line({kPlot.left, y}, {kPlot.right, y}, "grid");
      canvas_.Text({kPlot.left - 8, y + 4}, TickText(tick), "muted", Anchor::kEnd);
    }
    canvas_.Text({(kPlot.left + kPlot.right) / 2, kPlot.bottom + 42},
                 "floating-point operations for each byte of weights", "muted", Anchor::kMiddle);
    canvas_.TurnedText({16, 0.5 * (kPlot.top + kPlot.bottom) + 32}, -90, "GFLOP/s", "muted");
  }

  // A slope from the left or lower edge up to the highest roof, with its name along it.
  void DrawReadRoofs() {
    constexpr double kStart = 12;  // of the name, along the line
    double last = 0;               // slope with its name there
    for (const ReportRoof* roof : roofs_.read) {
      const double gbytes = roof->bytes_per_s * 1e-9;
      const double from = std::max(x_.low, y_.low / gbytes);
      const double to = std::min(x_.high, top_ / gbytes);
      if (from >= to) continue;
      const Point low = At(from, from * gbytes);
      const Point high = At(to, to * gbytes);
      canvas_.Line(low, high, "c8");
      const double angle = std::atan2(high.y - low.y, high.x - low.x);
      const std::string name = roof->level + " " + TickText(std::round(gbytes)) + " GB/s";
      const double length = std::hypot(high.x - low.x, high.y - low.y);
      // Behind that of a neighbour which is too near for two names side by side.
      const bool near = last > 0 && std::fabs(y_.At(gbytes) - y_.At(last)) < 26;
      const double start = near && length > 320 ? 160 : kStart;
      if (!near) last = gbytes;
      const auto along = [&](double distance, double off) {
        return Point{low.x + distance * std::cos(angle) + off * std::sin(angle),
                     low.y + distance * std::sin(angle) - off * std::cos(angle)};
      };
      canvas_.TurnedText(along(start, 5), angle * 180 / std::numbers::pi, name, "muted");
      for (double at = start; at < start + TextWidth(name); at += 6) {
        const Point point = along(at, 9);
        places_.Take({point.x - 5, point.y - 6, point.x + 5, point.y + 6});
      }
    }
  }

  void DrawComputeRoofs() {
    double fastest = 0;
    for (const ReportRoof* roof : roofs_.read)
      fastest = std::max(fastest, roof->bytes_per_s * 1e-9);
    std::vector<double> wanted;
    for (const ReportRoof* roof : roofs_.compute) {
      wanted.push_back(y_.At(roof->flops_per_s * 1e-9) + 4);
    }
    const std::vector<double> heights = Spread(wanted, 15, kPlot.top + 6, kPlot.bottom);
    for (size_t i = 0; i < roofs_.compute.size(); ++i) {
      const double gflops = roofs_.compute[i]->flops_per_s * 1e-9;
      const double left = fastest > 0 ? std::max(x_.low, gflops / fastest) : x_.low;
      ReportRow row;
      row.precision = roofs_.compute[i]->precision;
      const std::string style = ColourOf(PrecisionRank(row));
      canvas_.Line(At(std::min(left, x_.high), gflops), At(x_.high, gflops), style);
      canvas_.Line({kPlot.right, y_.At(gflops)}, {kPlot.right + 10, heights[i] - 4}, style);
      canvas_.Text(
          {kPlot.right + 14, heights[i]},
          Shortened(Printable(row.precision), 12) + " peak " + TickText(std::round(gflops)), style);
    }
  }

  void DrawRows() {
    for (const ReportRow* row : rows_) {
      const Point at = At(Intensity(*row), Gflops(*row));
      places_.Take({at.x - 6, at.y - 6, at.x + 6, at.y + 6});
      std::string tip = row->workload + ", " + PrecisionOf(*row) + ", " + row->weights + ", " +
                        EngineOf(*row) + ": " + Number(Gflops(*row), 1) + " GFLOP/s";
      if (row->roof) tip += ", " + Number(100 * row->roof->share, 0) + " % of " + row->roof->name;
      canvas_.Mark(at, ColourOf(PrecisionRank(*row)), row->weights == "warm",
                   row->engine == "encore", tip);
    }
    const std::vector<std::string> names = WorkloadNames(report_);
    for (const ReportRow* row : rows_) {
      const auto found = std::find(names.begin(), names.end(), row->workload);
      const std::string number = std::to_string(found - names.begin() + 1);
      const Point mark = At(Intensity(*row), Gflops(*row));
      canvas_.Text(places_.PlaceLabel(mark, number), number, ColourOf(PrecisionRank(*row)));
    }
  }

  const Report& report_;
  const int threads_;
  const Rows rows_;
  const Roofs roofs_;
  double top_ = 0;  // GFLOP/s of the highest roof or row
  Axis x_;
  Axis y_;
  Canvas canvas_{kWidth, kHeight};
  Places places_{kPlot};
};

}  // namespace

std::string RooflinePicture(const Report& report, int threads) {
  return Roofline(report, threads).Draw();
}

}  // namespace encore::tool
