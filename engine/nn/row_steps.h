// SPDX-License-Identifier: Apache-2.0
//
// Steps of a block that take each row of tokens by itself: linear layers and norms. Not here:
// attention, which needs other rows (attention_stage.h), and which lane takes which rows
// (encoder_block.cc).

#ifndef ENCORE_ENGINE_NN_ROW_STEPS_H_
#define ENCORE_ENGINE_NN_ROW_STEPS_H_

#include <array>
#include <cstddef>
#include <initializer_list>

#include "engine/base/aligned_buffer.h"
#include "engine/nn/attention_stage.h"
#include "engine/nn/pass.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::internal {

struct PackedLayerNorm {
  AlignedBuffer<float> weight;  // [d_model]
  AlignedBuffer<float> bias;    // [d_model], or nothing for 0
};

// Rows of tokens: [tokens, ld], in memory of the caller's.
struct ConstRows {
  const float* data;
  size_t ld;
};
struct Rows {
  float* data;
  size_t ld;
};

// Rows that a step reads or writes: of all tokens, or (private to a lane) of the block of rows it
// has at hand.
struct RowBuffer {
  float* data = nullptr;
  size_t ld = 0;
  bool of_block = false;  // row 0 is the first row of the block, in the lane's share of the buffer

  static RowBuffer Shared(Rows rows) { return {rows.data, rows.ld, false}; }
  // For reading only.
  static RowBuffer Shared(ConstRows rows) {
    return {const_cast<float*>(rows.data), rows.ld, false};
  }
};

// A part of a step's work: rows [begin, end) and, of a linear step, panels [panel_begin,
// panel_end).
struct StepPart {
  size_t begin;
  size_t end;
  size_t lane_row = 0;  // where the lane's share of a buffer of blocks begins
  size_t panel_begin = 0;
  size_t panel_end = static_cast<size_t>(-1);  // as many as there are
  const void* next = nullptr;                  // see GemmArgs

  float* RowsOf(const RowBuffer& buffer) const {
    return buffer.data + (buffer.of_block ? lane_row : begin) * buffer.ld;
  }
};

struct RowStep {
  const PackedMatrix* matrix =
      nullptr;  // a linear step: out = in matrix + bias (, activation) (+ residual)
  const PackedLayerNorm* norm = nullptr;  // or a norm: out = LayerNorm(in)
  RowBuffer in;
  RowBuffer out;
  RowBuffer residual;
  bool activate = false;
  bool to_attention = false;  // the output goes to attention's window, not to `out`

  size_t panels() const { return matrix != nullptr ? matrix->view().panels() : 1; }
};

inline RowStep ProjectionStep(const PackedMatrix& matrix, RowBuffer in) {
  return {.matrix = &matrix, .in = in, .out = {}, .residual = {}, .to_attention = true};
}
inline RowStep ActivationStep(const PackedMatrix& matrix, RowBuffer in, RowBuffer out) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = {}, .activate = true};
}
// out = residual + in matrix + bias; out may be the residual.
inline RowStep ResidualStep(const PackedMatrix& matrix, RowBuffer in, RowBuffer residual,
                            RowBuffer out) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = residual};
}
inline RowStep NormStep(const PackedLayerNorm& norm, RowBuffer in, RowBuffer out) {
  return {.norm = &norm, .in = in, .out = out, .residual = {}};
}

// Some steps in order.
class RowSteps {
 public:
  RowSteps() = default;
  RowSteps(std::initializer_list<RowStep> steps) : count_(steps.size()) {
    std::copy(steps.begin(), steps.end(), steps_.begin());
  }
  const RowStep* begin() const { return steps_.data(); }
  const RowStep* end() const { return steps_.data() + count_; }

 private:
  std::array<RowStep, 5> steps_;
  size_t count_ = 0;
};

// One step for a part; `window` is where the first product's output goes.
void RunStep(const Pass& pass, const AttentionStage& attention, const QkvWindow& window,
             const RowStep& step, const StepPart& part);

// The steps, each shared by all lanes: a linear one by columns, a norm by rows.
void RunStepsByColumns(Team& team, const Pass& pass, const AttentionStage& attention,
                       const QkvWindow& window, const RowSteps& steps);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ROW_STEPS_H_
