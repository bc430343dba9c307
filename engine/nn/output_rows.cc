// SPDX-License-Identifier: Apache-2.0
//
// Three stages: queries of the wanted rows, gathered from all sequences so that weights are read
// once for many of them; keys, values and attention, as the thread plan shares them; later steps,
// on the gathered rows. A row's bits do not depend on other rows, so they are those of a whole
// block.

#include "engine/nn/encoder_block.h"

#include <algorithm>

#include "engine/nn/attention_stage.h"

namespace encore::inline v0_1::internal {
namespace {

// With fewer gathered rows for each thread, threads share columns: each weight is then read once.
constexpr size_t kMinRowsOfThread = 32;

size_t RowOf(const Pass& pass, OutputRows wanted, size_t sequence) {
  return wanted == OutputRows::kFirst ? pass.starts()[sequence] : pass.starts()[sequence + 1] - 1;
}

// Those of sequences [begin, end).
void Gather(const Pass& pass, ConstRows x, OutputRows wanted, size_t begin, size_t end, Rows y) {
  for (size_t b = begin; b < end; ++b) {
    std::copy_n(x.row(RowOf(pass, wanted, b)), pass.config->d_model, y.row(b));
  }
}

class LastBlock {
 public:
  LastBlock(const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
            OutputRows wanted, Rows y)
      : pass_(pass),
        sizes_(layer.sizes),
        attention_(pass, layer, index),
        x_(x),
        wanted_(wanted),
        y_(y),
        q_panels_(sizes_.q_width() / layer.qkv.view().nr()),
        q_columns_(q_panels_ * layer.qkv.view().nr()),
        by_blocks_(pass.sequences() >= kMinRowsOfThread * pass.thread_plan.threads),
        all_(MakeRecipe(pass.config->layers[index].norm_placement, layer)),
        gathered_(all_),
        // The wanted rows are gathered in y; their queries and attention's output are the context.
        all_rows_(pass, x, {nullptr, 0}, pass.thread_plan.kind != ThreadPlanKind::kColumns, false),
        gathered_rows_(pass, y, y, by_blocks_, false) {
    // A panel with columns of both q and k is one of all rows.
    all_.projection().panel_begin = q_panels_;
    gathered_.projection().panel_end = q_panels_;
    gathered_.projection().out = Buffer::kContext;
  }

  void Run(Team& team) const {
    ProjectQueries(team);
    switch (pass_.thread_plan.kind) {
      case ThreadPlanKind::kSequences:
        AttendBySequences(team);
        break;
      case ThreadPlanKind::kRows:
        AttendByRows(team);
        break;
      case ThreadPlanKind::kColumns:
        AttendByColumns(team);
        break;
    }
    Finish(team);
  }

 private:
  EvenSplit BlocksOfGathered() const {
    const size_t blocks = DivCeil(pass_.sequences(), kRowsOfTask);
    return {pass_.sequences(), RoundUp(blocks, pass_.thread_plan.threads)};
  }

  // The wanted rows into y, and their queries into the context.
  void ProjectQueries(Team& team) const {
    if (by_blocks_) {
      const EvenSplit blocks = BlocksOfGathered();
      team.ForEach(blocks.parts, [&](size_t i, int thread) {
        Gather(pass_, x_, wanted_, blocks.begin(i), blocks.begin(i + 1), y_);
        RunGathered(gathered_.before, blocks, i, thread);
      });
      return;
    }
    CopyOutputRows(team, pass_, x_, wanted_, y_);
    RunStepsByColumns(team, attention_, gathered_.before, gathered_rows_, pass_.sequences());
  }

  void AttendBySequences(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    team.ForEachInOrder(plan.tasks, [&](size_t i, int thread) {
      const size_t own = plan.order[i];
      const QkvBuffer qkv = attention_.OfTask(own, thread);
      pass_.ForRowBlocks(own,
                         [&](size_t begin, size_t end) { KeysAndValues(qkv, begin, end, thread); });
      for (size_t b = plan.task_starts[own]; b < plan.task_starts[own + 1]; ++b) {
        Attend(qkv, b, {0, sizes_.heads}, thread);
      }
    });
  }

