// SPDX-License-Identifier: Apache-2.0
//
// The findings of `encore-exhaustive` for people (a table), for the README (Markdown), for programs
// (JSON), and as lines for tests/reference/hard_floats.h. Not here: what they are (rows.h).

#ifndef ENCORE_TOOLS_EXHAUSTIVE_REPORT_H_
#define ENCORE_TOOLS_EXHAUSTIVE_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "tools/exhaustive/rows.h"
#include "tools/exhaustive/search.h"

namespace encore::tool {

// One function's rows; targets that found the same share a line.
void PrintRows(std::ostream& out, const std::vector<Row>& rows, bool colour);
void PrintRowsHeader(std::ostream& out);

// The rows of all functions.
std::string MarkdownOf(const std::vector<Row>& rows);
std::string JsonOf(const std::vector<Row>& rows);

// The worst floats of a function, of up to `most` binades, for the targets with FMA and without.
void PrintHardFloats(std::ostream& out, const std::string& function,
                     const std::vector<TargetResult>& results, size_t most);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_EXHAUSTIVE_REPORT_H_
