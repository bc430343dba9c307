// SPDX-License-Identifier: Apache-2.0
//
// The last block of a stack where one row of each sequence is wanted: it takes all rows up to their
// keys and values, and only the wanted ones any further.

#ifndef ENCORE_ENGINE_NN_OUTPUT_ROWS_H_
#define ENCORE_ENGINE_NN_OUTPUT_ROWS_H_

#include <cstddef>

#include "encore/encoder.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/nn/row_steps.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// Row b of y = block(x) at the wanted row of sequence b. No sequence is empty; y is apart from x.
void BlockOfOutputRows(Team& team, const Pass& pass, const PackedLayer& layer, size_t index,
                       ConstRows x, OutputRows wanted, Rows y);

// Row b of y = the wanted row of sequence b in x, shared among the threads.
void CopyOutputRows(Team& team, const Pass& pass, ConstRows x, OutputRows wanted, Rows y);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_OUTPUT_ROWS_H_
