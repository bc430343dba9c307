// SPDX-License-Identifier: Apache-2.0
//
// Runs a step of a block on a part of its rows and columns, and shares steps by columns.

#include "engine/nn/row_steps.h"

#include <algorithm>

#include "engine/base/strict_math.h"
#include "engine/nn/experts.h"
#include "engine/nn/product_observer.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {

namespace {

// out = f(a, b), element by element.
template <typename F>
void ForElements(ConstRows a, ConstRows b, Rows out, size_t rows, size_t width, const F& f) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < width; ++c) out.row(r)[c] = f(a.row(r)[c], b.row(r)[c]);
  }
}

// out[r][c kernel + t] = x0[r + t - kernel / 2][c], or 0 past the ends of the row's sequence.
void Im2Col(const Pass& pass, size_t kernel, const StepPart& part, Rows out) {
  const std::span<const size_t> starts = pass.starts();
  const ConstRows x0{pass.At(pass.scratch_plan.encoder_input), pass.scratch_plan.ld_model};
  const size_t width = pass.config->d_model;
  for (size_t r = 0; r < part.rows; ++r) {
    const size_t row = part.begin + r;
    const auto next = std::upper_bound(starts.begin(), starts.end(), row);
    for (size_t t = 0; t < kernel; ++t) {
      // Counted from kernel / 2 rows before the first, so that no number is negative.
      const size_t at = row + t;
      const bool inside = at >= *(next - 1) + kernel / 2 && at < *next + kernel / 2;
      const float* const from = inside ? x0.row(at - kernel / 2) : nullptr;
      float* const to = out.row(r) + t;
      for (size_t c = 0; c < width; ++c) to[c * kernel] = from == nullptr ? 0 : from[c];
    }
  }
}

// The input of a product goes to the pass's observer before it is rounded.
ConstRows ReadInput(const Pass& pass, const RowStep& step, const StepRows& rows, size_t count) {
  const ConstRows in = rows.Read(step.in);
  if (pass.observer != nullptr) pass.observer->Observe(*step.matrix, in.data, in.ld, count);
  return in;
}

void PackLhs(const Pass& pass, const RowStep& step, const StepRows& rows, size_t count) {
  const PackedView& view = step.matrix->view();
  view.kernel->pack_lhs({.in = ReadInput(pass, step, rows, count),
                         .rows = count,
                         .k = view.k,
                         .out = rows.lhs,
                         .factor = view.row_factor});
}

void RunLinear(const AttentionStage& attention, const QkvBuffer& qkv, const RowStep& step,
               const StepRows& rows, const StepPart& part) {
  GemmArgs args{};
  args.a = step.in == Buffer::kLhs
               ? InputRows::Of(rows.lhs)
               : InputRows::Of(ReadInput(attention.pass(), step, rows, part.rows));
  args.b = step.matrix->view();
  if (step.out == Buffer::kQkv) {
    attention.SetOutput(qkv, part.begin, &args);
  } else {
    args.c = rows.Written(step.out);
  }
  args.residual = rows.Read(step.residual);
  if (step.activation != nullptr) {
    args.relu = step.activation->relu;
    args.activation = step.activation->tile;
    args.gated = step.activation->gated;
  }
  args.next = part.next;
  GemmBlock(args, step.matrix->blocking(), 0, part.rows,
            std::max(part.begin_unit, step.panel_begin),
            std::min(part.end_unit, step.Units(part.rows)));
}

// Units of a step between two looks at the call's gate: products of some 0.1 ms.
size_t UnitsOfAPiece(const Pass& pass, const RowStep& step, size_t rows) {
  constexpr size_t kMultiplyAdds = 4'000'000;
  if (step.kind == StepKind::kComputeExperts) return 1;
  if (step.kind != StepKind::kLinear || pass.observer != nullptr) return step.Units(rows);
  const PackedView& matrix = step.matrix->view();
  const size_t unit = rows * matrix.k * matrix.nr() * matrix.halves();
  return std::max<size_t>(1, kMultiplyAdds / std::max<size_t>(1, unit));
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
              {pass.At(plan.per_layer_input), plan.ld_per_layer_input}}};
  encoder_input = {pass.At(plan.encoder_input), plan.ld_model};
  lhs = {pass.At<std::byte>(plan.lhs), plan.lhs_stride, pass.At<RowQuant>(plan.quants)};
  routes = {pass.At(plan.routes), plan.ld_routes};
  expert = {pass.At(plan.expert), plan.ld_model};
  expert_rows = plan.expert_rows;
}