  void AttendByRows(Team& team) const {
    const QkvBuffer qkv = attention_.WholeBatch();
    const EvenSplit& blocks = pass_.thread_plan.row_blocks;
    team.ForEach(blocks.parts, [&](size_t b, int thread) {
      KeysAndValues(qkv, blocks.begin(b), blocks.begin(b + 1), thread);
    });
    AttendByHeads(team, qkv);
  }

  void AttendByColumns(Team& team) const {
    const QkvBuffer qkv = attention_.WholeBatch();
    RunStepsByColumns(team, attention_, all_.before, all_rows_, pass_.tokens());
    team.ForEach(sizes_.kv_heads, [&](size_t h, int /*thread*/) {
      attention_.PrepareKeys(qkv, 0, pass_.tokens(), {h, h + 1});
    });
    AttendByHeads(team, qkv);
  }

  // Rows [begin, end) up to their keys and values.
  void KeysAndValues(const QkvBuffer& qkv, size_t begin, size_t end, int thread) const {
    RunSteps(attention_, qkv, all_.before, all_rows_, begin, end, thread);
    attention_.PrepareKeys(qkv, begin, end, {0, sizes_.kv_heads});
  }

  // Few sequences are cut by heads too.
  void AttendByHeads(Team& team, const QkvBuffer& qkv) const {
    const size_t threads = pass_.thread_plan.threads;
    const bool cut = pass_.sequences() < 4 * threads;
    const EvenSplit heads{sizes_.heads, cut ? std::min(sizes_.heads, threads) : 1};
    team.ForEachInOrder(pass_.sequences() * heads.parts, [&](size_t task, int thread) {
      const size_t part = task % heads.parts;
      Attend(qkv, task / heads.parts, {heads.begin(part), heads.begin(part + 1)}, thread);
    });
  }

  // Some heads of one sequence's wanted row, from their queries to their context.
  void Attend(const QkvBuffer& qkv, size_t sequence, HeadRange heads, int thread) const {
    const size_t row = RowOf(pass_, wanted_, sequence);
    const Rows context = gathered_rows_.context().From(sequence);
    attention_.PutQueries(qkv, row, context.data, q_columns_, heads);
    attention_.PrepareQueries(qkv, row, row + 1, heads);
    attention_.Run(qkv, row, row + 1, heads, thread, context);
  }

  void Finish(Team& team) const {
    if (!by_blocks_) {
      RunStepsByColumns(team, attention_, gathered_.after, gathered_rows_, pass_.sequences());
      return;
    }
    const EvenSplit blocks = BlocksOfGathered();
    team.ForEach(blocks.parts,
                 [&](size_t i, int thread) { RunGathered(gathered_.after, blocks, i, thread); });
  }

  // Block i of the gathered rows.
  void RunGathered(const RowSteps& steps, const EvenSplit& blocks, size_t i, int thread) const {
    RunSteps(attention_, attention_.WholeBatch(), steps, gathered_rows_, blocks.begin(i),
             blocks.begin(i + 1), thread);
  }

  const Pass& pass_;
  const LayerSizes& sizes_;
  const AttentionStage attention_;
  const ConstRows x_;
  const OutputRows wanted_;
  const Rows y_;
  const size_t q_panels_;   // that hold nothing but queries
  const size_t q_columns_;  // of these panels
  const bool by_blocks_;    // gathered rows are shared by rows
  Recipe all_;              // of all rows
  Recipe gathered_;         // of the wanted ones
  const StepRows all_rows_;
  const StepRows gathered_rows_;
};

}  // namespace

void BlockOfOutputRows(Team& team, const Pass& pass, const PackedLayer& layer, size_t index,
                       ConstRows x, OutputRows wanted, Rows y) {
  LastBlock(pass, layer, index, x, wanted, y).Run(team);
}

void CopyOutputRows(Team& team, const Pass& pass, ConstRows x, OutputRows wanted, Rows y) {
  const EvenSplit split{pass.sequences(), static_cast<size_t>(team.threads())};
  team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
    Gather(pass, x, wanted, split.begin(i), split.begin(i + 1), y);
  });
}

}  // namespace encore::internal
