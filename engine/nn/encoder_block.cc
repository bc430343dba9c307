// SPDX-License-Identifier: Apache-2.0
//
// The three ways to share an encoder block among threads.

#include "engine/nn/encoder_block.h"

#include <algorithm>

#include "engine/nn/attention_stage.h"
#include "engine/nn/product_observer.h"

namespace encore::inline v0_1::internal {
namespace {

// The buffers of an encoder block under the pass's thread plan.
StepRows RowsUnder(const Pass& pass, ConstRows x, Rows y) {
  const ThreadPlan& plan = pass.thread_plan;
  // By columns, threads share the rows of each step.
  const bool own_buffers = plan.kind != ThreadPlanKind::kColumns;
  // Attention that is a stage of its own writes contexts for other threads' row blocks.
  const bool own_context = plan.kind == ThreadPlanKind::kSequences ||
                           (plan.kind == ThreadPlanKind::kRows && !plan.attention_apart);
  return StepRows(pass, x, y, own_buffers, own_context);
}

// An encoder block at work on a batch.
class BlockOnBatch {
 public:
  BlockOnBatch(const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x, Rows y)
      : pass_(pass),
        sizes_(layer.sizes),
        attention_(pass, layer, index),
        heads_together_(HeadsTogether(sizes_, pass.thread_plan.threads, layer.qkv.view().nr())),
        recipe_(MakeRecipe(pass.config->layers[index].norm_placement, layer)),
        rows_(RowsUnder(pass, x, y)) {}

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
  HeadRange AllHeads() const { return {0, sizes_.heads}; }

  void RunBySequences(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    team.ForEachInOrder(plan.tasks, [&](size_t i, int thread) {
      const size_t own = plan.order[i];
      const QkvBuffer qkv = attention_.OfTask(own, thread);
      pass_.ForRowBlocks(
          own, [&](size_t begin, size_t end) { BeforeAttention(qkv, begin, end, thread); });
      pass_.ForRowBlocks(own,
                         [&](size_t begin, size_t end) { AfterKeys(qkv, begin, end, thread); });
    });
  }

  void RunByRows(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    const QkvBuffer qkv = attention_.WholeBatch();
    team.ForEach(plan.row_blocks.parts, [&](size_t b, int thread) {
      BeforeAttention(qkv, plan.row_blocks.begin(b), plan.row_blocks.begin(b + 1), thread);
    });
    if (plan.attention_apart) RunAttentionByBlocks(team, qkv);
    team.ForEach(plan.row_blocks.parts, [&](size_t b, int thread) {
      AfterKeys(qkv, plan.row_blocks.begin(b), plan.row_blocks.begin(b + 1), thread);
    });
  }

  void RunByColumns(Team& team) const {
    const QkvBuffer qkv = attention_.WholeBatch();
    RunStepsByColumns(team, attention_, recipe_.before, rows_, pass_.tokens(),
                      heads_together_ ? 1 : 0);
    if (heads_together_) {
      RunProjectionByHeads(team, qkv);
    } else {
      RunAttentionByHeads(team, qkv);
    }
    RunStepsByColumns(team, attention_, recipe_.after, rows_, pass_.tokens());
  }

  // Rows [begin, end) up to their queries, keys and values.
  void BeforeAttention(const QkvBuffer& qkv, size_t begin, size_t end, int thread) const {
    RunSteps(attention_, qkv, recipe_.before, rows_, begin, end, thread);
    attention_.PrepareQueries(qkv, begin, end, AllHeads());
    attention_.PrepareKeys(qkv, begin, end, {0, sizes_.kv_heads});
    NoteAttention();
  }

  // Attention and later steps of rows [begin, end), once their sequences' keys and values are
  // there.
  void AfterKeys(const QkvBuffer& qkv, size_t begin, size_t end, int thread) const {
    if (rows_.own_context) {
      // One head after another where the call may be asked to pause or to end.
      const size_t heads = pass_.team->HasGate() ? 1 : sizes_.heads;
      const Rows context = rows_.context().From(pass_.ThreadRow(thread));
      for (size_t h = 0; h < sizes_.heads; h += heads) {
        if (!pass_.team->MayGoOn(thread)) return;
        attention_.Run(qkv, begin, end, {h, h + heads}, thread, context);
      }
      NoteAttention();
    }
    RunSteps(attention_, qkv, recipe_.after, rows_, begin, end, thread);
  }

  void NoteAttention() const {
    if (pass_.observer != nullptr) pass_.observer->AfterStep(nullptr);
  }

  // Attention by blocks of queries of one head, the longest sequence first. A sequence's tasks
  // follow each other head by head, so that a thread reads the same keys again.
  void RunAttentionByBlocks(Team& team, const QkvBuffer& qkv) const {
    const size_t* const starts = pass_.thread_plan.block_starts;
    const size_t heads = sizes_.heads;
    team.ForEachInOrder(starts[pass_.sequences()] * heads, [&](size_t task, int thread) {
      const size_t* const next =
          std::upper_bound(starts, starts + pass_.sequences() + 1, task / heads);
      const size_t i = static_cast<size_t>(next - starts) - 1;
      const size_t blocks = starts[i + 1] - starts[i];
      const size_t within = task - starts[i] * heads;
      const size_t head = within / blocks;
      const size_t sequence = pass_.thread_plan.order[i];
      const size_t begin = pass_.starts()[sequence] + within % blocks * kQueryBlock;
      const size_t end = std::min(begin + kQueryBlock, pass_.starts()[sequence + 1]);
      attention_.Run(qkv, begin, end, {head, head + 1}, thread, rows_.context().From(begin));
    });
  }

