// SPDX-License-Identifier: Apache-2.0
//
// Runs ForwardRows with exactly the workspace that it asks for.

#include "tests/support/output_rows.h"

#include <algorithm>
#include <cstddef>

#include "tests/support/compare.h"
#include "tests/support/guarded.h"

namespace encore {
namespace {

// Rows of `width` columns, with room for `gap` more between them.
Guarded::Strides WithGap(size_t width, ptrdiff_t gap) {
  return {static_cast<ptrdiff_t>(width) + gap, 1};
}

std::vector<float> Dense(const MutableView& view) {
  std::vector<float> rows;
  for (size_t r = 0; r < view.dim(0); ++r) {
    rows.insert(rows.end(), &view(r, 0), &view(r, 0) + view.dim(1));
  }
  return rows;
}

}  // namespace

std::vector<float> TakeRows(std::span<const float> y, std::span<const size_t> starts,
                            size_t d_model, OutputRows rows) {
  std::vector<float> taken;
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    const size_t row = rows == OutputRows::kFirst ? starts[b] : starts[b + 1] - 1;
    const std::span<const float> of_row = y.subspan(row * d_model, d_model);
    taken.insert(taken.end(), of_row.begin(), of_row.end());
  }
  return taken;
}

testing::AssertionResult SameOutputRows(const Encoder& encoder, const Batch& batch,
                                        const std::vector<float>& x, const std::vector<float>& y,
                                        const Executor& executor, const Taps& taps) {
  const size_t d = encoder.config().d_model;
  std::vector<size_t> starts(batch.seq_starts.get().begin(), batch.seq_starts.get().end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  Batch with_tokens = batch;
  with_tokens.seq_starts = starts;
  const Result<Workspace> workspace = encoder.MakeWorkspace(with_tokens, executor);
  if (!workspace.ok()) return testing::AssertionFailure() << workspace.status().message();
  for (const OutputRows rows : {OutputRows::kFirst, OutputRows::kLast}) {
    const Guarded in(Shape(starts.back(), d), WithGap(d, 3));
    const Guarded out(Shape(starts.size() - 1, d), WithGap(d, 5));
    for (size_t r = 0; r < starts.back(); ++r) std::copy_n(&x[r * d], d, &in.view()(r, 0));
    const Status status =
        encoder.ForwardRows(with_tokens, rows, in.view(), out.view(), *workspace, executor, taps);
    if (!status.ok()) return testing::AssertionFailure() << status.message();
    if (!in.Intact()) return testing::AssertionFailure() << "written between the rows of x";
    if (!out.Intact()) return testing::AssertionFailure() << "written between the rows of y";
    const testing::AssertionResult same = SameBits(Dense(out.view()), TakeRows(y, starts, d, rows));
    if (!same) {
      return testing::AssertionFailure()
             << same.message() << "; " << (rows == OutputRows::kFirst ? "the first" : "the last")
             << " rows";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace encore
