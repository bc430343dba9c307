// SPDX-License-Identifier: Apache-2.0
//
// The steps of a block outside attention, each row of tokens by itself, and their order.

#ifndef ENCORE_ENGINE_NN_ROW_STEPS_H_
#define ENCORE_ENGINE_NN_ROW_STEPS_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/kernels/rows.h"
#include "engine/nn/attention_stage.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/ops/packed_matrix.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// What a step reads or writes: rows of floats, but for kLhs and kQkv.
enum class Buffer {
  kNone,
  kY,        // the layer's output; may be x
  kContext,  // attention's output
  kMid,      // a sum before its norm
  kNormed,
  kHidden,  // of the feed-forward network, of a layer_input's gate, or a convolution's patches
  kPerLayerInput,  // proj x0 of a layer_input
  // Read only.
  kX,             // the layer's input
  kEncoderInput,  // x0, where layers read it
  // Reached by other ways than StepRows::Read and Written.
  kLhs,  // the packed left-hand side of a product that takes no floats
  kQkv,  // attention's QkvBuffer, which the projection writes (attention_stage.h)
};

// The buffers that steps read and write. Each begins with row 0 of the batch or, as From returns
// them, with the row `begin`.
struct StepRows {
  ConstRows x;
  ConstRows encoder_input;
  std::array<Rows, static_cast<size_t>(Buffer::kX)> written;  // by Buffer
  PackedLhs lhs;
  Rows routes;  // of the experts' steps, as their own rows below
  Rows expert;
  size_t expert_rows;  // rows of hidden, lhs and expert for each row of the others
  bool own_context;    // a row block's context is in its thread's share of the buffer
  bool own;            // so are mid, normed, hidden and lhs

  StepRows(const Pass& pass, ConstRows in, Rows out, bool own_buffers, bool context_too);

  // Those of rows from `begin` on, for the thread whose share begins at thread_row.
  StepRows From(size_t begin, size_t thread_row) const;
  // Where threads share rows.
  StepRows From(size_t begin) const { return From(begin, begin); }

  Rows Written(Buffer buffer) const {
    ENCORE_DCHECK(buffer < Buffer::kX);
    return written[static_cast<size_t>(buffer)];
  }
  Rows context() const { return Written(Buffer::kContext); }
  ConstRows Read(Buffer buffer) const {
    if (buffer == Buffer::kEncoderInput) return encoder_input;
    return buffer == Buffer::kX ? x : ConstRows(Written(buffer));
  }
};

// A part of a step's work: `rows` rows, and units [begin_unit, end_unit) of RowStep::Units.
struct StepPart {
  size_t begin;  // in the batch
  size_t rows;
  size_t begin_unit = 0;
  size_t end_unit = static_cast<size_t>(-1);
  const void* next = nullptr;  // see GemmArgs
};

enum class StepKind {
  kLinear,          // out = activation(in matrix + bias), or in matrix + bias (+ residual)
  kPackLhs,         // kLhs = `in`, packed for the product with `matrix` that follows
  kNorm,            // out = norm(in) (+ residual)
  kScale,           // out = scale in
  kMultiply,        // out = in * residual, element by element
  kAdd,             // out = in + residual
  kIm2Col,          // out = the patch of each row of x0 under a convolution's kernel
  kRouteExperts,    // a mixture of experts: out = experts(in) (+ residual), in three steps
  kComputeExperts,  // (experts.h)
  kSumExperts,
};

struct RowStep {
  StepKind kind = StepKind::kLinear;
  const PackedMatrix* matrix = nullptr;         // kLinear, kPackLhs
  const BlockActivation* activation = nullptr;  // kLinear without a residual, kComputeExperts
  const PackedNorm* norm = nullptr;
  const PackedExperts* experts = nullptr;
  float scale = 1;
  size_t width = 0;   // of kNorm, kScale, kMultiply and kAdd; 0: d_model
  size_t kernel = 0;  // of kIm2Col
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer residual = Buffer::kNone;  // may be out
  // The panels of a kLinear step; to the last one if there are fewer.
  size_t panel_begin = 0;
  size_t panel_end = static_cast<size_t>(-1);

  // Steps that compute each row by itself are shared by rows (StepRows::From). The others are
  // shared by units: panels, experts, or rows of a mixture of experts.
  bool by_rows() const { return kind != StepKind::kLinear && experts == nullptr; }
  size_t Units(size_t rows) const {
    if (kind == StepKind::kLinear) return std::min(panel_end, matrix->view().panels());
    return kind == StepKind::kComputeExperts ? experts->count() : rows;
  }
};

// Some steps in order.
class RowSteps {
 public:
  RowSteps() = default;
  void Add(const RowStep& step) {
    ENCORE_CHECK(count_ < steps_.size());
    steps_[count_++] = step;
  }
  RowStep& last() { return steps_[count_ - 1]; }
  const RowStep& last() const { return steps_[count_ - 1]; }
  const RowStep* begin() const { return steps_.data(); }
  const RowStep* end() const { return steps_.data() + count_; }

 private:
  std::array<RowStep, 24> steps_;
  size_t count_ = 0;
};

// A layer's steps in order, before and after attention.
struct Recipe {
  RowSteps before;  // ends with the projection to queries, keys and values
  RowSteps after;

  RowStep& projection() { return before.last(); }
  const RowStep& projection() const { return before.last(); }
};
// recipe.cc.
Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer);

// One step for a part, whose rows are the first of `rows`. A projection writes to `qkv`.
void RunStep(const AttentionStage& attention, const QkvBuffer& qkv, const RowStep& step,
             const StepRows& rows, const StepPart& part);
// All steps for rows [begin, end), by one thread. `all` begins with row 0 of the batch.
void RunSteps(const AttentionStage& attention, const QkvBuffer& qkv, const RowSteps& steps,
              const StepRows& all, size_t begin, size_t end, int thread);

// All steps but the last `left_out`, of the first `count` of `rows`, each shared by all threads.
void RunStepsByColumns(Team& team, const AttentionStage& attention, const RowSteps& steps,
                       const StepRows& rows, size_t count, size_t left_out = 0);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ROW_STEPS_H_
