// SPDX-License-Identifier: Apache-2.0
//
// The choice of a plan, with the reason for each threshold.

#include "engine/nn/thread_plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/base/int_math.h"
#include "engine/ops/attention.h"

namespace encore::inline v0_1::internal {
namespace {

// A thread with less work than this, some 8 us of one core with AVX-512, is not worth waking.
constexpr double kFlopsWorthAThread = 2e6;

// Threads may be idle for this share of a plan by sequences: a plan by rows costs about as much in
// waiting and in panels read by several threads.
constexpr double kTolerableImbalance = 1.06;

// With so many tasks for each thread, waiting for the last ones is short, whatever the threads'
// speeds.
constexpr size_t kManyTasks = 16;

struct Lengths {
  size_t tokens = 0;
  size_t shortest = 0;  // of those that are not empty
  size_t longest = 0;
  double flops = 0;
};

Lengths Measure(const ModelSizes& model, std::span<const size_t> starts) {
  Lengths all;
  all.tokens = starts.back();
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    const size_t length = starts[b + 1] - starts[b];
    if (length == 0) continue;
    all.flops += model.FlopsOfLayer(length);
    all.longest = std::max(all.longest, length);
    all.shortest = all.shortest == 0 ? length : std::min(all.shortest, length);
  }
  return all;
}

// Cuts the batch into tasks of consecutive sequences, of about kRowsOfTask rows or somewhat fewer.
// If there are many tasks, those of the batch's last quarter have half as many rows, so that no
// thread starts a long task at the end. Returns the number of tasks.
size_t MakeTasks(std::span<const size_t> starts, size_t threads, size_t* task_starts) {
  const size_t sequences = starts.size() - 1;
  const size_t tokens = starts.back();
  const size_t parts = RoundUp(DivCeil(tokens, kRowsOfTask), threads);
  const bool many = threads > 1 && parts >= 4 * threads;
  const double rows = static_cast<double>(tokens) / static_cast<double>(parts);
  size_t tasks = 0;
  double boundary = rows;  // where the task at hand should end
  task_starts[0] = 0;
  for (size_t b = 0; b < sequences; ++b) {
    const double begin = static_cast<double>(starts[b]);
    const double end = static_cast<double>(starts[b + 1]);
    if (b > task_starts[tasks] && (begin + end) / 2 > boundary) {
      task_starts[++tasks] = b;
      do {
        boundary += many && 4 * begin > 3 * static_cast<double>(tokens) ? rows / 2 : rows;
      } while (boundary <= begin);
    }
  }
  task_starts[++tasks] = sequences;
  return tasks;
}

// order = 0 .. count - 1, the largest first, equals as they are.
template <typename Size>
void OrderBySize(size_t count, const Size& size, size_t* order) {
  std::iota(order, order + count, size_t{0});
  std::sort(order, order + count,
            [&](size_t a, size_t b) { return size(a) != size(b) ? size(a) > size(b) : a < b; });
}

// The work of the busiest thread if each idle thread starts the next task in order, in the unit of
// `cost`. loads: [threads].
template <typename Cost>
size_t Makespan(const ThreadPlan& plan, const Cost& cost, size_t* loads) {
  std::fill_n(loads, plan.threads, size_t{0});
  for (size_t i = 0; i < plan.tasks; ++i) {
    size_t* least = std::min_element(loads, loads + plan.threads);
    for (size_t b = plan.task_starts[plan.order[i]]; b < plan.task_starts[plan.order[i] + 1]; ++b) {
      *least += cost(b);
    }
  }
  return *std::max_element(loads, loads + plan.threads);
}

// The number of row blocks for threads of unequal speed, a multiple of `parts`.
size_t SmallRowBlocks(const ModelSizes& model, size_t tokens, size_t parts, double l3) {
  const double weight_bytes = model.FlopsOfLayer(1) / 2 * (model.packs_lhs ? 2 : 4);
  const size_t rows = 4 * weight_bytes > l3 ? kRowsOfSmallBlockOfLargeLayer : kRowsOfSmallBlock;
  return parts * std::max<size_t>(1, tokens / (parts * rows));
}

}  // namespace

ModelSizes::ModelSizes(const EncoderConfig& config, bool reduced)
    : d_model(config.d_model),
      packs_lhs(reduced),
      num_layers_(static_cast<double>(config.layers.size())) {
  for (const LayerConfig& layer : config.layers) {
    const LayerSizes sizes(d_model, layer);
    heads = std::max(heads, sizes.heads);
    q_width = std::max(q_width, sizes.q_width());
    kv_width = std::max(kv_width, sizes.kv_width());
    qkv_width = std::max(qkv_width, sizes.qkv_width());
    head_size = std::max(head_size, sizes.head_size);
    per_layer_input = std::max(per_layer_input, sizes.per_layer_input);
    d_ff = std::max({d_ff, sizes.d_ff, sizes.per_layer_input, sizes.patch});
    keeps_encoder_input = keeps_encoder_input || layer.layer_input || layer.convolution;
    experts = std::max(experts, sizes.experts);
    if (layer.experts) expert_rows = std::max(expert_rows, layer.experts->top_k);
    relative = relative || layer.relative.has_value();
    if (reduced || sizes.head_size % 16 != 0) {
      packed_value_bytes = std::max(packed_value_bytes,
                                    sizes.kv_heads * RoundUp(sizes.head_size, 16) * sizeof(float));
    }
    if (!layer.window) global_kv_width = std::max(global_kv_width, sizes.kv_width());
    const LayerCost cost(d_model, layer);
    const auto same = std::find_if(kinds_.begin(), kinds_.end(),
                                   [&](const Kind& kind) { return kind.cost == cost; });
    if (same != kinds_.end()) {
      same->count += 1;
    } else {
      kinds_.push_back({cost, 1});
    }
  }
}

