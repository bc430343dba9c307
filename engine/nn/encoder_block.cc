// SPDX-License-Identifier: Apache-2.0
//
// The block's recipe in its two orders, and the attention stage over sequences, heads and blocks
// of queries. Not here: the steps that take each row by itself (row_steps.cc).

#include "engine/nn/encoder_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "engine/nn/row_steps.h"
#include "engine/ops/attention.h"

namespace encore::internal {
namespace {

// q, k and v of every token to the context of every token, head by head.
class AttentionStage {
 public:
  AttentionStage(const Pass& pass, size_t index) : pass_(pass), index_(index) {
    layout_.kernel = pass.kernels->gemm;
    layout_.head_size = pass.config->d_model / pass.config->num_heads;
    layout_.value_size = layout_.head_size;
    scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layout_.head_size)));
  }

  void Run(Team& team) const {
    const size_t heads = pass_.config->num_heads;
    team.ForEach(pass_.sequences() * heads,
                 [&](size_t task, int /*lane*/) { Pack(task / heads, task % heads); });
    team.ForEach(pass_.block_starts[pass_.sequences()] * heads, [&](size_t task, int lane) {
      // A sequence's blocks times heads lie together, head by head, so that a lane meets the same
      // keys again.
      const size_t* const starts = pass_.block_starts;
      const size_t* const next =
          std::upper_bound(starts, starts + pass_.sequences() + 1, task / heads);
      const size_t sequence = static_cast<size_t>(next - starts) - 1;
      const size_t blocks = starts[sequence + 1] - starts[sequence];
      const size_t within = task - starts[sequence] * heads;
      Attend(sequence, within / blocks, within % blocks, lane);
    });
  }

 private:
  size_t first_row(size_t sequence) const { return pass_.batch->seq_starts[sequence]; }
  size_t length(size_t sequence) const { return first_row(sequence + 1) - first_row(sequence); }

  // Part 0 is q, 1 is k, 2 is v: [length, head size].
  MutableView Part(size_t sequence, size_t head, size_t part) const {
    float* data = pass_.scratch + pass_.plan.qkv + first_row(sequence) * pass_.plan.ld_qkv +
                  part * pass_.config->d_model + head * layout_.head_size;
    return MutableView(data, Shape(length(sequence), layout_.head_size),
                       MutableView::Strides{static_cast<ptrdiff_t>(pass_.plan.ld_qkv), 1});
  }

  float* Keys(size_t sequence, size_t head) const {
    // Sequences begin at multiples of 16 keys, each with 16 more than those before it have, so that
    // none meet.
    const size_t start = (first_row(sequence) / 16 + sequence) * 16;
    return pass_.scratch + pass_.plan.keys + start * pass_.config->d_model +
           head * RoundUp(length(sequence), 16) * layout_.head_size;
  }
  float* Values(size_t sequence, size_t head) const {
    const size_t padded = RoundUp(layout_.head_size, 16);
    return pass_.scratch + pass_.plan.values +
           (first_row(sequence) * pass_.config->num_heads + head * length(sequence)) * padded;
  }
  PackedHead Head(size_t sequence, size_t head) const {
    PackedHead packed = layout_;
    packed.keys = length(sequence);
    packed.packed_keys = Keys(sequence, head);
    packed.packed_values = Values(sequence, head);
    return packed;
  }

  void Pack(size_t sequence, size_t head) const {
    if (length(sequence) == 0) return;
    PackHead(Head(sequence, head), Part(sequence, head, 1), Part(sequence, head, 2),
             Keys(sequence, head), Values(sequence, head));
  }

  void Attend(size_t sequence, size_t head, size_t block, int lane) const {
    AttentionHead work{};
    work.q = Part(sequence, head, 0);
    work.packed = Head(sequence, head);
    work.softmax = pass_.kernels->softmax;
    work.out = MutableView(pass_.scratch + pass_.plan.context +
                               first_row(sequence) * pass_.plan.ld_model + head * layout_.head_size,
                           Shape(length(sequence), layout_.head_size),
                           MutableView::Strides{static_cast<ptrdiff_t>(pass_.plan.ld_model), 1});
    if (!pass_.taps->attention.empty()) {
      const MutableView& tap = pass_.taps->attention[index_ * pass_.sequences() + sequence];
      if (!tap.empty()) work.weights = tap[head];
    }
    work.scale = scale_;
    work.mask = &pass_.batch->mask;
    if (!pass_.batch->positions.empty()) {
      work.query_positions = pass_.batch->positions.data() + first_row(sequence);
      work.key_positions = work.query_positions;
    }
    AttendBlock(work, block,
                pass_.scratch + pass_.plan.attention +
                    static_cast<size_t>(lane) * pass_.plan.attention_floats);
  }

  const Pass& pass_;
  size_t index_;
  PackedHead layout_{};
  float scale_;
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

void CountQueryBlocks(const Batch& batch, size_t* starts) {
  starts[0] = 0;
  for (size_t b = 0; b + 1 < batch.seq_starts.size(); ++b) {
    starts[b + 1] = starts[b] + DivCeil(batch.seq_starts[b + 1] - batch.seq_starts[b], kQueryBlock);
  }
}

void EncoderBlock(Team& team, const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
                  Rows y) {
  const RowBuffers b(pass);
  const RowBuffer in = RowBuffer::Shared(x);
  const RowBuffer out = RowBuffer::Shared(y);
  const AttentionStage attention(pass, index);

  if (pass.config->norm_first) {
    RunSteps(team, pass,
             {NormStep(layer.norm1, in, b.normed),  //
              LinearStep(layer.qkv, b.normed, b.qkv)});
    attention.Run(team);
    RunSteps(team, pass,
             {ResidualStep(layer.out_proj, b.context, in, out),   // y = x + attention
              NormStep(layer.norm2, out, b.normed),               //
              ActivationStep(layer.linear1, b.normed, b.hidden),  //
              ResidualStep(layer.linear2, b.hidden, out, out)});  // y += ff
  } else {
    RunSteps(team, pass, {LinearStep(layer.qkv, in, b.qkv)});
    attention.Run(team);
    RunSteps(team, pass,
             {ResidualStep(layer.out_proj, b.context, in, b.mid),      // x + attention
              NormStep(layer.norm1, b.mid, b.normed),                  //
              ActivationStep(layer.linear1, b.normed, b.hidden),       //
              ResidualStep(layer.linear2, b.hidden, b.normed, b.mid),  // + ff
              NormStep(layer.norm2, b.mid, out)});
  }
  if (!pass.taps->hidden.empty() && !pass.taps->hidden[index].empty()) {
    CopyRows(team, pass, {y.data, y.ld}, pass.taps->hidden[index]);
  }
}

void NormRows(Team& team, const Pass& pass, const PackedLayerNorm& norm, Rows y) {
  const RowBuffer rows = RowBuffer::Shared(y);
  RunSteps(team, pass, {NormStep(norm, rows, rows)});
}

}  // namespace encore::internal
