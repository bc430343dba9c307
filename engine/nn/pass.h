// SPDX-License-Identifier: Apache-2.0
//
// What all blocks of one forward pass share.

#ifndef ENCORE_ENGINE_NN_PASS_H_
#define ENCORE_ENGINE_NN_PASS_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "encore/encoder.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/relative.h"
#include "engine/kernels/rotary.h"
#include "engine/kernels/softmax.h"
#include "engine/nn/position_tables.h"
#include "engine/nn/scratch_plan.h"
#include "engine/nn/thread_plan.h"

namespace encore::inline v0_1::internal {

// The kernels of the target that the weights were packed for. Those of norms and activations are in
// the layers.
struct BlockKernels {
  const GemmKernel* gemm;
  const SoftmaxKernels* softmax;
  const RotaryKernels* rotary;
  const RelativeKernels* relative;
};

class ProductObserver;
class Team;

// Immutable while the team runs.
struct Pass {
  const EncoderConfig* config;
  const BlockKernels* kernels;
  const Batch* batch;
  const Taps* taps;
  ScratchPlan scratch_plan;
  ThreadPlan thread_plan;
  std::byte* scratch;  // the workspace
  const PositionTables* tables;
  ProductObserver* observer;  // or null (product_observer.h)
  size_t longest;             // tokens of the longest sequence
  const Team* team;           // that runs it

  std::span<const size_t> starts() const { return batch->seq_starts.get(); }
  // The memory at an offset of the scratch plan.
  template <typename T = float>
  T* At(size_t offset) const {
    return reinterpret_cast<T*>(scratch + offset);
  }
  float* tables_memory() const { return At(scratch_plan.positions); }
  size_t tokens() const { return starts().back(); }
  size_t sequences() const { return starts().size() - 1; }
  // Where a thread's share of the scratch plan's block_rows begins; times expert_rows in buffers
  // with expert_rows rows for each.
  size_t ThreadRow(int thread) const {
    return static_cast<size_t>(thread) * (scratch_plan.block_rows / thread_plan.threads);
  }

  // Calls f(begin, end) for each block of rows of a task, in a plan by sequences.
  template <typename F>
  void ForRowBlocks(size_t task, const F& f) const {
    const size_t first = starts()[thread_plan.task_starts[task]];
    const size_t rows = starts()[thread_plan.task_starts[task + 1]] - first;
    const EvenSplit blocks{rows, DivCeil(rows, kRowsOfTask)};
    for (size_t b = 0; b < blocks.parts; ++b)
      f(first + blocks.begin(b), first + blocks.begin(b + 1));
  }

  // Calls f(sequence, first, last) for each sequence that has rows in [begin, end) of the batch:
  // its own rows [first, last), counted from its start.
  template <typename F>
  void ForSequences(size_t begin, size_t end, const F& f) const {
    if (begin == end) return;
    const auto after = std::upper_bound(starts().begin(), starts().end(), begin);
    for (size_t b = static_cast<size_t>(after - starts().begin()) - 1; starts()[b] < end; ++b) {
      const size_t first = std::max(begin, starts()[b]);
      const size_t last = std::min(end, starts()[b + 1]);
      if (first < last) f(b, first - starts()[b], last - starts()[b]);
      if (b + 1 == sequences()) break;
    }
  }
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PASS_H_
