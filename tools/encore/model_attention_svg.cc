// SPDX-License-Identifier: Apache-2.0
//
// Layout of the picture, its curves and its small heat maps. All lengths are in pixels.

#include "tools/encore/attend_report.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr double kMargin = 24;
constexpr double kHeading = 74;  // title and subtitle
constexpr double kRowLabels = 34;
constexpr double kGridWidth = 700;
constexpr double kThumbGap = 4;
constexpr double kDiagramGap = 36;  // between the grid and the diagram
constexpr double kCurves = 220;     // width of the curves
constexpr double kLine = 24;        // height of a token's line in the diagram
constexpr double kCharacterWidth = 7.6;
constexpr size_t kLabelColumns = 16;
// The picture's size is bounded: so many bytes for small maps, curves and cells, which take about
// as many as this each.
constexpr size_t kMostBytes = 285000;
constexpr size_t kMapBytes = 240;
constexpr size_t kCurveBytes = 95;
constexpr size_t kCellBytes = 8;
constexpr size_t kMostCurves = 800;
// Smaller weights are not drawn. Small heat maps of more than 12 tokens show weights in proportion,
// as a row's sum of 1 is shared by more.
constexpr float kLeastCurve = 0.02f;
constexpr float kLevels[] = {0.06f, 0.12f, 0.25f, 0.45f, 0.7f};
constexpr double kLevelTokens = 12;

