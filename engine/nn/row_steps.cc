// SPDX-License-Identifier: Apache-2.0
//
// How a step of a block is run on a part of the rows and columns, and how parts become tasks.

#include "engine/nn/row_steps.h"

#include <algorithm>

namespace encore::internal {
namespace {

// A step for rows [begin, end) and, of a linear one, panels [panel_begin, panel_end).
struct Part {
  size_t begin;
  size_t end;
  size_t panel_begin;
  size_t panel_end;
  size_t lane_row;  // where the lane's share of a buffer of blocks begins
};

float* RowsOf(const RowBuffer& buffer, const Part& part) {
  return buffer.data + (buffer.of_block ? part.lane_row : part.begin) * buffer.ld;
}

void RunPart(const Pass& pass, const RowStep& step, const Part& part) {
  const size_t rows = part.end - part.begin;
  if (step.norm != nullptr) {
    const float* bias = step.norm->bias.data();
    pass.kernels->layer_norm->rows(RowsOf(step.in, part), step.in.ld, step.norm->weight.data(),
                                   bias, pass.config->layer_norm_eps, RowsOf(step.out, part),
                                   step.out.ld, rows, pass.config->d_model);
    return;
  }
  GemmArgs args{};
  args.a = RowsOf(step.in, part);
  args.lda = step.in.ld;
  args.b = step.matrix->view();
  args.c = RowsOf(step.out, part);
  args.ldc = step.out.ld;
  if (step.residual.data != nullptr) {
    args.residual = RowsOf(step.residual, part);
    args.ld_residual = step.residual.ld;
  }
  if (step.activate) args.activation = pass.kernels->activation;
  GemmBlock(args, step.matrix->blocking(), 0, rows, part.panel_begin, part.panel_end);
}

size_t Panels(const RowStep& step) {
  return step.matrix != nullptr ? step.matrix->view().panels() : 1;
}

}  // namespace

RowBuffers::RowBuffers(const Pass& pass) {
  const ScratchPlan& plan = pass.plan;
  qkv = {pass.scratch + plan.qkv, plan.ld_qkv, false};
  context = {pass.scratch + plan.context, plan.ld_model, false};
  mid = {pass.scratch + plan.mid, plan.ld_model, true};
  normed = {pass.scratch + plan.normed, plan.ld_model, true};
  hidden = {pass.scratch + plan.hidden, plan.ld_ff, true};
}

void RunSteps(Team& team, const Pass& pass, std::initializer_list<RowStep> steps) {
  const size_t tokens = pass.tokens();
  if (tokens == 0) return;
  const size_t lanes = static_cast<size_t>(team.lanes());
  const RowPlan plan = ChooseRowPlan(tokens, lanes);
  if (plan.by_rows) {
    const size_t block_rows = DivCeil(tokens, plan.blocks.parts);
    team.ForEach(plan.blocks.parts, [&](size_t i, int lane) {
      const size_t lane_row = static_cast<size_t>(lane) * block_rows;
      for (const RowStep& step : steps) {
        RunPart(pass, step,
                {plan.blocks.begin(i), plan.blocks.begin(i + 1), 0, Panels(step), lane_row});
      }
    });
    return;
  }
  for (const RowStep& step : steps) {
    // Few rows: every lane gets some columns of all of them, or (a norm) some rows.
    const EvenSplit rows{tokens, step.norm != nullptr ? std::min(tokens, lanes) : 1};
    const EvenSplit panels{Panels(step), step.norm != nullptr ? 1 : std::min(Panels(step), lanes)};
    team.ForEach(rows.parts * panels.parts, [&](size_t task, int /*lane*/) {
      const size_t r = task / panels.parts;
      const size_t p = task % panels.parts;
      RunPart(
          pass, step,
          {rows.begin(r), rows.begin(r + 1), panels.begin(p), panels.begin(p + 1), rows.begin(r)});
    });
  }
}

}  // namespace encore::internal
