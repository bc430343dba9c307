// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts as three steps of a block.

#ifndef ENCORE_ENGINE_NN_EXPERTS_H_
#define ENCORE_ENGINE_NN_EXPERTS_H_

#include "engine/nn/row_steps.h"

namespace encore::inline v0_1::internal {

// Runs step.part of step.experts on the part's units, with out = experts(in) (+ residual). `rows`
// are the part.rows rows that go through the experts together. Steps follow each other:
//   kRoute    a row's p, softmax(router in), and its weights: p of its top_k experts, and -1 of the
//             others. Both lie side by side in rows.routes [rows, 2 experts].
//   kCompute  the rows of an expert, gathered in rows.expert, go through its two matrices. All rows
//             of expert 0 come first, then those of expert 1, and so on, each in the batch's order.
//   kAdd      out = (residual +) bias + the sum of weight times result, expert after expert.
// What a row becomes does not depend on the other rows: each element of a product is one chain.
void RunExperts(const Pass& pass, const RowStep& step, const StepRows& rows, const StepPart& part);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_EXPERTS_H_
