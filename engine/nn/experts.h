// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts as three steps of a block.

#ifndef ENCORE_ENGINE_NN_EXPERTS_H_
#define ENCORE_ENGINE_NN_EXPERTS_H_

#include "engine/nn/row_steps.h"

namespace encore::inline v0_1::internal {

// Runs one of the three steps on the part's units, with out = experts(in) (+ residual). `rows` are
// the part.rows rows that go through the experts together:
//   kRouteExperts    p = softmax(router in) of a row, then its weights: p of its top_k experts,
//                    -1 of the others, side by side in rows.routes [rows, 2 experts].
//   kComputeExperts  the rows of an expert, gathered in rows.expert, go through its two matrices:
//                    those of expert 0 first, then those of expert 1, each in the batch's order.
//   kSumExperts      out = (residual +) bias + the sum of weight times result, by expert.
// Each element of a product is one chain, so a row's result does not depend on the other rows.
void RunExperts(const Pass& pass, const RowStep& step, const StepRows& rows, const StepPart& part);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_EXPERTS_H_
