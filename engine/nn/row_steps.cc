// SPDX-License-Identifier: Apache-2.0
//
// How a step of a block is run on a part of the rows and columns, and how few rows are shared.

#include "engine/nn/row_steps.h"

#include <algorithm>

#include "engine/nn/product_observer.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {

namespace {

// The rows of floats that a product takes, or that are about to be made into such ones.
void Observe(const Pass& pass, const RowStep& step, const StepPart& part) {
  const PackedMatrix* const matrix = step.rows_for != nullptr ? step.rows_for : step.matrix;
  if (step.in.element_bytes != kFloatBytes || step.in.quant != nullptr) return;
  pass.observer->Observe(*matrix, part.FloatsOf(step.in), step.in.ld, part.end - part.begin);
}

}  // namespace

void RunStep(const Pass& pass, const AttentionStage& attention, const QkvWindow& window,
             const RowStep& step, const StepPart& part) {
  const size_t rows = part.end - part.begin;
  const float* residual = step.residual.data != nullptr ? part.FloatsOf(step.residual) : nullptr;
  if (step.norm != nullptr) {
    step.norm->Run(part.FloatsOf(step.in), step.in.ld, residual, step.residual.ld,
                   part.FloatsOf(step.out), step.out.ld, rows, pass.config->d_model);
    return;
  }
  if (pass.observer != nullptr) Observe(pass, step, part);
  if (step.rows_for != nullptr) {
    const PackedView& view = step.rows_for->view();
    view.kernel->make_rows({.in = part.FloatsOf(step.in),
                            .ld_in = step.in.ld,
                            .rows = rows,
                            .k = view.k,
                            .out = part.RowsOf(step.out),
                            .ld_out = step.out.ld,
                            .factor = view.row_factor,
                            .quant = part.QuantsOf(step.out)});
    return;
  }
  GemmArgs args{};
  args.a = part.RowsOf(step.in);
  args.lda = step.in.ld;
  args.row_quant = part.QuantsOf(step.in);
  args.b = step.matrix->view();
  if (step.out.kind == RowBuffer::Kind::kWindow) {
    attention.SetOutput(window, part.begin, &args);
  } else {
    args.c = part.FloatsOf(step.out);
    args.ldc = step.out.ld;
  }
  args.residual = residual;
  args.ld_residual = step.residual.ld;
  if (step.activation != nullptr) {
    args.relu = step.activation->relu;
    args.activation = step.activation->tile;
    args.gated = step.activation->gated;
  }
  args.next = part.next;
  GemmBlock(args, step.matrix->blocking(), 0, rows, std::max(part.panel_begin, step.panel_begin),
            std::min(part.panel_end, step.last_panel()));
}

void RunStepsByColumns(Team& team, const Pass& pass, const AttentionStage& attention,
                       const QkvWindow& window, size_t rows, const RowStep* begin,
                       const RowStep* end, const PackedMatrix* following) {
  const size_t threads = static_cast<size_t>(team.threads());
  for (const RowStep* step = begin; step != end; ++step) {
    if (step->matrix == nullptr) {
      // As many of these as follow each other.
      const RowStep* const first = step;
      while (step + 1 != end && step[1].matrix == nullptr) ++step;
      const EvenSplit parts{rows, std::min(rows, threads)};
      team.ForEach(parts.parts, [&](size_t i, int /*thread*/) {
        for (const RowStep* s = first; s <= step; ++s) {
          RunStep(pass, attention, window, *s, {parts.begin(i), parts.begin(i + 1)});
        }
      });
      continue;
    }
    const size_t count = step->last_panel() - step->panel_begin;
    const EvenSplit panels{count, std::min(count, threads)};
    const RowStep* later =
        std::find_if(step + 1, end, [](const RowStep& s) { return s.matrix != nullptr; });
    const PackedMatrix* next = later != end ? later->matrix : following;
    team.ForEach(panels.parts, [&](size_t i, int /*thread*/) {
      StepPart part{0, rows};
      part.panel_begin = step->panel_begin + panels.begin(i);
      part.panel_end = step->panel_begin + panels.begin(i + 1);
      if (next != nullptr) {
        // What this thread will most likely do next.
        const PackedView& view = next->view();
        const EvenSplit theirs{view.panels(), std::min(view.panels(), threads)};
        if (i < theirs.parts) part.next = view.panel(theirs.begin(i));
      }
      RunStep(pass, attention, window, *step, part);
    });
  }
}

}  // namespace encore::internal