constexpr const char* kStyle = R"(<style>
.page{fill:#fff}.t{fill:#24292f}.n{fill:#57606a}.tile{fill:#f2f4f7}.frame{fill:none;stroke:#d1242f;stroke-width:2}
.h path{fill:none;stroke:#0550ae;stroke-width:1}
.l0{stroke-opacity:.14}.l1{stroke-opacity:.3}.l2{stroke-opacity:.5}.l3{stroke-opacity:.75}
.q path{fill:none;stroke:#0969da}.q path.s{stroke:#8c959f}.q rect{fill:transparent}
.links:hover .q{opacity:.12}.links .q:hover{opacity:1}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.t{fill:#e6edf3}.n{fill:#9198a1}.tile{fill:#1b222c}.frame{stroke:#ff7b72}
.h path{stroke:#79c0ff}.q path{stroke:#58a6ff}.q path.s{stroke:#6e7681}}
</style>
)";

// One decimal, without a needless ".0".
std::string Short(double value) {
  std::string text = Number(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// A bound that at most so many weights exceed; 0 if there are no more of them.
float Cutoff(std::vector<float>& weights, size_t most) {
  if (weights.size() <= most) return 0;
  const auto last = weights.begin() + static_cast<ptrdiff_t>(most);
  std::nth_element(weights.begin(), last, weights.end(), std::greater<>());
  return *last;
}

class Picture {
 public:
  Picture(const ModelAttention& attention, const AttentionHabits& habits,
          const AttentionChoice& choice)
      : attention_(attention), habits_(habits), choice_(choice), n_(attention.size()) {
    if (!choice_.layer) {
      const HeadPlace place = MostTellingHead(habits);
      choice_ = {place.layer, place.head};
    }
    const double heads = static_cast<double>(attention.heads);
    thumb_ = std::clamp((kGridWidth - kRowLabels) / heads - kThumbGap, 16.0, 56.0);
    const double scale = std::min(1.0, kLevelTokens / static_cast<double>(n_));
    for (size_t i = 0; i < std::size(kLevels); ++i) {
      levels_[i] = kLevels[i] * static_cast<float>(scale);
    }
    for (const ModelToken& token : attention.tokens) {
      const size_t columns = std::min(kLabelColumns, DisplayWidth(token.label));
      label_width_ = std::max(label_width_, kCharacterWidth * static_cast<double>(columns) + 8);
    }
  }

  std::string Draw() {
    const double grid_width =
        kRowLabels + static_cast<double>(attention_.heads) * (thumb_ + kThumbGap);
    const double grid_height = 20 + static_cast<double>(attention_.layers()) * (thumb_ + kThumbGap);
    const double diagram_width = std::max(2 * label_width_ + kCurves, 380.0);
    const double diagram_height = 76 + static_cast<double>(n_) * kLine;
    const double width = 2 * kMargin + grid_width + kDiagramGap + diagram_width;
    const double height = kMargin + kHeading + std::max(grid_height, diagram_height) + kMargin;
    out_ << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
         << "width=\"" << Short(width) << "\" height=\"" << Short(height) << "\" viewBox=\"0 0 "
         << Short(width) << " " << Short(height) << "\" role=\"img\" font-family=\"Helvetica, "
         << "Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\">\n<title>" << EscapeXml(Title())
         << "</title>\n"
         << kStyle << "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
    const double text_columns = (width - 2 * kMargin) / (1.3 * kCharacterWidth);
    Text(kMargin, kMargin + 16, Shortened(Title(), static_cast<size_t>(text_columns)), "t",
         "font-size=\"18\" font-weight=\"bold\"");
    Text(kMargin, kMargin + 39,
         attention_.model + ": " + Counted(attention_.layers(), "layer") + " of " +
             Counted(attention_.heads, "head") +
             ". In each small map a row is a token that attends, a column a token attended to.",
         "n");
    DrawGrid(kMargin, kMargin + kHeading);
    DrawDiagram(kMargin + grid_width + kDiagramGap, kMargin + kHeading);
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  std::string Title() const { return "Who attends to whom: " + attention_.text; }

  void Text(double x, double y, const std::string& text, const char* style,
            const std::string& attributes = "") {
    out_ << "<text class=\"" << style << "\" x=\"" << Short(x) << "\" y=\"" << Short(y) << "\""
         << (attributes.empty() ? "" : " ") << attributes << ">" << EscapeXml(text) << "</text>\n";
  }

  // "next 71 %", of what the head's words look at most.
  std::string HabitOf(size_t layer, size_t head) const {
    if (habits_.kinds.empty()) return "";
    const std::vector<double>& shares = habits_.heads[layer][head];
    const auto most = std::max_element(shares.begin(), shares.end());
    return habits_.kinds[static_cast<size_t>(most - shares.begin())] + " " +
           Number(100 * *most, 0) + " %";
  }

  void DrawGrid(double left, double top) {
    std::vector<float> weights;
    for (size_t l = 0; l < attention_.layers(); ++l) {
      const ConstView layer = attention_.layer(l);
      for (size_t i = 0; i < attention_.heads * n_ * n_; ++i) {
        if (layer.data()[i] >= levels_[0]) weights.push_back(layer.data()[i]);
      }
    }
    const size_t taken =
        kMostCurves * kCurveBytes + attention_.layers() * attention_.heads * kMapBytes;
    const size_t cells = taken < kMostBytes ? (kMostBytes - taken) / kCellBytes : 0;
    const float least = Cutoff(weights, cells);
    const double step = thumb_ + kThumbGap;
    for (size_t h = 0; h < attention_.heads; ++h) {
      Text(left + kRowLabels + static_cast<double>(h) * step + thumb_ / 2, top + 12,
           (h == 0 ? "head " : "") + std::to_string(h + 1), "n",
           "text-anchor=\"middle\" font-size=\"11\"");
    }
    for (size_t l = 0; l < attention_.layers(); ++l) {
      const double y = top + 20 + static_cast<double>(l) * step;
      Text(left + kRowLabels - 8, y + thumb_ / 2 + 4, std::to_string(l + 1), "n",
           "text-anchor=\"end\" font-size=\"11\"");
      for (size_t h = 0; h < attention_.heads; ++h) {
        DrawThumb(left + kRowLabels + static_cast<double>(h) * step, y, l, h, least);
      }
    }
    Text(left, top + 12, "layer", "n", "font-size=\"11\"");
    const size_t row = *choice_.layer;
    const double x = left + kRowLabels + static_cast<double>(choice_.head.value_or(0)) * step;
    const double framed = choice_.head ? 1 : static_cast<double>(attention_.heads);
    out_ << "<rect class=\"frame\" x=\"" << Short(x - 1.5) << "\" y=\""
         << Short(top + 20 + static_cast<double>(row) * step - 1.5) << "\" width=\""
         << Short(framed * step - kThumbGap + 3) << "\" height=\"" << Short(thumb_ + 3)
         << "\" rx=\"3\"/>\n";
  }

  // A row of cells is a dashed line one cell thick; cells of one level share a path.
  void DrawThumb(double x, double y, size_t layer, size_t head, float least) {
    const ConstView weights = attention_.layer(layer)[head];
    const double cell = thumb_ / static_cast<double>(n_);
    out_ << "<rect class=\"tile\" x=\"" << Short(x) << "\" y=\"" << Short(y) << "\" width=\""
         << Short(thumb_) << "\" height=\"" << Short(thumb_)
         << "\"/><g class=\"h\" transform=\"translate(" << Short(x) << " "
         << Number(y + cell / 2, 2) << ")scale(" << Number(cell, 3) << ")\"><title>layer "
         << layer + 1 << ", head " << head + 1 << ": " << EscapeXml(HabitOf(layer, head))
         << "</title>";
    for (size_t level = 0; level < std::size(kLevels); ++level) {
      std::string path;
      for (size_t i = 0; i < n_; ++i) {
        for (size_t j = 0; j < n_; ++j) {
          if (weights(i, j) <= least || LevelOf(weights(i, j)) != level) continue;
          path += "M" + std::to_string(j) + " " + std::to_string(i) + "h1";
        }
      }
      if (!path.empty()) out_ << "<path class=\"l" << level << "\" d=\"" << path << "\"/>";
    }
    out_ << "</g>\n";
  }

  // Which of the levels a weight reaches; as many as there are for none.
  size_t LevelOf(float weight) const {
    size_t level = std::size(kLevels);
    for (size_t i = 0; i < std::size(kLevels) && weight >= levels_[i]; ++i) level = i;
    return level;
  }

  void DrawDiagram(double left, double top) {
    Tensor mean;
    ConstView weights = attention_.layer(*choice_.layer);
    std::string title = "Layer " + std::to_string(*choice_.layer + 1);
    if (choice_.head) {
      weights = weights[*choice_.head];
      title += ", head " + std::to_string(*choice_.head + 1);
    } else {
      mean = MeanOfHeads(weights);
      weights = mean.View<float>();
      title += ", mean over heads";
    }
    Text(left, top + 12, title, "t", "font-weight=\"bold\"");
    if (choice_.head && !habits_.kinds.empty()) {
      Text(left, top + 31, "Words look at: " + HabitOf(*choice_.layer, *choice_.head), "n");
    }
    const double x = left + label_width_;
    const double y = top + 68;
    Text(x - 8, y - 16, "attends", "n", "text-anchor=\"end\" font-size=\"11\"");
    Text(x + kCurves + 8, y - 16, "to", "n", "font-size=\"11\"");
    out_ << "<g class=\"links\">\n";
    DrawCurves(x, y, weights);
    out_ << "</g>\n";
    for (size_t j = 0; j < n_; ++j) {
      Text(x + kCurves + 8, y + static_cast<double>(j) * kLine + 4.5,
           Shortened(attention_.tokens[j].label, kLabelColumns),
           attention_.tokens[j].special ? "n" : "t");
    }
  }

  // The curves of each token are a group with its label: pointing at it hides the others.
  void DrawCurves(double x, double y, ConstView weights) {
    std::vector<float> all;
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) all.push_back(weights(i, j));
    }
    const float least = std::max(Cutoff(all, kMostCurves), kLeastCurve);
    for (size_t i = 0; i < n_; ++i) {
      const double from = y + static_cast<double>(i) * kLine;
      out_ << "<g class=\"q\"><rect x=\"" << Short(x - label_width_) << "\" y=\""
           << Short(from - kLine / 2) << "\" width=\"" << Short(label_width_) << "\" height=\""
           << Short(kLine) << "\"/>";
      for (size_t j = 0; j < n_; ++j) {
        const double weight = weights(i, j);
        if (!(weights(i, j) > least)) continue;
        const double to = y + static_cast<double>(j) * kLine;
        out_ << "<path" << (attention_.tokens[j].special ? " class=\"s\"" : "") << " d=\"M"
             << Short(x) << " " << Short(from) << "C" << Short(x + kCurves / 2) << " "
             << Short(from) << " " << Short(x + kCurves / 2) << " " << Short(to) << " "
             << Short(x + kCurves) << " " << Short(to) << "\" stroke-width=\""
             << Short(1 + 4 * weight) << "\" stroke-opacity=\"" << Number(0.03 + 0.97 * weight, 2)
             << "\"/>";
      }
      Text(x - 8, from + 4.5, Shortened(attention_.tokens[i].label, kLabelColumns),
           attention_.tokens[i].special ? "n" : "t", "text-anchor=\"end\"");
      out_ << "</g>\n";
    }
  }

  const ModelAttention& attention_;
  const AttentionHabits& habits_;
  AttentionChoice choice_;
  const size_t n_;
  double thumb_ = 0;
  double label_width_ = 0;
  float levels_[std::size(kLevels)] = {};
  std::ostringstream out_;
};

}  // namespace

std::string ModelAttentionSvg(const ModelAttention& attention, const AttentionHabits& habits,
                              const AttentionChoice& choice) {
  if (attention.size() > kMostPicturedTokens) {
    throw Failure("the text has " + std::to_string(attention.size()) + " tokens, and --svg draws " +
                  std::to_string(kMostPicturedTokens) + " at most");
  }
  return Picture(attention, habits, choice).Draw();
}

}  // namespace encore::tool
