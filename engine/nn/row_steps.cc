// SPDX-License-Identifier: Apache-2.0
//
// How a step of a block is run on a part of the rows and columns, and how few rows are shared.

#include "engine/nn/row_steps.h"

#include <algorithm>

#include "engine/base/strict_math.h"
#include "engine/nn/experts.h"
#include "engine/nn/product_observer.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {

namespace {

// out = scale in (* by, where it is given).
void ScaleAndMultiply(ConstRows in, ConstRows by, float scale, Rows out, size_t rows,
                      size_t width) {
  for (size_t r = 0; r < rows; ++r) {
    const float* const x = in.row(r);
    float* const y = out.row(r);
    for (size_t c = 0; c < width; ++c) {
      y[c] = by.data == nullptr ? x[c] * scale : x[c] * scale * by.row(r)[c];
    }
  }
}

void Sum(ConstRows in, ConstRows residual, Rows out, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < width; ++c) out.row(r)[c] = in.row(r)[c] + residual.row(r)[c];
  }
}

// out[r][c kernel + t] = x0[r + t - kernel / 2][c], or 0 past the ends of the row's sequence.
void JoinNeighbours(const Pass& pass, size_t kernel, const StepPart& part, Rows out) {
  const std::span<const size_t> starts = pass.starts();
  const ConstRows x0{pass.At(pass.scratch_plan.first), pass.scratch_plan.ld_model};
  const size_t width = pass.config->d_model;
  for (size_t r = 0; r < part.rows; ++r) {
    const size_t row = part.begin + r;
    const auto next = std::upper_bound(starts.begin(), starts.end(), row);
    for (size_t t = 0; t < kernel; ++t) {
      // Rows are counted from kernel / 2 before the first, where none is negative.
      const size_t at = row + t;
      const bool inside = at >= *(next - 1) + kernel / 2 && at < *next + kernel / 2;
      const float* const from = inside ? x0.row(at - kernel / 2) : nullptr;
      float* const to = out.row(r) + t;
      for (size_t c = 0; c < width; ++c) to[c * kernel] = from == nullptr ? 0 : from[c];
    }
  }
}

}  // namespace

StepRows::StepRows(const Pass& pass, ConstRows in, Rows out, bool own_buffers, bool context_too)
    : x(in), own_context(context_too), own(own_buffers) {
  const ScratchPlan& plan = pass.scratch_plan;
  written = {{{nullptr, 0},
              out,
              {pass.At(plan.context), plan.ld_context},
              {pass.At(plan.mid), plan.ld_model},
              {pass.At(plan.normed), plan.ld_model},
              {pass.At(plan.hidden), plan.ld_ff},
              {pass.At(plan.layer_input), plan.ld_input}}};
  first = {pass.At(plan.first), plan.ld_model};
  input = {pass.At<std::byte>(plan.input), plan.input_stride, pass.At<RowQuant>(plan.quants)};
  routes = {pass.At(plan.routes), plan.ld_routes};
  expert = {pass.At(plan.expert), plan.ld_model};
  expert_rows = plan.expert_rows;
}

StepRows StepRows::From(size_t begin, size_t thread_row) const {
  const size_t row = own ? thread_row : begin;
  const size_t wide_row = own ? thread_row * expert_rows : begin;
  StepRows rows = *this;
  rows.x = x.From(begin);
  rows.first = first.From(begin);
  for (size_t i = 0; i < written.size(); ++i) {
    const auto place = static_cast<Place>(i);
    const bool is_own = place == Place::kContext ? own_context : own && place != Place::kY;
    rows.written[i] = written[i].From(is_own ? thread_row : begin);
  }
  rows.written[static_cast<size_t>(Place::kHidden)] =
      written[static_cast<size_t>(Place::kHidden)].From(wide_row);
  rows.input = input.From(wide_row);
  rows.routes = routes.From(row);
  rows.expert = expert.From(wide_row);
  return rows;
}

