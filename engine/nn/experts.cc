// SPDX-License-Identifier: Apache-2.0
//
// The router, the experts and their sum.

#include "engine/nn/experts.h"

#include <algorithm>

#include "engine/base/strict_math.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {
namespace {

// True for NaN.
bool IsTaken(float weight) { return !(weight < 0); }

// The `top_k` largest of the probabilities p [count], the first of equal ones, become weights. The
// other weights are -1.
void TakeBest(const PackedExperts& experts, const float* p, float* weights) {
  const size_t count = experts.count();
  std::fill_n(weights, count, -1.0f);
  for (size_t taken = 0; taken < experts.top_k; ++taken) {
    size_t best = count;
    for (size_t e = 0; e < count; ++e) {
      if (!IsTaken(weights[e]) && (best == count || p[e] > p[best])) best = e;
    }
    weights[best] = p[best];
  }
  if (!experts.normalize_weights) return;
  float sum = 0;
  for (size_t e = 0; e < count; ++e) sum += IsTaken(weights[e]) ? weights[e] : 0.0f;
  for (size_t e = 0; e < count; ++e) {
    if (IsTaken(weights[e])) weights[e] /= sum;
  }
}

void Route(const Pass& pass, const PackedExperts& experts, ConstRows in, Rows routes, size_t begin,
           size_t end) {
  GemmArgs args{};
  args.a = InputRows::Of(in);
  args.b = experts.router.view();
  args.c = routes;
  GemmBlock(args, experts.router.blocking(), begin, end, 0, args.b.panels());
  const Rows mine = routes.From(begin);
  const size_t count = experts.count();
  pass.kernels->softmax->rows(mine.data, mine.ld, mine.data, mine.ld, end - begin, count);
  for (size_t r = begin; r < end; ++r) {
    TakeBest(experts, routes.row(r), routes.row(r) + count);
  }
}

// out = activation(in matrix), or in matrix without one. `lhs` has room for the packed input.
void Multiply(const PackedMatrix& matrix, ConstRows in, const PackedLhs& lhs,
              const BlockActivation* activation, Rows out, size_t rows) {
  const PackedView& view = matrix.view();
  GemmArgs args{};
  args.a = InputRows::Of(in);
  if (view.kernel->pack_lhs != nullptr) {
    view.kernel->pack_lhs(
        {.in = in, .rows = rows, .k = view.k, .out = lhs, .factor = view.row_factor});
    args.a = InputRows::Of(lhs);
  }
  args.b = view;
  args.c = out;
  if (activation != nullptr) {
    args.relu = activation->relu;
    args.activation = activation->tile;
  }
  GemmBlock(args, matrix.blocking(), 0, rows, 0, view.panels());
}

// Calls f(expert, row, slot) for each expert of each row, in the order of rows.expert.
template <typename F>
void ForSlots(const PackedExperts& experts, const StepRows& rows, size_t count, const F& f) {
  size_t slot = 0;
  for (size_t e = 0; e < experts.count(); ++e) {
    for (size_t r = 0; r < count; ++r) {
      if (IsTaken(rows.routes.row(r)[experts.count() + e])) f(e, r, slot++);
    }
  }
}

// Experts [begin, end) of all rows.
void Compute(const Pass& pass, const RowStep& step, const StepRows& rows, size_t count,
             size_t begin, size_t end) {
  const PackedExperts& experts = *step.experts;
  const ConstRows in = rows.Read(step.in);
  size_t first = 0;  // slot of the expert at hand
  size_t next = 0;
  const auto finish = [&](size_t e) {
    const size_t own = next - first;
    if (own != 0 && e >= begin && e < end) {
      const Rows hidden = rows.Written(Buffer::kHidden).From(first);
      const Rows gathered = rows.expert.From(first);
      const PackedLhs lhs = rows.lhs.From(first);
      Multiply(experts.linear1[e], gathered, lhs, step.activation, hidden, own);
      Multiply(experts.linear2[e], hidden, lhs, nullptr, gathered, own);
    }
    first = next;
  };
  size_t expert = 0;
  ForSlots(experts, rows, count, [&](size_t e, size_t r, size_t slot) {
    for (; expert < e; ++expert) finish(expert);
    if (e >= begin && e < end) {
      std::copy_n(in.row(r), pass.config->d_model, rows.expert.row(slot));
    }
    next = slot + 1;
  });
  for (; expert < experts.count(); ++expert) finish(expert);
}

// Rows [begin, end) of `count`.
void Sum(const Pass& pass, const RowStep& step, const StepRows& rows, size_t count, size_t begin,
         size_t end) {
  const PackedExperts& experts = *step.experts;
  const size_t width = pass.config->d_model;
  const ConstRows residual = rows.Read(step.residual);
  const Rows out = rows.Written(step.out);
  const float* const bias = experts.bias.data();
  for (size_t r = begin; r < end; ++r) {
    float* const y = out.row(r);
    if (residual.data == nullptr) {
      std::fill_n(y, width, 0.0f);
    } else if (residual.row(r) != y) {
      std::copy_n(residual.row(r), width, y);
    }
    for (size_t c = 0; bias != nullptr && c < width; ++c) y[c] += bias[c];
  }
  ForSlots(experts, rows, count, [&](size_t e, size_t r, size_t slot) {
    if (r < begin || r >= end) return;
    const float weight = rows.routes.row(r)[experts.count() + e];
    const float* const result = rows.expert.row(slot);
    float* const y = out.row(r);
    for (size_t c = 0; c < width; ++c) y[c] += weight * result[c];
  });
}

}  // namespace

void RunExperts(const Pass& pass, const RowStep& step, const StepRows& rows, const StepPart& part) {
  const size_t begin = part.begin_unit;
  const size_t end = std::min(part.end_unit, step.Units(part.rows));
  switch (step.kind) {
    case StepKind::kRouteExperts:
      return Route(pass, *step.experts, rows.Read(step.in), rows.routes, begin, end);
    case StepKind::kComputeExperts:
      return Compute(pass, step, rows, part.rows, begin, end);
    default:
      return Sum(pass, step, rows, part.rows, begin, end);
  }
}

}  // namespace encore::internal
