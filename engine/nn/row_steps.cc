// SPDX-License-Identifier: Apache-2.0
//
// How a step of a block is run on a part of the rows and columns, and how few rows are shared.

#include "engine/nn/row_steps.h"

#include <algorithm>

#include "engine/ops/gemm.h"

namespace encore::internal {

void RunStep(const Pass& pass, const AttentionStage& attention, const QkvWindow& window,
             const RowStep& step, const StepPart& part) {
  const size_t rows = part.end - part.begin;
  if (step.norm != nullptr) {
    NormArgs args{};
    args.x = part.RowsOf(step.in);
    args.ldx = step.in.ld;
    args.weight = step.norm->weight.data();
    args.bias = step.norm->bias.data();
    args.epsilon = pass.config->layer_norm_eps;
    args.y = part.RowsOf(step.out);
    args.ldy = step.out.ld;
    args.rows = rows;
    args.cols = pass.config->d_model;
    pass.kernels->norm->layer_norm(args);
    return;
  }
  GemmArgs args{};
  args.a = part.RowsOf(step.in);
  args.lda = step.in.ld;
  args.b = step.matrix->view();
  if (step.to_attention) {
    attention.SetOutput(window, part.begin, &args);
  } else {
    args.c = part.RowsOf(step.out);
    args.ldc = step.out.ld;
  }
  if (step.residual.data != nullptr) {
    args.residual = part.RowsOf(step.residual);
    args.ld_residual = step.residual.ld;
  }
  if (step.activate) {
    args.activation = pass.kernels->activation;
    args.relu = args.activation == nullptr;
  }
  args.next = part.next;
  GemmBlock(args, step.matrix->blocking(), 0, rows, part.panel_begin,
            std::min(part.panel_end, args.b.panels()));
}

void RunStepsByColumns(Team& team, const Pass& pass, const AttentionStage& attention,
                       const QkvWindow& window, const RowSteps& steps) {
  const size_t lanes = static_cast<size_t>(team.lanes());
  for (const RowStep* step = steps.begin(); step != steps.end(); ++step) {
    if (step->norm != nullptr) {
      const EvenSplit rows{pass.tokens(), std::min(pass.tokens(), lanes)};
      team.ForEach(rows.parts, [&](size_t i, int /*lane*/) {
        RunStep(pass, attention, window, *step, {rows.begin(i), rows.begin(i + 1)});
      });
      continue;
    }
    const EvenSplit panels{step->panels(), std::min(step->panels(), lanes)};
    const RowStep* following =
        std::find_if(step + 1, steps.end(), [](const RowStep& s) { return s.matrix != nullptr; });
    team.ForEach(panels.parts, [&](size_t i, int /*lane*/) {
      StepPart part{0, pass.tokens()};
      part.panel_begin = panels.begin(i);
      part.panel_end = panels.begin(i + 1);
      if (following != steps.end()) {
        // What this lane will most likely do next.
        const EvenSplit theirs{following->panels(), std::min(following->panels(), lanes)};
        if (i < theirs.parts) part.next = following->matrix->view().panel(theirs.begin(i));
      }
      RunStep(pass, attention, window, *step, part);
    });
  }
}

}  // namespace encore::internal
