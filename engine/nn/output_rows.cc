// SPDX-License-Identifier: Apache-2.0
//
// Three stages: the queries of the wanted rows, gathered from all sequences, so that weights are
// read once for many of them; keys, values and attention, as the thread plan shares them; and what
// follows attention, on the gathered rows again. A row's bits do not depend on its neighbours, so
// they are those of a block of all rows.

#include "engine/nn/output_rows.h"

#include <algorithm>

#include "engine/nn/attention_stage.h"
#include "engine/nn/recipe.h"

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
    all_.projection.panel_begin = q_panels_;
    gathered_.projection.panel_end = q_panels_;
    gathered_.projection.out = Place::kContext;
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
  static StepPart PartOf(const EvenSplit& blocks, size_t i) {
    return {blocks.begin(i), blocks.begin(i + 1) - blocks.begin(i)};
  }

  // The wanted rows into y, and their queries into the context.
  void ProjectQueries(Team& team) const {
    const QkvWindow none = attention_.WholeBatch();
    if (by_blocks_) {
      const EvenSplit blocks = BlocksOfGathered();
      team.ForEach(blocks.parts, [&](size_t i, int thread) {
        const StepPart part = PartOf(blocks, i);
        const StepRows rows = gathered_rows_.From(part.begin, ThreadRow(thread));
        Gather(pass_, x_, wanted_, part.begin, part.begin + part.rows, y_);
        for (const RowStep& step : gathered_.before) {
          RunStep(pass_, attention_, none, step, rows, part);
        }
        RunStep(pass_, attention_, none, gathered_.projection, rows, part);
      });
      return;
    }
    CopyOutputRows(team, pass_, x_, wanted_, y_);
    RunStepsByColumns(team, pass_, attention_, none, gathered_rows_, pass_.sequences(),
                      gathered_.before.begin(), gathered_.before.end(),
                      gathered_.projection.matrix);
    RunStepsByColumns(team, pass_, attention_, none, gathered_rows_, pass_.sequences(),
                      &gathered_.projection, &gathered_.projection + 1, nullptr);
  }

  void AttendBySequences(Team& team) const {
    const ThreadPlan& plan = pass_.thread_plan;
    team.ForEachInOrder(plan.groups, [&](size_t i, int thread) {
      const size_t group = plan.order[i];
      const QkvWindow window = attention_.OfGroup(group, thread);
      const size_t first = pass_.starts()[plan.group_starts[group]];
      const size_t rows = pass_.starts()[plan.group_starts[group + 1]] - first;
      const EvenSplit blocks{rows, DivCeil(rows, kRowsOfTask)};
      for (size_t b = 0; b < blocks.parts; ++b) {
        KeysAndValues(window, first + blocks.begin(b), first + blocks.begin(b + 1), thread);
      }
      for (size_t b = plan.group_starts[group]; b < plan.group_starts[group + 1]; ++b) {
        Attend(window, b, {0, sizes_.heads}, thread);
      }
    });
  }

  void AttendByRows(Team& team) const {
    const QkvWindow window = attention_.WholeBatch();
    const EvenSplit& blocks = pass_.thread_plan.row_blocks;
    team.ForEach(blocks.parts, [&](size_t b, int thread) {
      KeysAndValues(window, blocks.begin(b), blocks.begin(b + 1), thread);
    });
    AttendByHeads(team, window);
  }

  void AttendByColumns(Team& team) const {
    const QkvWindow window = attention_.WholeBatch();
    RunStepsByColumns(team, pass_, attention_, window, all_rows_, pass_.tokens(),
                      all_.before.begin(), all_.before.end(), all_.projection.matrix);
    RunStepsByColumns(team, pass_, attention_, window, all_rows_, pass_.tokens(), &all_.projection,
                      &all_.projection + 1, nullptr);
    team.ForEach(sizes_.kv_heads, [&](size_t h, int /*thread*/) {
      attention_.PrepareKeys(window, 0, pass_.tokens(), {h, h + 1});
    });
    AttendByHeads(team, window);
  }

  // Rows [begin, end) up to their keys and values.
  void KeysAndValues(const QkvWindow& window, size_t begin, size_t end, int thread) const {
    const StepPart part{begin, end - begin};
    const StepRows rows = all_rows_.From(begin, ThreadRow(thread));
    for (const RowStep& step : all_.before) RunStep(pass_, attention_, window, step, rows, part);
    RunStep(pass_, attention_, window, all_.projection, rows, part);
    attention_.PrepareKeys(window, begin, end, {0, sizes_.kv_heads});
  }

  // Few sequences are cut by heads too.
  void AttendByHeads(Team& team, const QkvWindow& window) const {
    const size_t threads = pass_.thread_plan.threads;
    const bool cut = pass_.sequences() < 4 * threads;
    const EvenSplit heads{sizes_.heads, cut ? std::min(sizes_.heads, threads) : 1};
    team.ForEachInOrder(pass_.sequences() * heads.parts, [&](size_t task, int thread) {
      const size_t part = task % heads.parts;
      Attend(window, task / heads.parts, {heads.begin(part), heads.begin(part + 1)}, thread);
    });
  }

  // Some heads of one sequence's wanted row, from their queries to their context.
  void Attend(const QkvWindow& window, size_t sequence, HeadRange heads, int thread) const {
    const size_t row = RowOf(pass_, wanted_, sequence);
    const Rows context = gathered_rows_.context.From(sequence);
    attention_.PutQueries(window, row, context.data, q_columns_, heads);
    attention_.PrepareQueries(window, row, row + 1, heads);
    attention_.Run(window, row, row + 1, heads, thread, context);
  }

  void Finish(Team& team) const {
    const QkvWindow none = attention_.WholeBatch();
    if (!by_blocks_) {
      RunStepsByColumns(team, pass_, attention_, none, gathered_rows_, pass_.sequences(),
                        gathered_.after.begin(), gathered_.after.end(), nullptr);
      return;
    }
    const EvenSplit blocks = BlocksOfGathered();
    team.ForEach(blocks.parts, [&](size_t i, int thread) {
      const StepPart part = PartOf(blocks, i);
      const StepRows rows = gathered_rows_.From(part.begin, ThreadRow(thread));
      for (const RowStep& step : gathered_.after) {
        RunStep(pass_, attention_, none, step, rows, part);
      }
    });
  }

  size_t ThreadRow(int thread) const {
    return pass_.scratch_plan.FirstRowOf(thread, pass_.thread_plan.threads);
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
