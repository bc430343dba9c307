// SPDX-License-Identifier: Apache-2.0
//
// The rows of `encore bench` for people: a table that grows while rows are measured, or Markdown.

#ifndef ENCORE_TOOLS_ENCORE_BENCH_TABLE_H_
#define ENCORE_TOOLS_ENCORE_BENCH_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "encore/precision.h"
#include "tools/encore/report_data.h"

namespace encore::tool {

// Cells as a table of Markdown; the first line is its head. Bars in cells are escaped. Columns from
// `first_number` to before `last_number` are aligned to the right.
void PrintMarkdown(std::ostream& out, const std::vector<std::vector<std::string>>& lines,
                   size_t first_number, size_t last_number);

// Rows of layers; of texts through a model; of that in frames; of how many tokens fit into a time;
// of a server.
enum class BenchKind : uint8_t { kLayers, kTexts, kLoop, kBudget, kServer };

class BenchTable {
 public:
  // Products of integers are no floating-point operations.
  explicit BenchTable(BenchKind kind, const std::vector<Precision>& precisions = {})
      : kind_(kind), integers_(std::any_of(precisions.begin(), precisions.end(), IsInteger)) {}

  // What the columns mean, and their names.
  void PrintHead(std::ostream& out) const;
  // shares_core: the row's threads had less than their peak, see the notes.
  void PrintRow(std::ostream& out, const ReportRow& row, bool shares_core) const;

  // What opening each of the rows' models took, after rows of texts: a table, or Markdown.
  void PrintOpenings(std::ostream& out, const std::vector<ReportRow>& rows, bool markdown) const;

  void PrintAsMarkdown(std::ostream& out, const std::vector<ReportRow>& rows) const;

 private:
  struct Column {
    const char* title;
    size_t width;
    bool number;
  };
  const std::vector<Column>& Columns() const;
  std::vector<std::string> Cells(const ReportRow& row) const;

  BenchKind kind_;
  bool integers_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_BENCH_TABLE_H_
