// SPDX-License-Identifier: Apache-2.0
//
// The heat maps of an attention example: their layout and the SVG. All lengths are in pixels.

#include "tools/encore/attend_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr const char* kTitle = "Attention weights: who (row) attends to whom (column)";

constexpr double kMargin = 24;
constexpr double kHeadingHeight = 58;  // title and subtitle
constexpr double kPanelTitle = 22;     // "head 1", where there are several
constexpr double kGap = 12;            // between labels and cells
constexpr double kLegendHeight = 52;
constexpr size_t kPanelsAcross = 3;
// A character of a label at 13 px; sans-serif letters are about 0.58 em wide.
constexpr double kCharacterWidth = 7.6;

struct Layout {
  double cell = 0;
  double left = 0;       // room of the row labels
  double top = 0;        // room of the column labels
  bool slanted = false;  // column labels
  double panel_width = 0;
  double panel_height = 0;
  double width = 0;
  double height = 0;
};

// What is drawn of a label; tool tips have all of it.
std::string Label(const std::string& text) { return Shortened(text, 24); }

double LabelWidth(const std::string& text) {
  return kCharacterWidth * static_cast<double>(DisplayWidth(Label(text)));
}

double WidestLabel(const std::vector<std::string>& labels) {
  double widest = kCharacterWidth;
  for (const std::string& label : labels) widest = std::max(widest, LabelWidth(label));
  return widest;
}

std::string Subtitle(const AttentionExample& example) {
  return Shortened(example.title, 60) + "; " + Sizes(example);
}

Layout MakeLayout(const AttentionExample& example) {
  Layout layout;
  const size_t most = std::max(example.tokens.size(), example.keys.size());
  layout.cell = most <= 12 ? 54 : most <= 24 ? 36 : most <= 64 ? 18 : 8;
  layout.left = WidestLabel(example.tokens) + kGap;
  const double widest = WidestLabel(example.keys);
  layout.slanted = widest > layout.cell - 6;
  layout.top = layout.slanted ? 0.71 * widest + 18 : 22;  // 0.71: sin 45 degrees
  const double columns = static_cast<double>(example.keys.size());
  const double rows = static_cast<double>(example.tokens.size());
  // A slanted label may lean out of the panel to the right.
  double lean = kMargin;
  for (size_t c = 0; layout.slanted && c < example.keys.size(); ++c) {
    const double reach = 0.71 * LabelWidth(example.keys[c]) + 8;
    lean = std::max(lean, reach - (columns - static_cast<double>(c) - 0.5) * layout.cell);
  }
  layout.panel_width = layout.left + columns * layout.cell + lean;
  layout.panel_height =
      (example.heads > 1 ? kPanelTitle : 0) + layout.top + rows * layout.cell + kMargin;
  const size_t across = std::min(example.heads, kPanelsAcross);
  const size_t down = (example.heads + kPanelsAcross - 1) / kPanelsAcross;
  const double text =
      kCharacterWidth *
      static_cast<double>(std::max(DisplayWidth(Subtitle(example)), DisplayWidth(kTitle) * 9 / 7));
  layout.width = 2 * kMargin +
                 std::max(static_cast<double>(across) * layout.panel_width, std::max(text, 260.0));
  layout.height =
      kMargin + kHeadingHeight + static_cast<double>(down) * layout.panel_height + kLegendHeight;
  return layout;
}

// White to dark blue, for a share in [0, 1].
std::string Colour(double share) {
  constexpr std::array<std::array<double, 3>, 4> kStops = {
      {{255, 255, 255}, {189, 215, 238}, {74, 144, 200}, {10, 50, 110}}};
  const double at = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const size_t i = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const double t = at - static_cast<double>(i);
  char text[8];
  const auto mix = [&](size_t channel) {
    return static_cast<int>(std::lround(std::lerp(kStops[i][channel], kStops[i + 1][channel], t)));
  };
  std::snprintf(text, sizeof(text), "#%02x%02x%02x", mix(0) & 255, mix(1) & 255, mix(2) & 255);
  return text;
}

// Dark grounds carry white text.
bool IsDark(double share) { return share > 0.55; }

class Svg {
 public:
  explicit Svg(const AttentionExample& example)
      : example_(example), weights_(example.weights.View<float>()), layout_(MakeLayout(example)) {
    out_.precision(6);
    for (size_t i = 0; i < example.weights.size_bytes() / sizeof(float); ++i) {
      largest_ = std::max(largest_, weights_.data()[i]);
    }
  }

