// SPDX-License-Identifier: Apache-2.0
//
// Steps of a block that take each row of tokens by itself, linear layers and norms, and their
// order.

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

// What a step reads or writes.
enum class Place {
  kNone,
  kY,        // the layer's output; may be x
  kContext,  // attention's output
  kMid,      // a sum before its norm
  kNormed,
  kHidden,      // inside the feed-forward network, what the gate of a layer_input makes, or what a
                // convolution joins
  kLayerInput,  // proj x0 of a layer_input
  // Steps write no floats to the places from here on.
  kX,           // the layer's input; never written
  kFirst,       // the encoder's input x0, where layers read it; never written
  kInput,       // rows of A of a product that takes no floats
  kProjection,  // attention's QkvBuffer, which the projection alone writes (attention_stage.h)
};

// A mixture of experts is computed in three steps (experts.h).
enum class ExpertsStep { kRoute, kCompute, kAdd };

// Where the places lie. Each begins with the rows at hand: row 0 of the batch, or what From makes
// of it.
struct StepRows {
  ConstRows x;
  ConstRows first;
  std::array<Rows, static_cast<size_t>(Place::kX)> written;  // by Place
  MadeRows input;
  Rows routes;  // of the experts' steps, as their own rows below
  Rows expert;
  size_t expert_rows;  // rows of hidden, input and expert for each row of the others
  bool own_context;    // a row block's context lies in its thread's share of the buffer
  bool own;            // so do mid, normed, hidden and input

  StepRows(const Pass& pass, ConstRows in, Rows out, bool own_buffers, bool context_too);

  // Those of rows from `begin` on, for the thread whose share begins at thread_row.
  StepRows From(size_t begin, size_t thread_row) const;
  // Where threads share rows.
  StepRows From(size_t begin) const { return From(begin, begin); }

  Rows Written(Place place) const {
    ENCORE_DCHECK(place < Place::kX);
    return written[static_cast<size_t>(place)];
  }
  Rows context() const { return Written(Place::kContext); }
  ConstRows Read(Place place) const {
    if (place == Place::kFirst) return first;
    return place == Place::kX ? x : ConstRows(Written(place));
  }
};

// A part of a step's work: `rows` rows and, of a linear step, panels [panel_begin, panel_end). Of a
// step of experts [panel_begin, panel_end) are RowStep::Units instead.
struct StepPart {
  size_t begin;  // in the batch
  size_t rows;
  size_t panel_begin = 0;  // within the step's
  size_t panel_end = static_cast<size_t>(-1);
  const void* next = nullptr;  // see GemmArgs
};

// A linear step, out = activation(in matrix + bias) or out = in matrix + bias (+ residual); a norm,
// out = norm(in) (+ residual); out = scale in (* residual); out = in + residual; rows of x0 side by
// side; rows of floats made into rows of A for a linear step to come; or a part of out =
// experts(in) (+ residual).
struct RowStep {
  const PackedMatrix* matrix = nullptr;
  const PackedNorm* norm = nullptr;
  const PackedMatrix* rows_for = nullptr;
  bool product = false;  // out = scale in (* residual), element by element
  float scale = 1;
  bool sum = false;       // out = in + residual, element by element
  size_t neighbours = 0;  // rows of x0 that each row of out has, of a convolution's kernel
  size_t width = 0;       // of a norm, product or sum; 0: d_model
  const PackedExperts* experts = nullptr;
  ExpertsStep part = ExpertsStep::kRoute;
  Place in = Place::kNone;
  Place out = Place::kNone;
  Place residual = Place::kNone;                // may be out
  const BlockActivation* activation = nullptr;  // of a linear step without a residual
  // Of a linear step, the panels that it is about; to the last one if there are fewer.
  size_t panel_begin = 0;
  size_t panel_end = static_cast<size_t>(-1);

  // By what threads share the step: panels of a linear step; experts; or, of other steps of
  // experts, rows. Rows of the rest are shared by StepRows::From.
  size_t Units(size_t rows) const {
    if (matrix != nullptr) return std::min(panel_end, matrix->view().panels());
    return part == ExpertsStep::kCompute ? experts->count() : rows;
  }
  bool by_rows() const { return matrix == nullptr && experts == nullptr; }
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

// The order of a layer's steps: what comes before attention, the projection to queries, keys and
// values, and what comes after.
struct Recipe {
  RowSteps before;  // ends with the projection
  RowSteps after;

  RowStep& projection() { return before.last(); }
  const RowStep& projection() const { return before.last(); }
};
// recipe.cc.
Recipe MakeRecipe(NormPlacement placement, const PackedLayer& layer);

// One step for a part, whose rows are the first of `rows`; `qkv` is where a projection's output
// goes.
void RunStep(const AttentionStage& attention, const QkvBuffer& qkv, const RowStep& step,
             const StepRows& rows, const StepPart& part);
// All steps for rows [begin, end), by one thread. `all` begins with row 0 of the batch.
void RunSteps(const AttentionStage& attention, const QkvBuffer& qkv, const RowSteps& steps,
              const StepRows& all, size_t begin, size_t end, int thread);

// All steps but the last `left_out` of the first `count` of `rows`, each shared by all threads: a
// linear one by columns, others by rows.
void RunStepsByColumns(Team& team, const AttentionStage& attention, const RowSteps& steps,
                       const StepRows& rows, size_t count, size_t left_out = 0);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ROW_STEPS_H_
