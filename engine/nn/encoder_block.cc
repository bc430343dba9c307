// SPDX-License-Identifier: Apache-2.0
//
// The block's recipe in its two orders, and the three ways to share it among lanes. Not here: the
// steps that take each row by itself (row_steps.cc) and attention (attention_stage.cc).

#include "engine/nn/encoder_block.h"

#include <algorithm>

#include "engine/nn/attention_stage.h"

namespace encore::internal {
namespace {

// A block at work on a batch: the steps up to attention and those after it, and where each reads
// and writes.
class Block {
 public:
  Block(const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x, Rows y)
      : pass_(pass), attention_(pass, index) {
    const ScratchPlan& plan = pass.scratch_plan;
    // Blocks of rows stay a lane's own, except where lanes share rows.
    const bool own = pass.thread_plan.kind != ThreadPlanKind::kColumns;
    const bool apart =
        pass.thread_plan.kind == ThreadPlanKind::kRows && pass.thread_plan.attention_apart;
    context_ = {pass.scratch + plan.context, plan.ld_model, own && !apart};
    const RowBuffer mid = {pass.scratch + plan.mid, plan.ld_model, own};
    const RowBuffer normed = {pass.scratch + plan.normed, plan.ld_model, own};
    const RowBuffer hidden = {pass.scratch + plan.hidden, plan.ld_ff, own};
    const RowBuffer in = RowBuffer::Shared(x);
    const RowBuffer out = RowBuffer::Shared(y);
    if (pass.config->norm_first) {
      before_ = {NormStep(layer.norm1, in, normed),  //
                 ProjectionStep(layer.qkv, normed)};
      after_ = {ResidualStep(layer.out_proj, context_, in, out),  // y = x + attention
                NormStep(layer.norm2, out, normed),               //
                ActivationStep(layer.linear1, normed, hidden),    //
                ResidualStep(layer.linear2, hidden, out, out)};   // y += ff
    } else {
      before_ = {ProjectionStep(layer.qkv, in)};
      after_ = {ResidualStep(layer.out_proj, context_, in, mid),   // x + attention
                NormStep(layer.norm1, mid, normed),                //
                ActivationStep(layer.linear1, normed, hidden),     //
                ResidualStep(layer.linear2, hidden, normed, mid),  // + ff
                NormStep(layer.norm2, mid, out)};
    }
  }

  void Run(Team& team) const {
    switch (pass_.thread_plan.kind) {
      case ThreadPlanKind::kSequences:
        return RunBySequences(team);
      case ThreadPlanKind::kRows:
        return RunByRows(team);
      case ThreadPlanKind::kColumns:
        return RunByColumns(team);
    }
  }

 private:
  size_t heads() const { return pass_.config->num_heads; }

  void RunBySequences(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    team.ForEachInOrder(plan.groups, [&](size_t i, int lane) {
      const size_t group = plan.order[i];
      const QkvWindow window = attention_.OfGroup(group, lane);
      const size_t first = pass_.starts()[plan.group_starts[group]];
      const size_t rows = pass_.starts()[plan.group_starts[group + 1]] - first;
      const EvenSplit blocks{rows, DivCeil(rows, kRowsOfTask)};
      for (size_t b = 0; b < blocks.parts; ++b) {
        BeforeAttention(window, first + blocks.begin(b), first + blocks.begin(b + 1), lane);
      }
      for (size_t b = 0; b < blocks.parts; ++b) {
        AfterKeys(window, first + blocks.begin(b), first + blocks.begin(b + 1), lane);
      }
    });
  }

  void RunByRows(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    const QkvWindow window = attention_.WholeBatch();
    team.ForEach(plan.row_blocks.parts, [&](size_t b, int lane) {
      BeforeAttention(window, plan.row_blocks.begin(b), plan.row_blocks.begin(b + 1), lane);
    });
    if (plan.attention_apart) RunAttentionByBlocks(team, window);
    team.ForEach(plan.row_blocks.parts, [&](size_t b, int lane) {
      AfterKeys(window, plan.row_blocks.begin(b), plan.row_blocks.begin(b + 1), lane);
    });
  }

  void RunByColumns(Team& team) const {
    const QkvWindow window = attention_.WholeBatch();
    if (pass_.thread_plan.heads_together) {
      RunProjectionByHeads(team, window);
    } else {
      RunStepsByColumns(team, pass_, attention_, window, before_);
      const EvenSplit split{heads(), std::min(heads(), pass_.thread_plan.lanes)};
      team.ForEach(split.parts, [&](size_t i, int lane) {
        attention_.PackKeys(window, 0, pass_.tokens(), split.begin(i), split.begin(i + 1));
        AttendHeads(window, split.begin(i), split.begin(i + 1), lane);
      });
    }
    RunStepsByColumns(team, pass_, attention_, window, after_);
  }

  // Rows [begin, end) up to their queries, keys and values.
  void BeforeAttention(const QkvWindow& window, size_t begin, size_t end, int lane) const {
    for (const RowStep& step : before_) {
      RunStep(pass_, attention_, window, step, {begin, end, LaneRow(lane)});
    }
    attention_.PackKeys(window, begin, end, 0, heads());
  }