double ModelSizes::FlopsOfLayer(size_t tokens) const {
  double flops = 0;
  for (const Kind& kind : kinds_) flops += kind.count * kind.cost.Flops(tokens);
  return flops / num_layers_;
}

const char* ThreadPlanKindName(ThreadPlanKind kind) {
  constexpr const char* kNames[] = {"sequences", "rows", "columns"};
  const auto i = static_cast<size_t>(kind);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

ThreadPlan ChooseThreadPlan(const ModelSizes& model, std::span<const size_t> seq_starts,
                            size_t threads, const CacheSizes& caches, size_t* words, bool uneven) {
  const Lengths all = Measure(model, seq_starts);
  uneven = uneven && all.tokens >= kMinTokensOfSmallBlocks;
  ThreadPlan plan{};
  plan.threads = std::clamp<size_t>(
      static_cast<size_t>(std::min(all.flops / kFlopsWorthAThread, 1e9)), 1, threads);

  size_t* task_starts = words;
  size_t* order = task_starts + seq_starts.size();
  plan.kind = ThreadPlanKind::kSequences;
  plan.tasks = MakeTasks(seq_starts, plan.threads, task_starts);
  plan.task_starts = task_starts;
  plan.order = order;
  std::iota(order, order + plan.tasks, size_t{0});
  const auto rows_of = [&](size_t task) {
    return seq_starts[task_starts[task + 1]] - seq_starts[task_starts[task]];
  };
  for (size_t g = 0; g < plan.tasks; ++g) {
    plan.max_task_rows = std::max(plan.max_task_rows, rows_of(g));
    plan.max_task_sequences =
        std::max(plan.max_task_sequences, task_starts[g + 1] - task_starts[g]);
  }
  // A block of rows reads all heads' keys and values of its sequence, unless a window hides most.
  // If they exceed the last cache, attention runs head by head instead, for all rows.
  const double l3 = caches.l3 != 0 ? static_cast<double>(caches.l3) : 8e6;
  const bool long_ones = 8.0 * static_cast<double>(all.longest * model.global_kv_width) > l3 / 2;
  if (plan.threads == 1 && !long_ones) return plan;

  OrderBySize(plan.tasks, rows_of, order);
  const auto cost = [&](size_t b) {  // in thousands, whose sum fits size_t
    return static_cast<size_t>(model.FlopsOfLayer(seq_starts[b + 1] - seq_starts[b]) * 1e-3);
  };
  const double busiest = static_cast<double>(Makespan(plan, cost, order + plan.tasks)) * 1e3;
  const bool has_room = plan.threads * std::min(plan.max_task_rows, kRowsOfTask) <=
                        RowsOfAllBlocks(all.tokens, plan.threads);
  const size_t parts = RoundUp(std::max<size_t>(1, DivCeil(all.tokens, kRowsOfTask)), plan.threads);
  const bool rows_can_be_cut = all.tokens / parts >= kMinRowsOfBlock;
  const bool wants_small_tasks =
      uneven && rows_can_be_cut && plan.tasks < kManyTasks * plan.threads;
  if (!long_ones && has_room && !wants_small_tasks &&
      busiest <= kTolerableImbalance * all.flops / static_cast<double>(plan.threads)) {
    return plan;
  }

  if (rows_can_be_cut) {
    plan.kind = ThreadPlanKind::kRows;
    plan.row_blocks = {all.tokens, uneven ? SmallRowBlocks(model, all.tokens, parts, l3) : parts};
    plan.attention_apart = all.shortest != all.longest || long_ones;
    // Sequences by falling length.
    const auto length_of = [&](size_t b) { return seq_starts[b + 1] - seq_starts[b]; };
    OrderBySize(seq_starts.size() - 1, length_of, order);
    size_t* const block_starts = words;  // in the tasks' place
    block_starts[0] = 0;
    for (size_t i = 0; i + 1 < seq_starts.size(); ++i) {
      block_starts[i + 1] = block_starts[i] + DivCeil(length_of(order[i]), kQueryBlock);
    }
    plan.block_starts = block_starts;
    plan.task_starts = nullptr;
    return plan;
  }
  plan.kind = ThreadPlanKind::kColumns;
  return plan;
}

bool HeadsTogether(const LayerSizes& layer, size_t threads, size_t panel_cols) {
  // A head that is no multiple of 16 reads columns of the next one, which another thread may be
  // writing.
  return layer.kv_heads % threads == 0 && layer.head_size % 16 == 0 &&
         layer.q_width() / threads % panel_cols == 0 &&
         layer.kv_width() / threads % panel_cols == 0;
}

}  // namespace encore::internal
