// SPDX-License-Identifier: Apache-2.0
//
// Matrices and heat maps for terminals and pipes; colours appear only where a person looks.

#ifndef ENCORE_TOOLS_ENCORE_TERMINAL_H_
#define ENCORE_TOOLS_ENCORE_TERMINAL_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "encore/ops.h"

namespace encore::tool {

// The system's side is in terminal_posix.cc, terminal_windows.cc and terminal_wasm.cc.

inline constexpr int kStdoutFile = 1;
inline constexpr int kStderrFile = 2;
// A standard file is a terminal that understands cursor movements.
bool IsTerminal(int file);
// Standard output is a terminal that shows colours, and NO_COLOR (no-color.org) is not set.
bool StdoutHasColour();
// Standard error is a terminal that understands cursor movements.
bool StderrIsTerminal();
// How far the file is written that standard output goes to; -1 if it is a pipe or a terminal.
int64_t StdoutPosition();
// It goes to a pipe whose reader has closed it.
bool StdoutIsBrokenPipe();

// While it lives, arguments and the console are UTF-8 and the standard files are bytes, as they are
// without it on every system but Windows. And a process that was started without one of its three
// standard files has one that cannot be used in its place. Else the next file that is opened would
// be taken for it.
class StandardFiles {
 public:
  // Gives the arguments in UTF-8, which stay as long as this.
  StandardFiles(int* argc, char*** argv);
  ~StandardFiles();
  StandardFiles(const StandardFiles&) = delete;
  StandardFiles& operator=(const StandardFiles&) = delete;

 private:
  std::vector<std::string> arguments_;
  std::vector<char*> argv_;
  std::vector<unsigned> code_pages_before_;  // the console's, for input and output; 0 without one
};

struct MatrixStyle {
  int precision = 4;  // digits after the point
  bool colour = false;
};

// A matrix [R, C] with a label for each row, indented by two. Rows and columns in the middle of a
// large one are left out, as NumPy does.
void PrintMatrix(std::ostream& out, const std::vector<std::string>& labels, ConstView matrix,
                 const MatrixStyle& style);

// Weights [R, C] in [0, 1], a cell each, with labels for rows and columns: numbers on a coloured
// ground, or numbers with a character whose ink grows with the weight. A large map has no numbers.
void PrintHeatMap(std::ostream& out, const std::vector<std::string>& rows,
                  const std::vector<std::string>& columns, ConstView weights,
                  const MatrixStyle& style);

// A line for each row of weights [R, C]: the column that it attends to most.
void PrintWhoAttendsMost(std::ostream& out, const std::vector<std::string>& rows,
                         const std::vector<std::string>& columns, ConstView weights,
                         const MatrixStyle& style);

// The column of the largest element of a row of weights [R, C]; the first of equals; NaN counts as
// nothing.
size_t LargestColumn(ConstView weights, size_t row);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TERMINAL_H_