  std::string Draw() {
    out_ << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\""
         << " version=\"1.1\" width=\"" << layout_.width << "\" height=\"" << layout_.height
         << "\" viewBox=\"0 0 " << layout_.width << " " << layout_.height << "\" role=\"img\""
         << " font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\""
         << " fill=\"#24292f\">\n<title>" << EscapeXml(kTitle) << "</title>\n"
         << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    Text(kMargin, kMargin + 16, kTitle, "font-size=\"17\" font-weight=\"bold\"");
    Text(kMargin, kMargin + 37, Subtitle(example_), "fill=\"#57606a\"");
    for (size_t head = 0; head < example_.heads; ++head) DrawPanel(head);
    DrawLegend();
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  void Text(double x, double y, const std::string& text, const std::string& attributes) {
    out_ << "<text x=\"" << x << "\" y=\"" << y << "\" " << attributes << ">" << EscapeXml(text)
         << "</text>\n";
  }

  // NaN is drawn as nothing.
  double Share(float weight) const { return weight > 0 ? weight / largest_ : 0; }

  void DrawPanel(size_t head) {
    const size_t row = head / kPanelsAcross;
    const double left = kMargin + static_cast<double>(head % kPanelsAcross) * layout_.panel_width;
    double y = kMargin + kHeadingHeight + static_cast<double>(row) * layout_.panel_height;
    const double x = left + layout_.left;
    if (example_.heads > 1) {
      Text(x, y + 8, "head " + std::to_string(head + 1), "font-weight=\"bold\"");
      y += kPanelTitle;
    }
    y += layout_.top;
    const ConstView weights = weights_[head];
    if (layout_.cell >= 14) DrawLabels(x, y);
    for (size_t r = 0; r < example_.tokens.size(); ++r) {
      for (size_t c = 0; c < example_.keys.size(); ++c) DrawCell(x, y, r, c, weights(r, c));
    }
  }

  void DrawLabels(double x, double y) {
    for (size_t c = 0; c < example_.keys.size(); ++c) {
      const double centre = x + (static_cast<double>(c) + 0.5) * layout_.cell;
      if (layout_.slanted) {
        std::ostringstream turn;
        turn << "transform=\"rotate(-45 " << centre << " " << y - 6 << ")\"";
        Text(centre, y - 6, Label(example_.keys[c]), turn.str());
      } else {
        Text(centre, y - 8, Label(example_.keys[c]), "text-anchor=\"middle\"");
      }
    }
    for (size_t r = 0; r < example_.tokens.size(); ++r) {
      const double middle = y + (static_cast<double>(r) + 0.5) * layout_.cell;
      Text(x - kGap + 4, middle + 4.5, Label(example_.tokens[r]), "text-anchor=\"end\"");
    }
  }

  void DrawCell(double x, double y, size_t row, size_t column, float weight) {
    const double left = x + static_cast<double>(column) * layout_.cell;
    const double top = y + static_cast<double>(row) * layout_.cell;
    const double share = Share(weight);
    out_ << "<rect x=\"" << left << "\" y=\"" << top << "\" width=\"" << layout_.cell
         << "\" height=\"" << layout_.cell << "\" fill=\"" << Colour(share)
         << "\" stroke=\"#d0d7de\" stroke-width=\"0.5\"><title>" << EscapeXml(example_.tokens[row])
         << " &#8594; " << EscapeXml(example_.keys[column]) << ": " << Number(weight, 4)
         << "</title></rect>\n";
    if (layout_.cell < 30) return;
    const bool wide = layout_.cell >= 50;
    Text(left + layout_.cell / 2, top + layout_.cell / 2 + 4, Number(weight, wide ? 3 : 2),
         std::string("text-anchor=\"middle\" font-size=\"") + (wide ? "12" : "10") + "\" fill=\"" +
             (IsDark(share) ? "#ffffff" : "#24292f") + "\"");
  }

  void DrawLegend() {
    constexpr double kSteps = 40;
    constexpr double kWidth = 160;
    const double y = layout_.height - kLegendHeight + 12;
    for (double i = 0; i < kSteps; ++i) {
      out_ << "<rect x=\"" << kMargin + 16 + i * kWidth / kSteps << "\" y=\"" << y << "\" width=\""
           << kWidth / kSteps + 0.5 << "\" height=\"12\" fill=\"" << Colour(i / (kSteps - 1))
           << "\"/>\n";
    }
    out_ << "<rect x=\"" << kMargin + 16 << "\" y=\"" << y << "\" width=\"" << kWidth
         << "\" height=\"12\" fill=\"none\" stroke=\"#d0d7de\"/>\n";
    Text(kMargin, y + 11, "0", "fill=\"#57606a\"");
    Text(kMargin + 16 + kWidth + 8, y + 11, Number(largest_, 3), "fill=\"#57606a\"");
  }

  const AttentionExample& example_;
  const ConstView weights_;
  const Layout layout_;
  float largest_ = 0;
  std::ostringstream out_;
};

}  // namespace

std::string ExampleToSvg(const AttentionExample& example) { return Svg(example).Draw(); }

}  // namespace encore::tool
