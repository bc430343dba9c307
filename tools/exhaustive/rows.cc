// SPDX-License-Identifier: Apache-2.0
//
// Makes the lines.

#include "tools/exhaustive/rows.h"

#include <bit>
#include <cstdio>

#include "tools/exhaustive/fast_reference.h"

namespace encore::tool {
namespace {

void SetPlace(Row& row, float x, float y) {
  row.at_float = true;
  row.x = x;
  row.y = y;
}

// A number of times, and the first of them.
void SetCount(Row& row, const Count& count) {
  row.observed = static_cast<double>(count.times);
  if (count.times == 0) return;
  SetPlace(row, std::bit_cast<float>(count.first_bits), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

std::string PlaceText(const Row& row) {
  if (!row.at_float) return "";
  char text[96];
  const double x = row.x;
  if (row.kind == RowKind::kError) {
    std::snprintf(text, sizeof(text), "f(%.9g) = %.9g", x, static_cast<double>(row.y));
  } else {
    std::snprintf(text, sizeof(text), row.kind == RowKind::kJump ? "after %.9g" : "first at %.9g",
                  x);
  }
  return text;
}

std::vector<Row> RowsOf(const Subject& subject, const std::vector<TargetResult>& results) {
  constexpr double kNoPromise = std::numeric_limits<double>::infinity();
  std::vector<Row> rows;
  const auto add = [&](const TargetResult& result, RowKind kind, const std::string& what) -> Row& {
    Row row{.function = subject.name(),
            .family = subject.family(),
            .kind = kind,
            .what = what,
            .target = result.target,
            .step = result.step};
    rows.push_back(row);
    return rows.back();
  };
  for (size_t m = 0; m < subject.measures().size(); ++m) {
    const Measure& measure = subject.measures()[m];
    for (const TargetResult& result : results) {
      Row& row = add(result, RowKind::kError, measure.name);
      const Peak& worst = result.worst[m];
      row.observed = worst.error;
      row.promise = result.fma ? measure.promise : measure.promise_no_fma;
      if (worst.error != 0) SetPlace(row, worst.x, worst.y);
    }
  }
  for (const TargetResult& result : results) {
    if (!subject.measures()[0].has_sign || result.step != 1) continue;
    Row& row = add(result, RowKind::kJump, "  jump between neighbours");
    row.observed = result.jump.error;
    if (result.jump.error != 0) SetPlace(row, result.jump.x, result.jump.y);
  }
  for (const TargetResult& result : results) {
    Row& row = add(result, RowKind::kFalls, "  falls where it should rise");
    SetCount(row, result.falls);
    row.promise = subject.monotone() ? 0 : kNoPromise;
  }
  for (const TargetResult& result : results) {
    if (result.same_as.empty()) continue;
    Row& row = add(result, RowKind::kBits, "  other bits than " + result.same_as);
    SetCount(row, result.differs);
    row.promise = 0;
  }
  for (const TargetResult& result : results) {
    Row& row = add(result, RowKind::kSpecial, "  wrong special values");
    SetCount(row, result.wrong_special);
    row.promise = 0;
  }
  return rows;
}

Row ReferenceRow(const Subject& subject) {
  constexpr uint64_t kStep = 65537 * 2 - 1;
  Row row{.function = subject.name(),
          .family = subject.family(),
          .kind = RowKind::kReference,
          .what = "  the search's own reference",
          .target = "",
          .step = kStep};
  row.observed = LargestFastError(subject, kStep);
  row.promise = kFastError;
  return row;
}

}  // namespace encore::tool