void RunStep(const AttentionStage& attention, const QkvBuffer& qkv, const RowStep& step,
             const StepRows& rows, const StepPart& part) {
  const Pass& pass = attention.pass();
  const ConstRows residual = rows.Read(step.residual);
  const size_t width = step.width != 0 ? step.width : pass.config->d_model;
  if (step.norm != nullptr) {
    step.norm->Run(rows.Read(step.in), residual, rows.Written(step.out), part.rows, width);
    return;
  }
  if (step.product) {
    ScaleAndMultiply(rows.Read(step.in), residual, step.scale, rows.Written(step.out), part.rows,
                     width);
    return;
  }
  if (step.sum) {
    return Sum(rows.Read(step.in), residual, rows.Written(step.out), part.rows, width);
  }
  if (step.neighbours != 0) {
    return JoinNeighbours(pass, step.neighbours, part, rows.Written(step.out));
  }
  if (step.experts != nullptr) return RunExperts(pass, step, rows, part);
  const bool made = step.in == Place::kInput;
  if (pass.observer != nullptr && !made) {
    const ConstRows in = rows.Read(step.in);
    pass.observer->Observe(step.rows_for != nullptr ? *step.rows_for : *step.matrix, in.data, in.ld,
                           part.rows);
  }
  if (step.rows_for != nullptr) {
    const PackedView& view = step.rows_for->view();
    view.kernel->make_rows({.in = rows.Read(step.in),
                            .rows = part.rows,
                            .k = view.k,
                            .out = rows.input,
                            .factor = view.row_factor});
    return;
  }
  GemmArgs args{};
  args.a = made ? InputRows::Of(rows.input) : InputRows::Of(rows.Read(step.in));
  args.b = step.matrix->view();
  if (step.out == Place::kProjection) {
    attention.SetOutput(qkv, part.begin, &args);
  } else {
    args.c = rows.Written(step.out);
  }
  args.residual = residual;
  if (step.activation != nullptr) {
    args.relu = step.activation->relu;
    args.activation = step.activation->tile;
    args.gated = step.activation->gated;
  }
  args.next = part.next;
  GemmBlock(args, step.matrix->blocking(), 0, part.rows,
            std::max(part.panel_begin, step.panel_begin),
            std::min(part.panel_end, step.Units(part.rows)));
}

void RunSteps(const AttentionStage& attention, const QkvBuffer& qkv, const RowSteps& steps,
              const StepRows& all, size_t begin, size_t end, int thread) {
  const StepRows rows = all.From(begin, attention.pass().ThreadRow(thread));
  for (const RowStep& step : steps) RunStep(attention, qkv, step, rows, {begin, end - begin});
}

void RunStepsByColumns(Team& team, const AttentionStage& attention, const RowSteps& steps,
                       const StepRows& rows, size_t count, size_t left_out) {
  const QkvBuffer qkv = attention.WholeBatch();
  const size_t threads = static_cast<size_t>(team.threads());
  const RowStep* const end = steps.end() - left_out;
  for (const RowStep* step = steps.begin(); step != end; ++step) {
    if (step->by_rows()) {
      // As many of these as follow each other.
      const RowStep* const first = step;
      while (step + 1 != end && step[1].by_rows()) ++step;
      const EvenSplit parts{count, std::min(count, threads)};
      team.ForEach(parts.parts, [&](size_t i, int /*thread*/) {
        const StepRows some = rows.From(parts.begin(i));
        for (const RowStep* s = first; s <= step; ++s) {
          RunStep(attention, qkv, *s, some, {parts.begin(i), parts.begin(i + 1) - parts.begin(i)});
        }
      });
      continue;
    }
    const size_t panels_of_step = step->Units(count) - step->panel_begin;
    // Experts have rows of unequal number: each is a task.
    const bool experts = step->experts != nullptr && step->part == ExpertsStep::kCompute;
    const EvenSplit panels{panels_of_step,
                           experts ? panels_of_step : std::min(panels_of_step, threads)};
    const RowStep* const later =
        std::find_if(step + 1, steps.end(), [](const RowStep& s) { return s.matrix != nullptr; });
    team.ForEach(panels.parts, [&](size_t i, int /*thread*/) {
      StepPart part{0, count};
      part.panel_begin = step->panel_begin + panels.begin(i);
      part.panel_end = step->panel_begin + panels.begin(i + 1);
      if (later != steps.end() && step->experts == nullptr) {
        // What this thread will most likely do next.
        const PackedView& view = later->matrix->view();
        const EvenSplit theirs{view.panels(), std::min(view.panels(), threads)};
        if (i < theirs.parts) part.next = view.panel(theirs.begin(i));
      }
      RunStep(attention, qkv, *step, rows, part);
    });
  }
}

}  // namespace encore::internal
