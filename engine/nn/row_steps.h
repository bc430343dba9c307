// SPDX-License-Identifier: Apache-2.0
//
// Steps of a block that take each row of tokens by itself (linear layers and norms), and how a
// chain of them is shared among lanes. Not here: attention, which needs other rows
// (encoder_block.cc).

#ifndef ENCORE_ENGINE_NN_ROW_STEPS_H_
#define ENCORE_ENGINE_NN_ROW_STEPS_H_

#include <cstddef>
#include <initializer_list>

#include "engine/nn/encoder_block.h"

namespace encore::internal {

// Rows that a step reads or writes: of all tokens, or (private to a lane) of the block of rows it
// has at hand.
struct RowBuffer {
  float* data = nullptr;
  size_t ld = 0;
  bool of_block = false;  // with a plan by rows: row 0 is the block's first row, in the lane's
                          // share of the buffer

  static RowBuffer Shared(Rows rows) { return {rows.data, rows.ld, false}; }
  // For reading only.
  static RowBuffer Shared(ConstRows rows) {
    return {const_cast<float*>(rows.data), rows.ld, false};
  }
};

// The pass's intermediates.
struct RowBuffers {
  explicit RowBuffers(const Pass& pass);
  RowBuffer qkv;
  RowBuffer context;
  RowBuffer mid;
  RowBuffer normed;
  RowBuffer hidden;
};

struct RowStep {
  const PackedMatrix* matrix =
      nullptr;  // a linear step: out = in matrix + bias (, activation) (+ residual)
  const PackedLayerNorm* norm = nullptr;  // or a norm: out = LayerNorm(in)
  RowBuffer in;
  RowBuffer out;
  RowBuffer residual;
  bool activate = false;
};

inline RowStep LinearStep(const PackedMatrix& matrix, RowBuffer in, RowBuffer out) {
  return {.matrix = &matrix, .in = in, .out = out, .residual = {}};
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

// All steps over all tokens, in order.
void RunSteps(Team& team, const Pass& pass, std::initializer_list<RowStep> steps);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ROW_STEPS_H_
