// SPDX-License-Identifier: Apache-2.0
//
// The canvas, axes and places; the declarations say what each does.

#include "tools/encore/page.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// Digits of DejaVu Sans, the widest of the fonts that pages are likely to be shown in.
constexpr double kCharacterWidth = 7.7;
constexpr double kMarkRadius = 4.5;

std::string Length(double value) { return Number(value, 1); }

std::string At(const char* x_name, double x, const char* y_name, double y) {
  return std::string(" ") + x_name + "=\"" + Length(x) + "\" " + y_name + "=\"" + Length(y) + "\"";
}

std::string Tip(const std::string& tip) {
  return tip.empty() ? "" : "<title>" + EscapeXml(tip) + "</title>";
}

}  // namespace

double TextWidth(const std::string& text) {
  return kCharacterWidth * static_cast<double>(DisplayWidth(Printable(text)));
}

Canvas::Canvas(double width, double height) : width_(width), height_(height) {}

void Canvas::Text(Point at, const std::string& text, const std::string& style, Anchor anchor) {
  out_ << "<text class=\"" << style << "\"" << At("x", at.x, "y", at.y);
  if (anchor != Anchor::kStart) {
    out_ << " text-anchor=\"" << (anchor == Anchor::kEnd ? "end" : "middle") << "\"";
  }
  out_ << ">" << EscapeXml(text) << "</text>\n";
}

void Canvas::TurnedText(Point at, double degrees, const std::string& text,
                        const std::string& style) {
  out_ << "<text class=\"" << style << "\" transform=\"translate(" << Length(at.x) << " "
       << Length(at.y) << ") rotate(" << Length(degrees) << ")\">" << EscapeXml(text)
       << "</text>\n";
}

void Canvas::Line(Point from, Point to, const std::string& style, bool dashed) {
  out_ << "<line class=\"line " << style << (dashed ? " dashed" : "") << "\""
       << At("x1", from.x, "y1", from.y) << At("x2", to.x, "y2", to.y) << "/>\n";
}

void Canvas::Path(const std::vector<Point>& points, const std::string& style) {
  out_ << "<path class=\"line " << style << "\" d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    out_ << (i == 0 ? "M" : " L") << Length(points[i].x) << " " << Length(points[i].y);
  }
  out_ << "\"/>\n";
}

void Canvas::Bar(Box box, const std::string& style, const std::string& tip) {
  out_ << "<rect class=\"area " << style << "\"" << At("x", box.left, "y", box.top)
       << At("width", std::max(box.right - box.left, 0.0), "height",
             std::max(box.bottom - box.top, 0.0))
       << ">" << Tip(tip) << "</rect>\n";
}

void Canvas::Mark(Point at, const std::string& style, bool filled, bool round,
                  const std::string& tip) {
  const std::string look = std::string(filled ? "dot " : "ring ") + style;
  if (round) {
    out_ << "<circle class=\"" << look << "\"" << At("cx", at.x, "cy", at.y) << " r=\""
         << kMarkRadius << "\">";
  } else {
    out_ << "<rect class=\"" << look << "\"" << At("x", at.x - kMarkRadius, "y", at.y - kMarkRadius)
         << At("width", 2 * kMarkRadius, "height", 2 * kMarkRadius) << ">";
  }
  out_ << Tip(tip) << (round ? "</circle>\n" : "</rect>\n");
}

std::string Canvas::Svg(const std::string& label) const {
  const std::string size = Length(width_) + "\" height=\"" + Length(height_);
  return "<svg role=\"img\" width=\"" + size + "\" viewBox=\"0 0 " + Length(width_) + " " +
         Length(height_) + "\" aria-label=\"" + EscapeXml(label) + "\">\n" + out_.str() +
         "</svg>\n";
}

double Axis::At(double value) const {
  const double share =
      logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return std::lerp(from, to, share);
}

std::vector<double> LinearTicks(double low, double high, int count) {
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double mantissa = raw / power;
  const double step = power * (mantissa < 1.5 ? 1 : mantissa < 3.5 ? 2 : mantissa < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + 1e-9 * step && ticks.size() < 100; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  const bool wide = high / low > 3000;
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10, power);
      if (wide && digit > 1) continue;
      if (low <= value && value <= high) ticks.push_back(value);
    }
  }
  return ticks;
}

std::string TickText(double value) {
  if (value == 0) return "0";
  if (std::fabs(value) >= 1e6) return Number(value, 0);
  if (std::fabs(value) >= 100) return Grouped(value);
  const int digits =
      static_cast<int>(std::clamp(2 - std::floor(std::log10(std::fabs(value))), 0.0, 9.0));
  std::string text = Number(value, digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::vector<double> Spread(const std::vector<double>& wanted, double gap, double low, double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<double> places(wanted.size());
  double least = low;
  for (const size_t i : order) {
    places[i] = std::max(wanted[i], least);
    least = places[i] + gap;
  }
  double most = high;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    places[*i] = std::min(places[*i], most);
    most = places[*i] - gap;
  }
  return places;
}

bool Places::IsFree(Box box) const {
  if (box.left < area_.left || box.right > area_.right || box.top < area_.top ||
      box.bottom > area_.bottom) {
    return false;
  }
  return std::none_of(taken_.begin(), taken_.end(), [&](const Box& other) {
    return box.left < other.right && other.left < box.right && box.top < other.bottom &&
           other.top < box.bottom;
  });
}

Point Places::PlaceLabel(Point mark, const std::string& text) {
  const double width = TextWidth(text);
  const auto box_at = [&](Point start) {
    return Box{start.x - 1, start.y - 0.85 * kLabelSize, start.x + width + 1, start.y + 3};
  };
  Point chosen{mark.x + 7, mark.y + 4};
  const auto try_at = [&](double x, double y) {
    if (!IsFree(box_at({x, y}))) return false;
    chosen = {x, y};
    return true;
  };
  for (double distance = 7; distance <= 31; distance += 6) {
    const double left = mark.x - distance - width;
    const double middle = mark.x - width / 2;
    const double above = mark.y - distance + 1;
    const double below = mark.y + distance + 9;
    if (try_at(mark.x + distance, mark.y + 4) || try_at(left, mark.y + 4) ||
        try_at(middle, above) || try_at(middle, below) || try_at(mark.x + distance, above) ||
        try_at(mark.x + distance, below) || try_at(left, above) || try_at(left, below)) {
      break;
    }
  }
  Take(box_at(chosen));
  return chosen;
}

}  // namespace encore::tool
