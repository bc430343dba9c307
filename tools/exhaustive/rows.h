// SPDX-License-Identifier: Apache-2.0
//
// What a search found, as lines: what was looked at, how large it is, what was promised. For the
// tables of `encore-exhaustive` and for `encore verify`.

#ifndef ENCORE_TOOLS_EXHAUSTIVE_ROWS_H_
#define ENCORE_TOOLS_EXHAUSTIVE_ROWS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tools/exhaustive/search.h"
#include "tools/exhaustive/subject.h"

namespace encore::tool {

enum class RowKind { kError, kJump, kFalls, kBits, kSpecial, kReference };

struct Row {
  std::string function;
  Family family = Family::kFunction;
  RowKind kind = RowKind::kError;
  std::string what;    // "ulp", "falls", "bits unlike AVX2's"
  std::string target;  // empty for kReference
  uint64_t step = 1;   // every step-th float was tried
  double observed = 0;
  double promise = std::numeric_limits<double>::infinity();  // infinite: none
  bool at_float = false;                                     // x and y say where
  float x = 0;
  float y = 0;

  bool kept() const { return observed <= promise; }
  bool promised() const { return promise != std::numeric_limits<double>::infinity(); }
};

// Where a row's number is: "f(5.20192909) = 181.621201", or "".
std::string PlaceText(const Row& row);

std::vector<Row> RowsOf(const Subject& subject, const std::vector<TargetResult>& results);

// The check of the fast references themselves.
Row ReferenceRow(const Subject& subject);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_EXHAUSTIVE_ROWS_H_
