// SPDX-License-Identifier: Apache-2.0
//
// Steps of a block that take each row of tokens by itself: linear layers and norms.

#ifndef ENCORE_ENGINE_NN_ROW_STEPS_H_
#define ENCORE_ENGINE_NN_ROW_STEPS_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/nn/attention_stage.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Rows of tokens: [tokens, ld], in memory of the caller's.
struct ConstRows {
  const float* data;
  size_t ld;
};
struct Rows {
  float* data;
  size_t ld;
};

inline constexpr size_t kFloatBytes = sizeof(float);

// What a step reads or writes.
struct RowBuffer {
  enum class Kind {
    kShared,    // row 0 is the first row of the batch
    kOfThread,  // row 0 is the first row of the row block at hand, in the thread's share of the
                // buffer
    kWindow,    // attention's window: written by the projection only (attention_stage.h)
  };
  void* data = nullptr;
  size_t ld = 0;  // elements
  Kind kind = Kind::kShared;
  size_t element_bytes = kFloatBytes;
  RowQuant* quant = nullptr;  // beside rows of A of an integer kernel, one for each

  float* floats() const {
    ENCORE_DCHECK(element_bytes == kFloatBytes);
    return static_cast<float*>(data);
  }

  static RowBuffer Shared(Rows rows) { return {rows.data, rows.ld, Kind::kShared}; }
  // For reading only.
  static RowBuffer Shared(ConstRows rows) {
    return {const_cast<float*>(rows.data), rows.ld, Kind::kShared};
  }
  static RowBuffer Window() { return {nullptr, 0, Kind::kWindow}; }
};

// Where rows of A of a product lie that takes no floats. Its ld is in bytes until the product is
// known.
inline RowBuffer InputBuffer(const Pass& pass, RowBuffer::Kind kind) {
  const ScratchPlan& plan = pass.scratch_plan;
  return {pass.At<std::byte>(plan.input), plan.ld_input, kind, 1, pass.At<RowQuant>(plan.quants)};
}

// A part of a step's work: rows [begin, end) and, of a linear step, panels [panel_begin,
// panel_end).
struct StepPart {
  size_t begin;
  size_t end;
  size_t thread_row = 0;   // where the thread's share of a buffer kOfThread begins
  size_t panel_begin = 0;  // within the step's
  size_t panel_end = static_cast<size_t>(-1);
  const void* next = nullptr;  // see GemmArgs

  void* RowsOf(const RowBuffer& buffer) const {
    const size_t row = buffer.kind == RowBuffer::Kind::kOfThread ? thread_row : begin;
    return static_cast<std::byte*>(buffer.data) + row * buffer.ld * buffer.element_bytes;
  }
  RowQuant* QuantsOf(const RowBuffer& buffer) const {
    if (buffer.quant == nullptr) return nullptr;
    return buffer.quant + (buffer.kind == RowBuffer::Kind::kOfThread ? thread_row : begin);
  }
  float* FloatsOf(const RowBuffer& buffer) const {
    ENCORE_DCHECK(buffer.element_bytes == kFloatBytes);
    return static_cast<float*>(RowsOf(buffer));
  }
};

// A linear step, out = activation(in matrix + bias) or out = in matrix + bias (+ residual); a norm,
// out = norm(in) (+ residual); or rows of floats made into rows of A for a linear step to come.
struct RowStep {
  const PackedMatrix* matrix = nullptr;
  const PackedNorm* norm = nullptr;
  const PackedMatrix* rows_for = nullptr;
  RowBuffer in;
  RowBuffer out;
  RowBuffer residual;                           // without data for none; may be out
  const BlockActivation* activation = nullptr;  // of a linear step without a residual
  // Of a linear step, the panels that it is about; to the last one if there are fewer.
  size_t panel_begin = 0;
  size_t panel_end = static_cast<size_t>(-1);

  size_t last_panel() const { return std::min(panel_end, matrix->view().panels()); }
};

// Some steps in order.
class RowSteps {
 public:
  RowSteps() = default;
  void Add(const RowStep& step) {
    ENCORE_CHECK(count_ < steps_.size());
    steps_[count_++] = step;
  }
  const RowStep* begin() const { return steps_.data(); }
  const RowStep* end() const { return steps_.data() + count_; }

 private:
  std::array<RowStep, 9> steps_;
  size_t count_ = 0;
};

// One step for a part; `window` is where a projection's output goes.
void RunStep(const Pass& pass, const AttentionStage& attention, const QkvWindow& window,
             const RowStep& step, const StepPart& part);

// The steps [begin, end) of rows [0, rows), each shared by all threads: a linear one by columns,
// others by rows. `following` is the matrix that comes after them, or null.
void RunStepsByColumns(Team& team, const Pass& pass, const AttentionStage& attention,
                       const QkvWindow& window, size_t rows, const RowStep* begin,
                       const RowStep* end, const PackedMatrix* following);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ROW_STEPS_H_
