// SPDX-License-Identifier: Apache-2.0
//
// One encoder block over a batch. And the last block of a stack where one row of each sequence is
// wanted: it computes keys and values of all rows, and the rest for the wanted rows
// (output_rows.cc).

#ifndef ENCORE_ENGINE_NN_ENCODER_BLOCK_H_
#define ENCORE_ENGINE_NN_ENCODER_BLOCK_H_

#include <cstddef>

#include "encore/encoder.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/pass.h"
#include "engine/nn/row_steps.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// y = block(x), and what the taps want of layer `index`. y may be x.
void EncoderBlock(Team& team, const Pass& pass, const PackedLayer& layer, size_t index, ConstRows x,
                  Rows y);

// Row b of y = block(x) at the wanted row of sequence b. No sequence is empty; y is apart from x.
void BlockOfOutputRows(Team& team, const Pass& pass, const PackedLayer& layer, size_t index,
                       ConstRows x, OutputRows wanted, Rows y);

// Row b of y = the wanted row of sequence b in x, shared among the threads.
void CopyOutputRows(Team& team, const Pass& pass, ConstRows x, OutputRows wanted, Rows y);

// Copies x, the encoder's input, for the layers that read it; shared among the threads.
void KeepEncoderInput(Team& team, const Pass& pass, ConstRows x);

// Row 0 .. count - 1 of y = norm(y), shared among the threads.
void NormRows(Team& team, const Pass& pass, const PackedNorm& norm, Rows y, size_t count);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ENCODER_BLOCK_H_
