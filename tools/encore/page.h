// SPDX-License-Identifier: Apache-2.0
//
// What pages have in common: a document that needs no other file, no script and no network, in the
// reader's choice of light or dark; and the means to draw its pictures: an SVG canvas, axes, ticks,
// and places for labels where nothing else is. All lengths are in pixels.

#ifndef ENCORE_TOOLS_ENCORE_PAGE_H_
#define ENCORE_TOOLS_ENCORE_PAGE_H_

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace encore::tool {

// Texts may be foreign; all of these escape them.
std::string Paragraph(const std::string& text, const std::string& style = "");
std::string List(const std::vector<std::string>& items, const std::string& style = "");
std::string Heading(const std::string& text);

// A picture (markup of Canvas::Svg) with the words below it.
std::string Figure(const std::string& svg, const std::string& caption);

struct Legend {
  std::string style;  // a class with a colour: "c1"
  std::string text;
};
// Marks in their colours with what they stand for.
std::string LegendLine(const std::vector<Legend>& entries);

// lines[0] is the head. Columns from `first_number` to before `last_number` are numbers.
std::string HtmlTable(const std::vector<std::vector<std::string>>& lines, size_t first_number,
                      size_t last_number);

// The whole document; `body` is markup.
std::string Page(const std::string& title, const std::string& body);

// ---- Pictures (picture.cc) ----------------------------------------------------------------------

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// Colours of series; later ones begin again.
inline constexpr size_t kColours = 8;
// "c1" for the first series, and so on.
std::string ColourOf(size_t series);

// What a character of a label takes at most on average, at kLabelSize.
inline constexpr double kLabelSize = 12;
double TextWidth(const std::string& text);

enum class Anchor { kStart, kMiddle, kEnd };

// Texts may be foreign; they are escaped here. `style` is a class of the page's style sheet: "ink",
// "muted", "grid", "strong", "c1" to "c8".
class Canvas {
 public:
  Canvas(double width, double height);

  void Text(Point at, const std::string& text, const std::string& style = "ink",
            Anchor anchor = Anchor::kStart);
  // Turned by so many degrees about its start.
  void TurnedText(Point at, double degrees, const std::string& text, const std::string& style);
  void Line(Point from, Point to, const std::string& style, bool dashed = false);
  void Path(const std::vector<Point>& points, const std::string& style);
  // Filled, with a tool tip.
  void Bar(Box box, const std::string& style, const std::string& tip = "");
  // Filled or a ring, round or square, with a tool tip.
  void Mark(Point at, const std::string& style, bool filled, bool round, const std::string& tip);

  // The element <svg>; `label` says what the picture shows, for those who cannot see it.
  std::string Svg(const std::string& label) const;

 private:
  double width_;
  double height_;
  std::ostringstream out_;
};

// From values to pixels.
struct Axis {
  double low = 0;  // values
  double high = 1;
  double from = 0;  // pixels
  double to = 1;
  bool logarithmic = false;

  double At(double value) const;
};

// About `count` round values within [low, high].
std::vector<double> LinearTicks(double low, double high, int count);
// 1, 10, 100 or 1, 2, 5, 10, depending on the span.
std::vector<double> LogTicks(double low, double high);

// A number of any size for an axis: "0.25", "40", "2 500".
std::string TickText(double value);

// The wanted places moved as little as keeps `gap` between neighbours, in their order from low on.
std::vector<double> Spread(const std::vector<double>& wanted, double gap, double low, double high);

// Remembers what is drawn, and finds places beside it.
class Places {
 public:
  explicit Places(Box area) : area_(area) {}
  void Take(Box box) { taken_.push_back(box); }
  bool IsFree(Box box) const;
  // Where a label for this mark begins (left end of its base line), as near as there is room;
  // taken from then on. Right of it where nothing is free.
  Point PlaceLabel(Point mark, const std::string& text);

 private:
  Box area_;
  std::vector<Box> taken_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_PAGE_H_