StepRows StepRows::From(size_t begin, size_t thread_row) const {
  const size_t row = own ? thread_row : begin;
  const size_t wide_row = own ? thread_row * expert_rows : begin;
  StepRows rows = *this;
  rows.x = x.From(begin);
  rows.encoder_input = encoder_input.From(begin);
  for (size_t i = 0; i < written.size(); ++i) {
    const auto buffer = static_cast<Buffer>(i);
    const bool is_own = buffer == Buffer::kContext ? own_context : own && buffer != Buffer::kY;
    rows.written[i] = written[i].From(is_own ? thread_row : begin);
  }
  rows.written[static_cast<size_t>(Buffer::kHidden)] =
      written[static_cast<size_t>(Buffer::kHidden)].From(wide_row);
  rows.lhs = lhs.From(wide_row);
  rows.routes = routes.From(row);
  rows.expert = expert.From(wide_row);
  return rows;
}

void RunStep(const AttentionStage& attention, const QkvBuffer& qkv, const RowStep& step,
             const StepRows& rows, const StepPart& part) {
  const Pass& pass = attention.pass();
  const size_t width = step.width != 0 ? step.width : pass.config->d_model;
  const auto elements = [&](const auto& f) {
    const ConstRows in = rows.Read(step.in);
    const ConstRows other = step.residual != Buffer::kNone ? rows.Read(step.residual) : in;
    ForElements(in, other, rows.Written(step.out), part.rows, width, f);
  };
  switch (step.kind) {
    case StepKind::kLinear:
      return RunLinear(attention, qkv, step, rows, part);
    case StepKind::kPackLhs:
      return PackLhs(pass, step, rows, part.rows);
    case StepKind::kNorm:
      return step.norm->Run(rows.Read(step.in), rows.Read(step.residual), rows.Written(step.out),
                            part.rows, width);
    case StepKind::kScale:
      return elements([&](float x, float) { return x * step.scale; });
    case StepKind::kMultiply:
      return elements([](float x, float y) { return x * y; });
    case StepKind::kAdd:
      return elements([](float x, float y) { return x + y; });
    case StepKind::kIm2Col:
      return Im2Col(pass, step.kernel, part, rows.Written(step.out));
    case StepKind::kRouteExperts:
    case StepKind::kComputeExperts:
    case StepKind::kSumExperts:
      return RunExperts(pass, step, rows, part);
  }
}

void RunSteps(const AttentionStage& attention, const QkvBuffer& qkv, const RowSteps& steps,
              const StepRows& all, size_t begin, size_t end, int thread) {
  const Pass& pass = attention.pass();
  const Team& team = *pass.team;
  const StepRows rows = all.From(begin, pass.ThreadRow(thread));
  for (const RowStep& step : steps) {
    StepPart part{begin, end - begin};
    const size_t units = step.by_rows() ? 1 : step.Units(part.rows);
    const size_t most = team.HasGate() ? UnitsOfAPiece(pass, step, part.rows) : units;
    for (part.begin_unit = step.panel_begin; part.begin_unit < units;
         part.begin_unit = part.end_unit) {
      if (!team.MayGoOn(thread)) return;
      part.end_unit = part.begin_unit + std::min(most, units - part.begin_unit);
      RunStep(attention, qkv, step, rows, part);
    }
    if (pass.observer != nullptr) pass.observer->AfterStep(&step);
  }
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
    const size_t units = step->Units(count) - step->panel_begin;
    // Experts have rows of unequal number: each is a task.
    const bool experts = step->kind == StepKind::kComputeExperts;
    const EvenSplit shares{units, experts ? units : std::min(units, threads)};
    const RowStep* const later = std::find_if(
        step + 1, steps.end(), [](const RowStep& s) { return s.kind == StepKind::kLinear; });
    team.ForEach(shares.parts, [&](size_t i, int /*thread*/) {
      StepPart part{0, count};
      part.begin_unit = step->panel_begin + shares.begin(i);
      part.end_unit = step->panel_begin + shares.begin(i + 1);
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
