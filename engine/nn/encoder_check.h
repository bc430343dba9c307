// SPDX-License-Identifier: Apache-2.0
//
// What an encoder asks of its configuration, weights, batches, inputs and taps, with sentences for
// people.

#ifndef ENCORE_ENGINE_NN_ENCODER_CHECK_H_
#define ENCORE_ENGINE_NN_ENCODER_CHECK_H_

#include <string>

#include "encore/encoder.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Every switch of every layer (layer_check.cc).
Status CheckConfig(const EncoderConfig& config);
// Every tensor's shape; the configuration is already checked. Names are those of a torch
// state_dict.
Status CheckWeights(const EncoderConfig& config, const EncoderWeights& weights);

// The scales of a layer's int8 weights and of inputs, whose shapes and types are already checked:
// all that are needed, none that is not, each number one that can be used (scale_check.cc). Names
// begin with the prefix.
Status CheckScales(const EncoderLayerWeights& weights, const std::string& prefix);

// Precision and what goes with it; the configuration is already checked.
Status CheckOptions(const EncoderConfig& config, const EncoderOptions& options);

Status CheckSequenceStarts(const Batch& batch);
// The mask and the positions; sequence starts are already checked.
Status CheckBatch(const EncoderConfig& config, const Batch& batch);
Status CheckInputOutput(const EncoderConfig& config, const Batch& batch, const ConstView& x,
                        const MutableView& y);
// The same where y has a row for each sequence, and the rows of x are written too.
Status CheckInputOutputRows(const EncoderConfig& config, const Batch& batch, const MutableView& x,
                            const MutableView& y);
// Sequence starts are already checked.
Status CheckNoEmptySequence(const Batch& batch);
// x and y are already checked.
Status CheckTaps(const EncoderConfig& config, const Batch& batch, const Taps& taps,
                 const ConstView& x, const MutableView& y);
// Whether checked taps want anything of a layer.
bool TapsLayer(const Taps& taps, size_t layer, size_t sequences);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ENCODER_CHECK_H_