  // Attention of all rows, shared by heads. A task prepares its own keys, unless there are fewer
  // key heads than threads.
  void RunAttentionByHeads(Team& team, const QkvBuffer& qkv) const {
    const size_t threads = pass_.thread_plan.threads;
    const EvenSplit kv_heads{sizes_.kv_heads, std::min(sizes_.kv_heads, threads)};
    const bool keys_apart = kv_heads.parts < std::min(threads, sizes_.heads);
    if (keys_apart) {
      team.ForEach(sizes_.kv_heads, [&](size_t h, int /*thread*/) {
        attention_.PrepareKeys(qkv, 0, pass_.tokens(), {h, h + 1});
      });
      const EvenSplit heads{sizes_.heads, std::min(sizes_.heads, threads)};
      team.ForEach(heads.parts, [&](size_t i, int thread) {
        AttendHeads(qkv, {heads.begin(i), heads.begin(i + 1)}, thread);
      });
      return;
    }
    team.ForEach(kv_heads.parts, [&](size_t i, int thread) {
      const HeadRange keys{kv_heads.begin(i), kv_heads.begin(i + 1)};
      attention_.PrepareKeys(qkv, 0, pass_.tokens(), keys);
      AttendHeads(qkv, QueryHeadsOf(keys), thread);
    });
  }

  // Each thread computes some heads' columns of the projection, then their attention.
  void RunProjectionByHeads(Team& team, const QkvBuffer& qkv) const {
    const PackedView& matrix = recipe_.projection().matrix->view();
    const size_t parts = pass_.thread_plan.threads;
    const size_t q_panels = sizes_.q_width() / matrix.nr();
    const size_t kv_panels = sizes_.kv_width() / matrix.nr();
    team.ForEach(parts, [&](size_t i, int thread) {
      // Panels of the thread's part of q, of k and of v.
      const struct {
        size_t begin;
        size_t count;
      } ranges[] = {{i * (q_panels / parts), q_panels / parts},
                    {q_panels + i * (kv_panels / parts), kv_panels / parts},
                    {q_panels + kv_panels + i * (kv_panels / parts), kv_panels / parts}};
      for (size_t part = 0; part < 3; ++part) {
        StepPart range{0, pass_.tokens()};
        range.begin_unit = ranges[part].begin;
        range.end_unit = ranges[part].begin + ranges[part].count;
        if (part < 2) {
          range.next = matrix.panel(ranges[part + 1].begin);
        } else {
          const PackedView& after = FirstMatrix(recipe_.after);
          range.next = after.panel(EvenSplit{after.panels(), parts}.begin(i));
        }
        RunStep(attention_, qkv, recipe_.projection(), rows_, range);
      }
      const size_t each = sizes_.kv_heads / parts;
      const HeadRange keys{i * each, (i + 1) * each};
      attention_.PrepareKeys(qkv, 0, pass_.tokens(), keys);
      AttendHeads(qkv, QueryHeadsOf(keys), thread);
    });
  }

  static const PackedView& FirstMatrix(const RowSteps& steps) {
    const RowStep* step = steps.begin();
    while (step->kind != StepKind::kLinear) ++step;
    return step->matrix->view();
  }

  HeadRange QueryHeadsOf(HeadRange keys) const {
    return {keys.begin * sizes_.group(), keys.end * sizes_.group()};
  }

  void AttendHeads(const QkvBuffer& qkv, HeadRange heads, int thread) const {
    attention_.PrepareQueries(qkv, 0, pass_.tokens(), heads);
    attention_.Run(qkv, 0, pass_.tokens(), heads, thread, rows_.context());
  }

  const Pass& pass_;
  const LayerSizes& sizes_;
  const AttentionStage attention_;
  const bool heads_together_;
  const Recipe recipe_;
  const StepRows rows_;
};

void CopyRows(Team& team, const Pass& pass, ConstRows from, const MutableView& to) {
  const EvenSplit split{pass.tokens(), static_cast<size_t>(team.threads())};
  team.ForEach(split.parts, [&](size_t part, int /*thread*/) {
    for (size_t row = split.begin(part); row < split.begin(part + 1); ++row) {
      for (size_t c = 0; c < pass.config->d_model; ++c) to(row, c) = from.row(row)[c];
    }
  });
}

}  // namespace

void EncoderBlock(Team& team, const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
                  Rows y) {
  BlockOnBatch(pass, layer, index, x, y).Run(team);
  if (!pass.taps->hidden.empty() && !pass.taps->hidden[index].empty()) {
    CopyRows(team, pass, y, pass.taps->hidden[index]);
  }
}

void KeepEncoderInput(Team& team, const Pass& pass, ConstRows x) {
  const ScratchPlan& plan = pass.scratch_plan;
  CopyRows(team, pass, x,
           MutableView(pass.At(plan.encoder_input), Shape(pass.tokens(), pass.config->d_model),
                       {static_cast<ptrdiff_t>(plan.ld_model), 1}));
}

void NormRows(Team& team, const Pass& pass, const PackedNorm& norm, Rows y, size_t count) {
  const EvenSplit split{count, static_cast<size_t>(team.threads())};
  team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
    const Rows rows = y.From(split.begin(i));
    norm.Run(rows, {nullptr, 0}, rows, split.begin(i + 1) - split.begin(i), pass.config->d_model);
  });
}

}  // namespace encore::internal