  // The rest for rows [begin, end), once their sequences' keys and values are there.
  void AfterKeys(const QkvWindow& window, size_t begin, size_t end, int lane) const {
    const StepPart part{begin, end, LaneRow(lane)};
    if (context_.of_block) {
      attention_.Run(window, begin, end, 0, heads(), lane, part.RowsOf(context_), context_.ld);
    }
    for (const RowStep& step : after_) RunStep(pass_, attention_, window, step, part);
  }

  // Attention by blocks of queries of one head. A sequence's tasks lie together, head by head, so
  // that a lane meets the same keys again; the longest sequence comes first.
  void RunAttentionByBlocks(Team& team, const QkvWindow& window) const {
    const size_t* const starts = pass_.block_starts;
    team.ForEachInOrder(starts[pass_.sequences()] * heads(), [&](size_t task, int lane) {
      const size_t* const next =
          std::upper_bound(starts, starts + pass_.sequences() + 1, task / heads());
      const size_t i = static_cast<size_t>(next - starts) - 1;
      const size_t blocks = starts[i + 1] - starts[i];
      const size_t within = task - starts[i] * heads();
      const size_t head = within / blocks;
      const size_t sequence = pass_.thread_plan.order[i];
      const size_t begin = pass_.starts()[sequence] + within % blocks * kQueryBlock;
      const size_t end = std::min(begin + kQueryBlock, pass_.starts()[sequence + 1]);
      attention_.Run(window, begin, end, head, head + 1, lane, context_.data + begin * context_.ld,
                     context_.ld);
    });
  }

  // Each lane takes some heads from x to their context: its columns of the first product, then
  // attention.
  void RunProjectionByHeads(Team& team, const QkvWindow& window) const {
    const RowStep& projection = *(before_.end() - 1);
    if (before_.begin() != &projection) {
      RunStepsByColumns(team, pass_, attention_, window, {*before_.begin()});
    }
    const PackedView& matrix = projection.matrix->view();
    const size_t parts = pass_.thread_plan.lanes;
    const size_t panels = pass_.config->d_model / matrix.nr();  // of each of q, k and v
    const size_t each = panels / parts;
    team.ForEach(parts, [&](size_t i, int lane) {
      for (size_t part = 0; part < 3; ++part) {
        StepPart range{0, pass_.tokens()};
        range.panel_begin = part * panels + i * each;
        range.panel_end = range.panel_begin + each;
        if (part < 2) {
          range.next = matrix.panel(range.panel_begin + panels);
        } else {
          const PackedView& after = after_.begin()->matrix->view();
          range.next = after.panel(EvenSplit{after.panels(), parts}.begin(i));
        }
        RunStep(pass_, attention_, window, projection, range);
      }
      const size_t head = heads() / parts * i;
      const size_t head_end = head + heads() / parts;
      attention_.PackKeys(window, 0, pass_.tokens(), head, head_end);
      AttendHeads(window, head, head_end, lane);
    });
  }

  void AttendHeads(const QkvWindow& window, size_t head, size_t head_end, int lane) const {
    attention_.Run(window, 0, pass_.tokens(), head, head_end, lane, context_.data, context_.ld);
  }

  size_t LaneRow(int lane) const {
    return static_cast<size_t>(lane) * std::min(pass_.tokens(), kRowsOfTask);
  }

  const Pass& pass_;
  const AttentionStage attention_;
  RowBuffer context_;
  RowSteps before_;
  RowSteps after_;
};

void CopyRows(Team& team, const Pass& pass, ConstRows from, const MutableView& to) {
  const EvenSplit split{pass.tokens(), static_cast<size_t>(team.lanes())};
  team.ForEach(split.parts, [&](size_t part, int /*lane*/) {
    for (size_t row = split.begin(part); row < split.begin(part + 1); ++row) {
      for (size_t c = 0; c < pass.config->d_model; ++c) to(row, c) = from.data[row * from.ld + c];
    }
  });
}

}  // namespace

void CountQueryBlocks(const Pass& pass, size_t* starts) {
  starts[0] = 0;
  for (size_t i = 0; i < pass.sequences(); ++i) {
    const size_t b = pass.thread_plan.order[i];
    starts[i + 1] = starts[i] + DivCeil(pass.starts()[b + 1] - pass.starts()[b], kQueryBlock);
  }
}

void EncoderBlock(Team& team, const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
                  Rows y) {
  Block(pass, layer, index, x, y).Run(team);
  if (!pass.taps->hidden.empty() && !pass.taps->hidden[index].empty()) {
    CopyRows(team, pass, {y.data, y.ld}, pass.taps->hidden[index]);
  }
}

void NormRows(Team& team, const Pass& pass, const PackedLayerNorm& norm, Rows y) {
  const EvenSplit rows{pass.tokens(), static_cast<size_t>(team.lanes())};
  team.ForEach(rows.parts, [&](size_t i, int /*lane*/) {
    const size_t begin = rows.begin(i);
    NormArgs args{};
    args.y = y.data + begin * y.ld;
    args.ldy = y.ld;
    args.x = args.y;
    args.ldx = y.ld;
    args.weight = norm.weight.data();
    args.bias = norm.bias.data();
    args.epsilon = pass.config->layer_norm_eps;
    args.rows = rows.begin(i + 1) - begin;
    args.cols = pass.config->d_model;
    pass.kernels->norm->layer_norm(args);
  });
}

}  // namespace encore::internal
