// SPDX-License-Identifier: Apache-2.0
//
// Layout of matrices and heat maps in characters.

#include "tools/encore/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// More rows or columns than this, and the middle is left out; as many stay at either end.
constexpr size_t kMaxRows = 16;
constexpr size_t kMaxColumns = 12;
constexpr size_t kEdge = 3;
// A heat map of more columns than this has a character a cell in place of numbers.
constexpr size_t kMaxNumberedColumns = 12;
// Ink from none to full.
constexpr std::string_view kShades = " .:-=+*#%@";
// From white to dark blue among the 256 colours of terminals; light ones carry black text.
constexpr int kGround[] = {231, 195, 159, 153, 117, 111, 75, 33, 26, 19};
constexpr int kFirstDarkGround = 7;

// Indices 0 .. count - 1, or both ends with kGap between them.
constexpr size_t kGap = static_cast<size_t>(-1);
std::vector<size_t> Shown(size_t count, size_t most) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < count; ++i) {
    if (count <= most || i < kEdge || i >= count - kEdge) {
      shown.push_back(i);
    } else if (i == kEdge) {
      shown.push_back(kGap);
    }
  }
  return shown;
}

// Which of `levels` equal parts of [0, 1] holds this weight.
size_t Level(float weight, size_t levels) {
  if (!(weight > 0)) return 0;
  const double scaled = std::floor(static_cast<double>(weight) * static_cast<double>(levels));
  return scaled >= static_cast<double>(levels) ? levels - 1 : static_cast<size_t>(scaled);
}

std::string OnGround(const std::string& text, float weight) {
  const size_t level = Level(weight, std::size(kGround));
  return "\x1b[48;5;" + std::to_string(kGround[level]) + "m\x1b[38;5;" +
         (level >= static_cast<size_t>(kFirstDarkGround) ? "231" : "16") + "m" + text + "\x1b[0m";
}

void PrintNumberedMap(std::ostream& out, const std::vector<std::string>& rows,
                      const std::vector<std::string>& columns, ConstView weights,
                      const MatrixStyle& style) {
  const size_t label_width = WidestOf(rows);
  // A cell: a blank, the number, and a shade or a blank.
  const size_t number_width = std::max(WidestOf(columns), static_cast<size_t>(style.precision) + 2);
  out << "  " << PadRight("", label_width);
  for (const std::string& column : columns) out << "  " << PadLeft(column, number_width) << " ";
  out << "\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    out << "  " << PadRight(rows[r], label_width);
    for (size_t c = 0; c < columns.size(); ++c) {
      const float weight = weights(r, c);
      const std::string number = PadLeft(Number(weight, style.precision), number_width);
      if (style.colour) {
        out << " " << OnGround(" " + number + " ", weight);
      } else {
        out << "  " << number << kShades[Level(weight, kShades.size())];
      }
    }
    out << "\n";
  }
}

void PrintShadedMap(std::ostream& out, const std::vector<std::string>& rows, ConstView weights,
                    const MatrixStyle& style) {
  const size_t label_width = WidestOf(rows);
  // Weights of many keys are small: ink shows the share of the largest one.
  float largest = 0;
  for (size_t r = 0; r < weights.dim(0); ++r) {
    largest = std::max(largest, weights(r, LargestColumn(weights, r)));
  }
  for (size_t r = 0; r < weights.dim(0); ++r) {
    out << "  " << PadRight(rows[r], label_width) << " |";
    for (size_t c = 0; c < weights.dim(1); ++c) {
      const float share = largest > 0 ? weights(r, c) / largest : 0;
      if (style.colour) {
        out << OnGround(" ", share);
      } else {
        out << kShades[Level(share, kShades.size())];
      }
    }
    out << "|\n";
  }
  out << "  columns are the tokens in the same order; full ink is " << Number(largest, 4) << "\n";
}

}  // namespace

bool StdoutHasColour() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return IsTerminal(kStdoutFile);
}

bool StderrIsTerminal() { return IsTerminal(kStderrFile); }

void PrintMatrix(std::ostream& out, const std::vector<std::string>& labels, ConstView matrix,
                 const MatrixStyle& style) {
  const std::vector<size_t> rows = Shown(matrix.dim(0), kMaxRows);
  const std::vector<size_t> columns = Shown(matrix.dim(1), kMaxColumns);
  size_t number_width = 3;
  for (size_t r : rows) {
    for (size_t c : columns) {
      if (r == kGap || c == kGap) continue;
      number_width = std::max(number_width, Number(matrix(r, c), style.precision).size());
    }
  }
  const bool has_gap = rows.size() < labels.size();
  const size_t label_width = std::max<size_t>(WidestOf(labels), has_gap ? 3 : 0);
  for (size_t r : rows) {
    out << "  " << PadRight(r == kGap ? "..." : labels[r], label_width) << " ";
    for (size_t c : columns) {
      const bool gap = r == kGap || c == kGap;
      out << " " << PadLeft(gap ? "..." : Number(matrix(r, c), style.precision), number_width);
    }
    out << "\n";
  }
}

void PrintHeatMap(std::ostream& out, const std::vector<std::string>& rows,
                  const std::vector<std::string>& columns, ConstView weights,
                  const MatrixStyle& style) {
  if (columns.size() <= kMaxNumberedColumns) {
    PrintNumberedMap(out, rows, columns, weights, style);
  } else {
    PrintShadedMap(out, rows, weights, style);
  }
}

void PrintWhoAttendsMost(std::ostream& out, const std::vector<std::string>& rows,
                         const std::vector<std::string>& columns, ConstView weights,
                         const MatrixStyle& style) {
  const size_t widest = WidestOf(rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    const size_t key = LargestColumn(weights, r);
    out << "  " << PadRight(rows[r], widest) << " -> " << columns[key] << " "
        << Number(weights(r, key), style.precision) << "\n";
  }
}

size_t LargestColumn(ConstView weights, size_t row) {
  size_t best = 0;
  for (size_t c = 1; c < weights.dim(1); ++c) {
    const bool better = weights(row, c) > weights(row, best) || std::isnan(weights(row, best));
    if (better && !std::isnan(weights(row, c))) best = c;
  }
  return best;
}

}  // namespace encore::tool
